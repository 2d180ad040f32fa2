//! Index frames: an open that reads only the segment's tail, and what happens where they do not hold.

use super::{append, create, event, open, texts};
use crate::format::{Control, names};
use crate::log::*;
use crate::testing::{SeededRuntime, SimDisk};

const MIB: u32 = 1 << 20;

fn options() -> LogOptions {
    LogOptions { segment_bytes: 32 * MIB, ..LogOptions::default() }
}

/// A store whose one segment holds `mib` MiB; returns the number of events of the sessions "a" and "b".
fn filled(disk: &SimDisk, mib: u32) -> (u64, u64) {
    let log = open(disk, 1, options()).log;
    let (a, _) = create(&log, "a");
    let (b, _) = create(&log, "b");
    let text = "x".repeat(3000);
    let (mut in_a, mut in_b) = (0, 0);
    while log.tail().offset() < mib * MIB {
        append(&log, vec![event(a, in_a, &text, false)]);
        in_a += 1;
        if in_a % 100 == 0 {
            append(&log, vec![event(b, in_b, "text", false)]);
            in_b += 1;
        }
        if in_a % 500 == 0 {
            log.flush(log.tail(), Durability::Durable).unwrap();
        }
    }
    log.flush(log.tail(), Durability::Durable).unwrap();
    // The keeper writes CONTROL once more, with the index frame that the last sync covered.
    log.close().unwrap();
    (in_a, in_b)
}

fn count(log: &Log, id: &str) -> u64 {
    texts(log, id).len() as u64
}

fn last_index(disk: &SimDisk) -> Lsn {
    Control::decode(&disk.contents(names::CONTROL).unwrap()).newest().unwrap().last_index
}

#[test]
fn opening_scans_only_behind_the_last_index_frame() {
    let disk = SimDisk::new();
    let (a, b) = filled(&disk, 22);
    assert!(last_index(&disk).offset() > 18 * MIB, "{}", last_index(&disk));
    for (expected, seed) in (a..).zip(0..3) {
        let rt = Arc::new(SeededRuntime::new(seed));
        let (reader, report) = Log::open_reader(Arc::new(disk.other_process()), rt, options()).unwrap();
        assert!(report.scanned_bytes < 5 * u64::from(MIB), "{report:?}");
        assert_eq!((count(&reader, "a"), count(&reader, "b")), (expected, b));
        let rig = open(&disk, seed, options());
        assert!(rig.report.clean, "{:?}", rig.report);
        assert!(rig.report.scanned_bytes < 5 * u64::from(MIB), "{:?}", rig.report);
        assert_eq!((count(&rig.log, "a"), count(&rig.log, "b")), (expected, b));
        let dense = rig.log.lookup("a").unwrap().unwrap().dense;
        append(&rig.log, vec![event(dense, expected, "more", false)]);
        rig.log.close().unwrap();
    }
}

#[test]
fn a_killed_writer_leaves_index_frames_too() {
    let disk = SimDisk::new();
    let (a, b) = filled(&disk, 10);
    let rig = open(&disk, 2, options());
    let dense = rig.log.lookup("b").unwrap().unwrap().dense;
    let text = "y".repeat(3000);
    let mut seq = b;
    while rig.log.tail().offset() < 19 * MIB {
        append(&rig.log, vec![event(dense, seq, &text, false)]);
        seq += 1;
        if seq % 500 == 0 {
            rig.log.flush(rig.log.tail(), Durability::Durable).unwrap();
        }
    }
    rig.log.flush(rig.log.tail(), Durability::Durable).unwrap();
    rig.log.flush(append(&rig.log, vec![event(dense, seq, "last", false)]).end, Durability::Durable).unwrap();
    assert!(last_index(&disk).offset() > 14 * MIB, "{}", last_index(&disk));
    for disk in [disk.crash(3), disk.kill()] {
        let rig = open(&disk, 4, options());
        assert!(rig.report.losses.is_empty(), "{:?}", rig.report);
        assert!(rig.report.scanned_bytes < 5 * u64::from(MIB), "{:?}", rig.report);
        assert_eq!((count(&rig.log, "a"), count(&rig.log, "b")), (a, seq + 1));
        rig.log.close().unwrap();
        // By now the segment has ended; its index file was made from the index frames.
        let mut findings = Vec::new();
        let rig = open(&disk, 5, options());
        rig.log.verify(&mut |finding| findings.push(finding)).unwrap();
        assert!(findings.iter().all(|finding| finding.note), "{findings:?}");
        assert_eq!((count(&rig.log, "a"), count(&rig.log, "b")), (a, seq + 1));
    }
}

#[test]
fn a_damaged_index_frame_or_control_costs_a_full_scan_and_nothing_else() {
    let disk = SimDisk::new();
    let (a, b) = filled(&disk, 14);
    let at = u64::from(last_index(&disk).offset());
    for (file, place) in [(names::segment(1), at + 100), (names::segment(1), at + 20)] {
        let copy = disk.snapshot();
        assert!(copy.flip(&file, place, 3));
        let rig = open(&copy, 3, options());
        assert!(rig.report.scanned_bytes > 13 * u64::from(MIB), "{:?}", rig.report);
        assert!(!rig.report.losses.is_empty(), "acknowledged bytes are damaged, if only those of an index");
        assert_eq!((count(&rig.log, "a"), count(&rig.log, "b")), (a, b));
    }
    let copy = disk.snapshot();
    copy.remove(names::CONTROL);
    let rig = open(&copy, 3, options());
    assert!(rig.report.scanned_bytes > 13 * u64::from(MIB), "{:?}", rig.report);
    assert_eq!((count(&rig.log, "a"), count(&rig.log, "b")), (a, b));
    let dense = rig.log.lookup("a").unwrap().unwrap().dense;
    let text = "z".repeat(3000);
    let mut seq = a;
    while last_index(&copy) == Lsn::NONE {
        append(&rig.log, vec![event(dense, seq, &text, false)]);
        seq += 1;
        if seq % 100 == 0 {
            rig.log.flush(rig.log.tail(), Durability::Durable).unwrap();
        }
    }
    rig.log.close().unwrap();
    let rig = open(&copy, 3, options());
    assert!(rig.report.scanned_bytes < 5 * u64::from(MIB), "a new chain of index frames: {:?}", rig.report);
    assert_eq!((count(&rig.log, "a"), count(&rig.log, "b")), (seq, b));
}

#[test]
fn damage_in_the_part_that_is_not_scanned_is_noticed_by_who_reads_it() {
    let disk = SimDisk::new();
    let (a, _) = filled(&disk, 14);
    disk.flip(&names::segment(1), u64::from(MIB) + 5, 1);
    let rig = open(&disk, 3, options());
    let entry = rig.log.lookup("a").unwrap().unwrap();
    let results: Vec<_> = rig.log.events(&entry, 0, u64::MAX).unwrap().collect();
    assert_eq!(results.len() as u64, a);
    let bad: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert!(bad.len() == 1 && bad[0].is_corruption(), "{bad:?}");
    let summary = rig.log.verify(&mut |_| {}).unwrap();
    assert!(summary.findings > 0);
}
