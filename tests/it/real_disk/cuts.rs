//! Cuts of the power under a real, mounted file system.
//!
//! The file system lies in a file on XFS, through a loop device. A copy of that file by reference is taken while the
//! recorder runs: it happens between two writes of the kernel, so it is what a drive without a cache of its own holds
//! when the power goes. What nobody synced is not in it. The copy is then mounted, which replays the file system's own
//! journal, and the store in it is opened.
//!
//! It needs root, loop devices, `mkfs.xfs` and the tools of the file systems, and mounts in a name space of its own, so it
//! runs on request: `SESSIONLOG_POWER_CUTS=N` cuts N times on each file system.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sessionlog::testing::Random;

use super::recorder::{DIRECTORY, EVENTS, RUN};
use super::{LARGE, Said, check, options, shown, this_test};

/// How many cuts on each file system.
const CUTS: &str = "SESSIONLOG_POWER_CUTS";
const INSIDE: &str = "SESSIONLOG_POWER_CUTS_INSIDE";

/// The file systems: how each is made, how it is mounted, and its smallest convenient size in MiB. Without a journal none
/// promises anything behind a cut, so ext4's other mode is the one where sizes and data come in any order.
const FILE_SYSTEMS: [(&str, &[&str], &str, u32); 4] = [
    ("ext4", &["mkfs.ext4", "-q"], "loop", 96),
    ("ext4 with data=writeback", &["mkfs.ext4", "-q"], "loop,data=writeback", 96),
    ("xfs", &["mkfs.xfs", "-q"], "loop,nouuid", 320),
    ("btrfs", &["mkfs.btrfs", "-q"], "loop", 128),
];

fn run(command: &[&str], path: &[&Path]) -> Result<(), String> {
    let [program, arguments @ ..] = command else { return Ok(()) };
    let output = Command::new(program).args(arguments).args(path).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", shown(&output))) }
}

#[test]
fn power_cuts_under_a_mounted_file_system_lose_nothing_that_was_acknowledged() {
    if std::env::var_os(CUTS).is_none() {
        return println!("skipped: cuts under a mounted file system run on request, with {CUTS}=N, as root");
    }
    let output = this_test(&["unshare", "-m"], "cuts::inside").env(INSIDE, "1").output().unwrap();
    let text = shown(&output);
    println!("{text}");
    assert!(output.status.success() && text.contains("cuts: done"), "{text}");
}

#[test]
fn inside() {
    let (Some(_), Ok(cuts)) = (std::env::var_os(INSIDE), std::env::var(CUTS)) else { return };
    let cuts: u32 = cuts.parse().expect("a number of cuts");
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let below = folder.path().join("below");
    let image = folder.path().join("below.img");
    fs::create_dir(&below).unwrap();
    run(&["truncate", "-s", "3G"], &[&image]).unwrap();
    run(&["mkfs.xfs", "-q", "-m", "reflink=1"], &[&image]).unwrap();
    run(&["mount", "-o", "loop"], &[&image, &below]).unwrap();
    for (name, make, how, megabytes) in FILE_SYSTEMS {
        let disk = below.join("disk.img");
        let size = format!("{megabytes}M");
        run(&["truncate", "-s", &size], &[&disk]).unwrap();
        match run(make, &[&disk]) {
            Ok(()) => on_file_system(name, how, &disk, cuts),
            Err(error) => println!("skipped: {name}: {error}"),
        }
        fs::remove_file(&disk).unwrap();
    }
    run(&["umount"], &[&below]).unwrap();
    println!("cuts: done");
}

/// Records on the file system in `disk`, cuts again and again, and looks at each copy.
fn on_file_system(name: &str, how: &str, disk: &Path, cuts: u32) {
    let below = disk.parent().unwrap();
    let (live, copy, dead) = (below.join("live"), below.join("cut.img"), below.join("dead"));
    [&live, &dead].iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
    run(&["mount", "-o", how], &[disk, &live]).unwrap();
    let mut random = Random::new(crate::crash::first_seed());
    let (mut torn, mut more, mut checked) = (0, 0, 0);
    let mut all = BTreeMap::new();
    for cut in 0..cuts {
        let run_name = format!("{}{cut}", if cut % 2 == 0 { "" } else { LARGE });
        let (mut child, said) = record(&live.join("store"), &run_name);
        // Some cuts come before the store is there.
        std::thread::sleep(Duration::from_micros(random.below(if cut % 4 == 0 { 8_000 } else { 120_000 })));
        // What was heard before the copy is begun was acknowledged before the cut.
        let mut heard = all.clone();
        heard.extend(said.lock().unwrap().acknowledged.clone());
        run(&["cp", "--reflink=always"], &[disk, &copy]).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        run(&["mount", "-o", how], &[&copy, &dead])
            .unwrap_or_else(|error| panic!("{name}, cut {cut}: {error}"));
        let known = Said { acknowledged: heard, ..Said::default() };
        let what = format!("{name}, cut {cut}");
        if dead.join("store").exists() {
            for opening in 0..2 {
                let store =
                    options().open(dead.join("store")).unwrap_or_else(|error| panic!("{what}: {error}"));
                torn += usize::from(opening == 0 && !store.recovery().cut.is_empty());
                check(&store, &known, &what);
                let beyond = known
                    .acknowledged
                    .iter()
                    .any(|(id, count)| store.open(id).unwrap().events().count() > *count);
                more += usize::from(opening == 0 && beyond);
                store.close().unwrap();
            }
        } else {
            assert_eq!(known.events(), 0, "{what}: the store is gone");
        }
        checked += known.events();
        run(&["umount"], &[&dead]).unwrap();
        fs::remove_file(&copy).unwrap();
        // The live one was only killed: it goes on with all that it acknowledged.
        all.extend(std::mem::take(&mut said.lock().unwrap().acknowledged));
        if cut % 10 == 9 {
            fs::remove_dir_all(live.join("store")).unwrap();
            all.clear();
        }
    }
    run(&["umount"], &[&live]).unwrap();
    println!(
        "{name}: {cuts} cuts, {checked} acknowledged events looked for and found, {torn} torn tails, {more} times whole \
         events above the acknowledged ones"
    );
}

/// Starts a recorder; what it has said so far grows while it runs.
fn record(store: &Path, run: &str) -> (Child, Arc<Mutex<Said>>) {
    let mut child = this_test(&[], "recorder::recorder")
        .env(DIRECTORY, store)
        .env(EVENTS, "100000")
        .env(RUN, run)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let said: Arc<Mutex<Said>> = Arc::default();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let heard = Arc::clone(&said);
    std::thread::spawn(move || {
        lines.map_while(Result::ok).for_each(|line| heard.lock().unwrap().hear(&line));
    });
    (child, said)
}
