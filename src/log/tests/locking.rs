//! LOCK is taken away under a live writer (D5, G8): nobody else gets in, and the writer stops at the next rotation.

use super::{append, create, event, open, small, texts, try_open};
use crate::log::*;
use crate::testing::SimDisk;

/// Appends and flushes until the writer fails; how many events were acknowledged, and the failure.
fn record_until_it_fails(log: &Log, dense: u64, first: u64) -> (u64, Error) {
    let text = "x".repeat(400);
    for seq in first..first + 2000 {
        let done = loop {
            match log.append(&[event(dense, seq, &text, false)]) {
                Err(error) if error.is_backpressure() => {
                    if let Err(error) = log.wait_for_room(500) {
                        break Err(error);
                    }
                }
                other => break other,
            }
        };
        if let Err(error) = done.and_then(|appended| log.flush(appended.end, Durability::Durable)) {
            return (seq, error);
        }
    }
    panic!("two thousand events over several segments, and the writer noticed nothing");
}

type Harm = fn(&SimDisk);

#[test]
fn a_lock_file_that_is_removed_or_replaced_stops_the_writer_at_the_next_rotation() {
    let harms: [(&str, Harm); 3] = [
        ("removed", |disk| assert!(disk.remove("LOCK"))),
        ("replaced", |disk| disk.install("LOCK", b"pid 1\nhost elsewhere\n")),
        // The very same bytes, in another file.
        ("copied", |disk| disk.install("LOCK", &disk.contents("LOCK").unwrap())),
    ];
    for (what, harm) in harms {
        let disk = SimDisk::new();
        let rig = open(&disk, 1, small());
        let (dense, _) = create(&rig.log, "a");
        let end = append(&rig.log, vec![event(dense, 0, "first", false)]).end;
        rig.log.flush(end, Durability::Durable).unwrap();
        harm(&disk);
        let second = try_open(&disk.other_process(), 2, small()).map(drop).expect_err(what);
        assert!(second.is_locked(), "{what}: {second}");
        let (acknowledged, error) = record_until_it_fails(&rig.log, dense, 1);
        assert!(error.to_string().contains("LOCK was removed or replaced"), "{what}: {error}");
        let segments = disk.files().iter().filter(|name| name.ends_with(".seg")).count();
        assert_eq!(segments, 1, "{what}: it went on in the next segment");
        assert!(acknowledged > 50, "{what}: {acknowledged}");
        // It is over for this writer (G5); what was acknowledged stays readable, and is there for the next one.
        let error = rig.log.append(&[event(dense, acknowledged, "late", false)]).unwrap_err();
        assert!(error.to_string().contains("LOCK was removed or replaced"), "{what}: {error}");
        assert!(texts(&rig.log, "a").len() as u64 >= acknowledged, "{what}");
        assert!(rig.log.close().is_err(), "{what}");
        drop(rig);
        let rig = open(&disk, 3, small());
        assert_eq!(rig.report.losses, Vec::new(), "{what}");
        assert!(texts(&rig.log, "a").len() as u64 >= acknowledged, "{what}");
        rig.log.close().unwrap();
    }
}

/// Where the file system has no lock on directories, a removed LOCK lets a second writer in. The first one must not
/// put its own next segment over that of the second.
#[test]
fn a_second_writers_segment_is_never_written_over() {
    let disk = SimDisk::new();
    let first = open(&disk, 1, small());
    let (a, _) = create(&first.log, "a");
    let end = append(&first.log, vec![event(a, 0, "of the first", false)]).end;
    first.log.flush(end, Durability::Durable).unwrap();
    disk.lock_follows_name(true);
    assert!(disk.remove("LOCK"));
    let second = open(&disk.other_process(), 2, small());
    let (b, _) = create(&second.log, "b");
    let end = append(&second.log, vec![event(b, 0, "of the second", false)]).end;
    second.log.flush(end, Durability::Durable).unwrap();
    let (_, error) = record_until_it_fails(&first.log, a, 1);
    assert!(error.to_string().contains("LOCK was removed or replaced"), "{error}");
    let end = append(&second.log, vec![event(b, 1, "of the second", false)]).end;
    second.log.flush(end, Durability::Durable).unwrap();
    second.log.close().unwrap();
    drop((first, second));
    let rig = open(&disk, 3, small());
    assert_eq!((texts(&rig.log, "a").len(), texts(&rig.log, "b").len()), (1, 2), "{:?}", rig.report);
}
