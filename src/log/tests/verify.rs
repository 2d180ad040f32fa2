//! What verification says of stores that are half made, or whose segments are lost.

use super::repair::findings;
use super::{append, create, event, open, small, try_open};
use crate::format::names;
use crate::log::*;
use crate::testing::{SeededRuntime, SimDisk};

/// A store whose creation was cut short is completed by the next opening, so it is nothing that verification may call
/// a finding; and once it is a store, a missing CONTROL is one.
#[test]
fn a_half_created_store_is_a_note_and_no_finding() {
    let seen = |disk: &SimDisk| {
        let rt = Arc::new(SeededRuntime::new(1));
        let (log, _) = Log::open_reader(Arc::new(disk.clone()), rt, small()).ok()?;
        let mut all = Vec::new();
        let summary = log.verify(&mut |finding| all.push(finding)).unwrap();
        assert_eq!(summary.findings, all.iter().filter(|finding| !finding.note).count() as u64);
        Some(all)
    };
    let mut half = 0;
    let calls = {
        let disk = SimDisk::new();
        drop(open(&disk, 1, small()));
        disk.calls()
    };
    for call in 0..calls {
        let disk = SimDisk::new();
        disk.stop_at_call(call);
        drop(try_open(&disk, 1, small()));
        for left in (0..6).map(|seed| disk.crash(seed)) {
            // Before CONTROL or LIVE is there, there is no store yet.
            let Some(found) = seen(&left) else { continue };
            assert!(found.iter().all(|finding| finding.note), "call {call}: {found:?}");
            half += usize::from(found.iter().any(|finding| finding.kind == "half-created"));
            let rig = open(&left, 2, small());
            assert_eq!((rig.report.losses.len(), rig.report.control_rebuilt), (0, false), "{:?}", rig.report);
            create(&rig.log, "a");
            rig.log.close().unwrap();
            drop(rig);
            assert_eq!(seen(&left), Some(Vec::new()), "call {call}");
        }
    }
    assert!(half > 5, "{half}");
    let disk = SimDisk::new();
    drop(open(&disk, 1, small()));
    assert!(disk.remove("CONTROL"));
    assert_eq!(seen(&disk).unwrap()[0].kind, "control");
}

type Harm = fn(&SimDisk, &str);

/// What is wrong with a header is said as it is.
#[test]
fn a_header_that_is_lost_is_not_called_a_flipped_bit() {
    let harms: [(&str, Harm); 4] = [
        ("a bit of the segment header is flipped", |disk, name| assert!(disk.flip(name, 40, 2))),
        ("is zero, lost or never written", |disk, name| assert!(disk.zero(name, 0..512))),
        ("does not validate", |disk, name| assert!(disk.overwrite(name, 30, &[7; 100]))),
        ("cannot be read", |disk, name| assert!(disk.fail_reads(name, 0..512))),
    ];
    for (text, harm) in harms {
        for number in [1, 2] {
            let disk = two_segments();
            let name = names::segment(number);
            harm(&disk, &name);
            let found = findings(&disk);
            let [header] = found.as_slice() else { panic!("{text}, {name}: {found:?}") };
            assert!(header.message.contains(text), "{name}: {header:?}");
            assert_eq!((header.kind, header.offset, header.length), ("damage", Some(0), Some(512)));
        }
    }
}

/// A closed store of two segments.
fn two_segments() -> SimDisk {
    let disk = SimDisk::new();
    let rig = open(&disk, 1, small());
    let (dense, _) = create(&rig.log, "a");
    let text = "x".repeat(1000);
    for seq in 0..90 {
        let end = append(&rig.log, vec![event(dense, seq, &text, false)]).end;
        rig.log.flush(end, Durability::Durable).unwrap();
    }
    rig.log.close().unwrap();
    assert_eq!(disk.files().iter().filter(|name| name.ends_with(".seg")).count(), 2, "{:?}", disk.files());
    disk
}

/// Before any writer has noted it, verification of a reader tells of a segment that is gone, or that nothing can read.
#[test]
fn a_lost_segment_is_a_finding_before_a_writer_has_seen_it() {
    let harms: [(&str, Harm); 2] = [
        ("missing", |disk, name| assert!(disk.remove(name))),
        ("damage", |disk, name| {
            // Neither CONTROL nor an index is left to say what the header said.
            assert!(disk.remove("CONTROL") && disk.zero(name, 0..512));
            disk.remove(&name.replace(".seg", ".idx"));
        }),
    ];
    for (kind, harm) in harms {
        for number in [1, 2] {
            let disk = two_segments();
            let name = names::segment(number);
            harm(&disk, &name);
            let found = findings(&disk);
            let of_it = found.iter().filter(|finding| finding.file.as_deref() == Some(name.as_ref()));
            let of_it: Vec<&Finding> = of_it.collect();
            assert_eq!(of_it.len(), 1, "{kind} {name}: {found:?}");
            assert_eq!(of_it[0].kind, kind, "{found:?}");
        }
    }
}

/// The indexer merges runs while somebody verifies: a run that was there when the folder was listed, and is gone when
/// it is opened, is no finding.
#[test]
fn a_run_that_is_merged_away_meanwhile_is_no_finding() {
    let mut disk = SimDisk::new();
    // A segment a life, and in the end runs of those that ended.
    for life in 0..4 {
        let rig = open(&disk, life, small());
        create(&rig.log, &format!("s{life}"));
        rig.log.flush(rig.log.tail(), Durability::Durable).unwrap();
        if life == 3 {
            rig.log.close().unwrap();
        }
        disk = disk.kill();
    }
    let verify = |disk: &SimDisk| {
        let rt = Arc::new(SeededRuntime::new(1));
        let (log, _) = Log::open_reader(Arc::new(disk.clone()), rt, small()).unwrap();
        log.verify(&mut |_| {}).unwrap().findings
    };
    let counted = disk.snapshot();
    assert_eq!(verify(&counted), 0);
    let opens_a_run = |line: &String| line.contains("open directory/");
    let call = counted.trace().iter().rposition(opens_a_run).expect("a run is opened") as u64;
    let taken = disk.snapshot();
    taken.on_call(move |number, _, disk| {
        if number == call {
            disk.files().iter().filter(|name| name.ends_with(".run")).for_each(|name| {
                disk.remove(name);
            });
        }
    });
    assert_eq!(verify(&taken), 0);
    assert!(!taken.files().iter().any(|name| name.ends_with(".run")), "it was taken away at call {call}");
}
