//! A full file system, a limit on files, too few descriptors, and a directory that may only be read.

use std::fs;
use std::path::Path;
use std::process::Command;

use sessionlog::testing::workload::event;
use sessionlog::{CreateOptions, SessionStore};

use super::recorder::{DIRECTORY, EVENTS, RUN};
use super::{Said, options, reopened, shown, text, this_test};

/// The variable that names where the children of these tests work.
const MOUNTED: &str = "SESSIONLOG_REAL_MOUNTED";

/// Runs the test `name` on a small file system in memory that nobody else sees; `false` where that is not allowed.
fn on_small_file_system(name: &str, kilobytes: u32) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let mounts = format!(
        "mount -t tmpfs -o size={kilobytes}k tmpfs {0} 2>/dev/null || exit 77; exec \"$0\" \"$@\"",
        folder.path().display()
    );
    // A name space of its own for mounts: as root at once, and for others where name spaces of users are allowed.
    for flags in ["-m", "-rm"] {
        let Ok(output) =
            this_test(&["unshare", flags, "sh", "-c", &mounts], name).env(MOUNTED, folder.path()).output()
        else {
            break;
        };
        let text = shown(&output);
        if output.status.success() && text.contains("the child is done") {
            text.lines().filter(|line| line.starts_with("full:")).for_each(|line| println!("{line}"));
            return true;
        }
        assert!(!text.contains("panicked"), "{text}");
    }
    println!("skipped: {name}: no file system may be mounted here");
    false
}

/// Appends to `session` of `store` until something is refused; how many events were taken. Each is acknowledged.
fn fill(store: &SessionStore, id: &str, from: usize) -> usize {
    let session = match (store.get(id), store.open(id)) {
        (Some(live), _) => live,
        (None, Ok(_)) => store.resume(id).unwrap().session,
        (None, Err(_)) => store.create(CreateOptions::new().id(id)).unwrap(),
    };
    for seq in from.. {
        let (event, _) = event(seq, &text(id, seq)).unwrap();
        let done = loop {
            match session.append(event.clone()) {
                Err(error) if error.is_backpressure() => {
                    if let Err(error) = store.wait_for_room(event.data().len()) {
                        break Err(error);
                    }
                }
                other => break other.map(|_| ()),
            }
        };
        if let Err(error) = done.and_then(|()| session.flush()) {
            assert!(error.is_full(), "a full disk is told as one: {error:?}");
            assert!(store.fault().is_none(), "it does not poison: {error:?}");
            return seq;
        }
    }
    from
}

#[test]
fn a_full_file_system_child() {
    let Ok(mounted) = std::env::var(MOUNTED) else { return };
    let (filler, directory) = (Path::new(&mounted).join("filler"), Path::new(&mounted).join("store"));
    fs::write(&filler, vec![1; 600 << 10]).unwrap();
    let store = options().open(&directory).unwrap();
    let other = store.create(CreateOptions::new().id("other")).unwrap();
    other.append(event(0, &text("other", 0)).unwrap().0).unwrap();
    other.flush().unwrap();
    drop(other);
    let first = fill(&store, "s", 0);
    // Not a byte is left for anybody else.
    let mut left = Vec::new();
    for number in 0..100 {
        let path = Path::new(&mounted).join(format!("left-{number}"));
        if fs::write(&path, vec![1; 4096]).is_err() {
            break;
        }
        left.push(path);
    }
    assert_eq!(store.open("s").unwrap().events().count(), first, "it is read");
    store.delete("other").expect("a tombstone has its place");
    store.flush().unwrap();
    store.close().expect("a store closes on a full disk");
    let mut said = Said::default();
    said.acknowledged.insert("s".to_owned(), first);
    reopened(&directory, &said, "on the full file system");
    let store = options().open(&directory).expect("a store opens on a full disk");
    assert!(store.open("other").is_err(), "what was deleted stays so");
    // And on it goes when somebody makes room.
    fs::remove_file(&filler).unwrap();
    let mut second = fill(&store, "s", first);
    if second == first {
        // What failed while the disk was full may refuse one more; asking again is trying again.
        second = fill(&store, "s", first);
    }
    assert!(second > first + 50, "{first} events, and {second} with more room");
    store.close().unwrap();
    said.acknowledged.insert("s".to_owned(), second);
    reopened(&directory, &said, "full for the second time");
    println!("full: {first} events on a file system of 2 MiB, {second} when 600 KiB were freed");
    println!("the child is done");
}

#[test]
fn a_full_file_system_refuses_what_does_not_fit_and_all_else_works() {
    on_small_file_system("space::a_full_file_system_child", 2048);
}

#[test]
fn a_read_only_file_system_child() {
    let Ok(mounted) = std::env::var(MOUNTED) else { return };
    let directory = Path::new(&mounted).join("store");
    let store = options().open(&directory).unwrap();
    let session = store.create(CreateOptions::new().id("s")).unwrap();
    for seq in 0..20 {
        session.append(event(seq, &text("s", seq)).unwrap().0).unwrap();
    }
    session.flush().unwrap();
    drop(session);
    store.close().unwrap();
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(&mounted).status().unwrap();
    assert!(remounted.success());
    let mut said = Said::default();
    said.acknowledged.insert("s".to_owned(), 20);
    let reader = options().open_read_only(&directory).expect("it is read without a right to write");
    super::check(&reader, &said, "a file system that may only be read");
    let error = options().open(&directory).map(drop).expect_err("a writer needs the right to write");
    assert!(error.to_string().contains("Read-only file system"), "{error}");
    println!("the child is done");
}

#[test]
fn a_file_system_that_may_only_be_read_serves_readers_and_refuses_writers() {
    on_small_file_system("space::a_read_only_file_system_child", 2048);
}

#[test]
fn a_limit_on_the_size_of_files_is_told_as_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut said = Vec::new();
    // In units of 512 bytes, all below a segment's 64 KiB, one of them below CONTROL's 8 KiB.
    for blocks in [8, 32, 64, 100] {
        let directory = folder.path().join(format!("store-{blocks}"));
        let limit = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let output = this_test(&["sh", "-c", &limit], "recorder::recorder")
            .env(DIRECTORY, &directory)
            .env(EVENTS, "200")
            .output()
            .unwrap();
        let heard = Said::of(&output);
        assert!(output.status.success() && heard.done, "{blocks}: {}", shown(&output));
        assert!(!heard.refused.is_empty(), "{blocks}: nobody was told: {heard:?}");
        let full = |refused: &String| refused.contains("Full");
        assert!(heard.refused.iter().all(full), "{blocks}: {heard:?}");
        reopened(&directory, &heard, &format!("files of {blocks} times 512 bytes"));
        said.push((blocks, heard.events()));
    }
    println!("full: acknowledged before files had their largest size (512-byte units, events): {said:?}");
}

#[test]
fn with_too_few_descriptors_a_store_is_refused_or_works_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("store");
    let mut all = Said::default();
    let mut worked = 0;
    for limit in 4..=24 {
        let limits = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
        let output = this_test(&["sh", "-c", &limits], "recorder::recorder")
            .env(DIRECTORY, &directory)
            .env(EVENTS, "90")
            .env(RUN, limit.to_string())
            .output()
            .unwrap();
        let said = Said::of(&output);
        // With hardly any, the program itself does not start, or the recorder cannot read back what it wrote.
        let text = shown(&output);
        let starved = said.events() == 0 || text.contains("Too many open files");
        assert!(output.status.success() || starved, "{limit}: {text}");
        worked += u32::from(said.done && said.refused.is_empty());
        all.acknowledged.extend(said.acknowledged);
        if directory.join("CONTROL").exists() {
            reopened(&directory, &all, &format!("{limit} descriptors"));
        }
    }
    println!(
        "of the limits of 4 to 24 descriptors {worked} were enough for 4 threads; {} events",
        all.events()
    );
    assert!(worked >= 5);
}
