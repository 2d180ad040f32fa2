//! What recovery must not trust (P1, E3), and what verification says of a batch that lost a member (F7).

use std::io;

use super::{append, create, event, open, small, texts};
use crate::log::*;
use crate::testing::{DiskOp, SeededRuntime, SimDisk};

pub(super) fn findings(disk: &SimDisk) -> Vec<Finding> {
    let rt = Arc::new(SeededRuntime::new(1));
    let (log, _) = Log::open_reader(Arc::new(disk.clone()), rt, small()).unwrap();
    let mut all = Vec::new();
    log.verify(&mut |finding| all.push(finding)).unwrap();
    all.retain(|finding| !finding.note);
    all
}

/// After a failed fsync the cache still shows the bytes and calls them clean, so no later sync writes them: only
/// writing them again makes them durable (P1).
#[test]
fn bytes_that_a_failed_sync_dropped_are_written_again_before_anything_relies_on_them() {
    for seed in 0..8 {
        let disk = SimDisk::new();
        let rig = open(&disk, 1, small());
        let (dense, _) = create(&rig.log, "a");
        rig.log
            .flush(append(&rig.log, vec![event(dense, 0, "safe", false)]).end, Durability::Durable)
            .unwrap();
        let end = append(&rig.log, vec![event(dense, 1, &"dropped".repeat(200), false)]).end;
        disk.fail_nth(DiskOp::Sync, 1, io::ErrorKind::Other);
        assert!(rig.log.flush(end, Durability::Durable).unwrap_err().is_poisoned());
        disk.clear_faults();
        let disk = disk.kill();
        let rig = open(&disk, 2, small());
        let kept = texts(&rig.log, "a").len() as u64;
        assert_eq!(kept, 2, "the cache still shows them");
        rig.log.attach(dense).unwrap();
        let end = append(&rig.log, vec![event(dense, kept, "relies on them", false)]).end;
        rig.log.flush(end, Durability::Durable).unwrap();
        let rig = open(&disk.crash(seed), 3, small());
        assert!(rig.report.losses.is_empty(), "seed {seed}: {:?}", rig.report);
        assert_eq!(texts(&rig.log, "a").len(), 3, "seed {seed}");
    }
}

/// CONTROL or LIVE of another store says nothing about this one: it is told, left out, and rebuilt.
#[test]
fn control_and_live_of_another_store_are_not_believed() {
    let store = |seed: u64, events: u64| {
        let disk = SimDisk::new();
        let rig = open(&disk, seed, small());
        let (dense, _) = create(&rig.log, "a");
        for seq in 0..events {
            rig.log
                .flush(append(&rig.log, vec![event(dense, seq, "text", false)]).end, Durability::Durable)
                .unwrap();
        }
        rig.log.close().unwrap();
        disk
    };
    for name in ["CONTROL", "LIVE"] {
        let (disk, other) = (store(1, 3), store(2, 60));
        disk.install(name, &other.contents(name).unwrap());
        if name == "CONTROL" {
            assert_eq!(findings(&disk).iter().map(|found| found.kind).collect::<Vec<_>>(), ["control"]);
        }
        let rig = open(&disk, 3, small());
        assert!(
            rig.report.notes.iter().any(|note| note.contains("another store")),
            "{name}: {:?}",
            rig.report
        );
        assert!(rig.report.losses.is_empty() && rig.report.cut.is_empty(), "{name}: {:?}", rig.report);
        assert_eq!(texts(&rig.log, "a").len(), 3, "{name}");
        rig.log.close().unwrap();
        assert!(findings(&disk).is_empty(), "{name}: rebuilt");
        assert!(open(&disk, 4, small()).report.clean, "{name}");
    }
}

#[test]
fn verify_names_what_is_left_of_a_batch_that_lost_a_member() {
    let disk = SimDisk::new();
    let rig = open(&disk, 1, small());
    let (dense, _) = create(&rig.log, "a");
    let first = append(&rig.log, vec![event(dense, 0, "alone", false)]);
    let text = "m".repeat(200);
    let batch: Vec<Entry> = (1..5).map(|seq| event(dense, seq, &text, seq < 4)).collect();
    let batch = append(&rig.log, batch);
    rig.log.flush(batch.end, Durability::Durable).unwrap();
    rig.log.close().unwrap();
    assert!(first.first < batch.first && findings(&disk).is_empty());
    // The second member of the batch; every one takes more than 200 bytes and less than 300.
    assert!(disk.flip("segments/00000001.seg", u64::from(batch.first.offset()) + 300, 1));
    let found = findings(&disk);
    let told: Vec<_> = found.iter().map(|f| (f.kind, f.session.as_deref(), f.from_seq, f.to_seq)).collect();
    assert_eq!(told, [("damage", Some("a"), Some(2), Some(2)), ("batch", Some("a"), Some(1), Some(4))]);
    assert!(found[1].message.contains("a batch lost a part"), "{}", found[1].message);
}
