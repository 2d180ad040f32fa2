//! Real processes on a real disk: killed while eight threads record, and short of descriptors.
//!
//! A SIGKILL loses nothing that was handed to the kernel: the page cache survives it, and what no `pwrite` was called
//! for yet was never in the file. So it tears a frame only where it lands inside the one `pwritev` of that frame, which
//! the kernel then breaks off between two pages. A frame of a few kilobytes is copied in a microsecond and one of a
//! megabyte in a few hundred, against the milliseconds of encoding and syncing around it: of some hundred kills, half of
//! them among frames of megabytes, none has torn one so far. What a kill does leave, in most runs, is whole frames
//! above the acknowledged ones, which recovery keeps. Both are counted and printed, not asserted: they are the kernel's
//! choice. Torn frames are the matter of the simulated power cuts, and of the tool's demo, which makes one for certain.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use sessionlog::testing::Random;
use sessionlog::testing::workload::event;
use sessionlog::{CreateOptions, SessionStore, StoreOptions};

const DIRECTORY: &str = "SESSIONLOG_CRASH_DIRECTORY";
const RUN: &str = "SESSIONLOG_CRASH_RUN";
const THREADS: usize = 8;

fn open(directory: &Path) -> SessionStore {
    StoreOptions::new().create(true).segment_bytes(256 << 10).open(directory).unwrap()
}

/// Some events of a megabyte in every second run.
fn text(id: &str, seq: usize) -> String {
    let odd = id.split('-').nth(1).and_then(|run| run.parse::<u32>().ok()).is_some_and(|run| run % 2 == 1);
    let length = if odd && seq % 5 == 2 { 1 << 20 } else { seq * 37 % 600 };
    format!("{id} {seq} {}", "x".repeat(length))
}

/// The recorder: this very test, started by the next one in a process of its own.
#[test]
fn recorder() {
    let (Ok(directory), Ok(run)) = (std::env::var(DIRECTORY), std::env::var(RUN)) else { return };
    let store = open(Path::new(&directory));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, id) = (&store, format!("run-{run}-thread-{thread}"));
            scope.spawn(move || {
                let session = store.create(CreateOptions::new().id(&id)).unwrap();
                for seq in 0.. {
                    let (event, _) = event(seq, &text(&id, seq)).unwrap();
                    while session.append(event.clone()).is_err() {
                        store.wait_for_room(event.data().len()).unwrap();
                    }
                    if seq % 3 != 1 {
                        session.flush().unwrap();
                        println!("ack {id} {seq}");
                    }
                }
            });
        }
    });
}

#[test]
fn a_process_that_records_with_eight_threads_may_be_killed_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new(super::first_seed());
    let mut acknowledged: HashMap<String, usize> = HashMap::new();
    let kills = 50 * super::rounds();
    let (mut torn, mut torn_bytes, mut unacknowledged) = (0, 0u64, 0);
    for run in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["crash::process::recorder", "--exact", "--nocapture"])
            .env(DIRECTORY, folder.path())
            .env(RUN, run.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (first, started) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let acks = lines.map_while(Result::ok).filter(|line| line.starts_with("ack "));
            acks.inspect(|_| first.send(()).unwrap_or_default()).collect::<Vec<_>>()
        });
        // Some runs die before their first acknowledgement, the others at any moment after it.
        if run % 5 > 0 {
            started.recv().unwrap();
        }
        std::thread::sleep(Duration::from_micros(random.below(60_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        for line in reader.join().unwrap() {
            let mut words = line.split(' ');
            if let (Some("ack"), Some(id), Some(seq)) = (words.next(), words.next(), words.next())
                && let Ok(seq) = seq.parse::<usize>()
            {
                let known = acknowledged.entry(id.to_owned()).or_default();
                *known = (*known).max(seq + 1);
            }
        }
        let store = open(folder.path());
        assert!(store.recovery().losses.is_empty(), "run {run}: {:?}", store.recovery());
        torn += usize::from(!store.recovery().cut.is_empty());
        for cut in &store.recovery().cut {
            torn_bytes += cut.length;
            let kept = folder.path().join(cut.kept_in.as_ref().expect("there is room to keep it"));
            assert_eq!(std::fs::metadata(&kept).unwrap().len(), cut.length, "run {run}: {cut:?}");
            // Gigabytes of evidence would fill the disk of the tests.
            std::fs::remove_file(kept).unwrap();
        }
        let mut more = false;
        let prefix = format!("run-{run}-");
        for (id, count) in acknowledged.iter().filter(|(id, _)| id.starts_with(&prefix) || run + 1 == kills) {
            let lines: Vec<String> =
                store.open(id).unwrap().events().map(|event| event.unwrap().to_line()).collect();
            assert!(lines.len() >= *count, "run {run}: {id} has {} of {count}", lines.len());
            more |= lines.len() > *count;
            for (seq, line) in lines.iter().enumerate() {
                assert_eq!(*line, event(seq, &text(id, seq)).unwrap().1, "run {run}: {id}");
            }
        }
        unacknowledged += usize::from(more);
        store.close().unwrap();
    }
    let events: usize = acknowledged.values().sum();
    println!(
        "{kills} kills of a process with {THREADS} threads: {events} acknowledged events, all there; {torn} kills left \
         a torn tail that recovery cut ({torn_bytes} bytes), {unacknowledged} left whole events above the acknowledged ones"
    );
    assert!(events > 50);
}

/// Started by the next test under `ulimit -n 64`.
#[test]
fn many_sessions() {
    let Ok(directory) = std::env::var("SESSIONLOG_MANY_DIRECTORY") else { return };
    let store = open(Path::new(&directory));
    for number in 0..10_000 {
        let session = store.create(CreateOptions::new().id(format!("s{number}"))).unwrap();
        while session.append(event(0, "one").unwrap().0).is_err() {
            store.wait_for_room(4096).unwrap();
        }
    }
    store.flush().unwrap();
    for number in (0..10_000).step_by(7) {
        assert_eq!(store.open(&format!("s{number}")).unwrap().events().count(), 1);
    }
    store.close().unwrap();
    assert_eq!(open(Path::new(&directory)).stored().unwrap().count(), 10_000);
    println!("10000 sessions done");
}

#[test]
fn sixty_four_descriptors_are_enough_for_ten_thousand_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$0\" crash::process::many_sessions --exact --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .env("SESSIONLOG_MANY_DIRECTORY", folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("10000 sessions done"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
