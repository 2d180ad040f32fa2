//! LOCK on a real disk, taken away under a live writer (G8, D5): nobody else gets in, and the writer notices.

use std::fs;
use std::path::Path;

use sessionlog::testing::oracle::check;
use sessionlog::testing::workload::{event, open as open_simulated};
use sessionlog::testing::{Model, SimDisk};
use sessionlog::{CreateOptions, ErrorKind, Session, SessionStore, StoreOptions};

use crate::tool::Tool;

use super::{Judged, Verdict, agrees, campaign, fails};

fn open(directory: &Path) -> sessionlog::Result<SessionStore> {
    StoreOptions::new().create(true).segment_bytes(64 << 10).open(directory)
}

fn replace(lock: &Path) {
    let other = lock.with_extension("other");
    fs::copy(lock, &other).unwrap();
    fs::rename(&other, lock).unwrap();
}

/// Field trap: the file of the lock is deleted by hand, because somebody took it for a stale one.
#[test]
fn removing_lock_lets_no_second_process_in() {
    let tool = Tool::new();
    let mut first = tool.recorder();
    first.ok(r#"{"op":"create","id":"s"}"#);
    first.ok(r#"{"op":"flush"}"#);
    let holder = first.child.id().to_string();
    let lock = tool.store().join("LOCK");
    let refused = |named: bool| {
        let second = tool.recorder();
        let (answers, code) = second.end();
        assert_eq!((answers.len(), code), (1, Some(1)), "{answers:?}");
        assert_eq!(answers[0]["error"]["kind"], "locked", "{answers:?}");
        let ran = tool.run(["fork", "s", "--id", "f"]).exits(1);
        assert!(!named || ran.err.contains(&holder), "{}", ran.err);
    };
    refused(true);
    fs::remove_file(&lock).unwrap();
    refused(false);
    // The refused ones have left a new LOCK behind; nor does taking that away help.
    fs::remove_file(&lock).unwrap();
    refused(false);
    fs::write(&lock, "").unwrap();
    replace(&lock);
    refused(false);
    tool.run(["ls"]).exits(0);
    first.ok(r#"{"op":"append","session":"s","type":"x","data":1}"#);
    first.ok(r#"{"op":"flush","session":"s"}"#);
    assert_eq!(first.end().1, Some(0));
    assert_eq!(tool.run(["events", "s", "--json"]).exits(0).json().len(), 1);
    let mut next = tool.recorder();
    next.ok(r#"{"op":"resume","session":"s"}"#);
    assert_eq!(next.end().1, Some(0));
}

#[test]
fn a_writer_whose_lock_file_is_gone_stops_at_the_next_rotation_and_loses_nothing() {
    for removed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).unwrap();
        let session = store.create(CreateOptions::new().id("s")).unwrap();
        session.append(event(0, "first").unwrap().0).unwrap();
        session.flush().unwrap();
        let lock = folder.path().join("LOCK");
        if removed {
            fs::remove_file(&lock).unwrap()
        } else {
            replace(&lock)
        }
        assert_eq!(open(folder.path()).map(drop).unwrap_err().kind(), ErrorKind::Locked);
        let text = "x".repeat(1000);
        let mut acknowledged = 1;
        let error = loop {
            let new = event(acknowledged, &text).unwrap().0;
            let done = match session.append(new) {
                Err(error) if error.is_backpressure() => store.wait_for_room(2000).map(|()| false),
                Err(error) => Err(error),
                Ok(_) => session.flush().map(|()| true),
            };
            match done {
                Ok(flushed) => acknowledged += usize::from(flushed),
                Err(error) => break error,
            }
            assert!(acknowledged < 1000, "a megabyte in segments of 64 KiB, and nothing was noticed");
        };
        assert!(error.to_string().contains("LOCK was removed or replaced"), "{error}");
        assert!(store.close().is_err());
        let store = open(folder.path()).unwrap();
        assert_eq!(store.recovery().losses, Vec::new());
        let events: Vec<String> =
            store.open("s").unwrap().events().map(|event| event.unwrap().to_line()).collect();
        assert!(events.len() >= acknowledged && acknowledged > 10, "{} of {acknowledged}", events.len());
        assert_eq!(events[1], event(1, &text).unwrap().1);
    }
}

/// Events of 3,000 bytes until the segment is left, or something is refused for good.
fn fill(store: &SessionStore, session: &Session, model: &mut Model, count: usize) -> sessionlog::Result<()> {
    for _ in 0..count {
        let (event, line) = event(usize::try_from(session.seq()).unwrap(), &"z".repeat(3000)).unwrap();
        while let Err(error) = session.append(event.clone()) {
            if !error.is_backpressure() {
                return Err(error);
            }
            store.wait_for_room(4000)?;
        }
        model.attempt(session.id(), [line]);
        session.flush()?;
        model.acknowledge(session.id());
    }
    Ok(())
}

/// Where a lock follows its file's name, taking LOCK away lets a second writer in. What that one acknowledges is there
/// whatever the first one still does: it has to notice at its next segment.
pub(crate) fn two_writers(seed: u64, judged: &mut Judged) -> Verdict {
    for before in [1, 4, 8] {
        *judged += 1;
        let what = format!("LOCK removed after {before} events");
        let disk = SimDisk::new();
        disk.lock_follows_name(true);
        let (first, _) = fails(open_simulated(&disk, seed), &what)?;
        let session = fails(first.create(CreateOptions::new().id("first")), &what)?;
        let mut unjudged = Model::default();
        fails(fill(&first, &session, &mut unjudged, before), &what)?;
        assert!(disk.remove("LOCK"));
        let other = disk.other_process();
        let (second, _) = fails(open_simulated(&other, seed + 1), &what)?;
        let mut model = Model::default();
        model.attempt_session("second", Vec::new());
        let its = fails(second.create(CreateOptions::new().id("second")), &what)?;
        fails(fill(&second, &its, &mut model, 2), &what)?;
        let went_on = fill(&first, &session, &mut unjudged, 60);
        agrees(went_on.is_err(), || format!("{what}: the first writer went on over a rotation"))?;
        fails(fill(&second, &its, &mut model, 2), &what)?;
        let disk = other.kill_writer();
        let (store, _) = fails(open_simulated(&disk, seed + 2), &what)?;
        // The first one's session is not judged.
        let complaints = check(&store, &model).0;
        let complaints: Vec<_> = complaints.iter().filter(|what| what.contains("second")).collect();
        agrees(complaints.is_empty(), || format!("{what}: {complaints:#?}"))?;
    }
    Ok(())
}

#[test]
fn a_first_writer_never_takes_the_segments_of_a_second_one() {
    campaign(0, 3, "two writers", two_writers);
}
