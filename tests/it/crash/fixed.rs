//! CONTROL and LIVE damaged or gone (E3): the store opens, says so, and loses nothing that was acknowledged.

use std::sync::Arc;

use sessionlog::testing::oracle::{check, look};
use sessionlog::testing::workload::{Op, open, options};
use sessionlog::testing::{Model, SeededRuntime, SimDisk, Workload};
use sessionlog::{Finding, RecoveryReport, SessionStore};

/// A store of several segments; killed ones end in a group that no witness covers.
fn written(closed: bool) -> (SimDisk, Model) {
    let disk = SimDisk::new();
    let mut workload = Workload::new(&disk, 3).unwrap();
    let mut ops = vec![Op::Create, Op::Append(50), Op::Create, Op::Batch(3), Op::FlushAll, Op::Fork];
    for _ in 0..10 {
        ops.extend([Op::Append(9000), Op::FlushAll, Op::Append(20), Op::Idle(30)]);
    }
    ops.extend([Op::Append(30), Op::FlushAll, Op::Batch(4), Op::FlushAll]);
    workload.run(&ops).unwrap();
    if closed {
        workload.close().unwrap();
    }
    let model = workload.model.lock().clone();
    (disk.snapshot().kill_writer(), model)
}

fn reader(disk: &SimDisk) -> SessionStore {
    options(disk, &Arc::new(SeededRuntime::new(9))).open_read_only("").unwrap()
}

/// Nothing is lost: for a reader, for the writer that repairs it, and for the next one, who finds nothing to repair.
fn opens_whole(disk: &SimDisk, model: &Model, what: &str) -> RecoveryReport {
    let sight = look(&reader(disk), model);
    assert!(sight.wrong.is_empty() && sight.lost.is_empty(), "{what}, read: {sight:?}");
    let (store, _) = open(disk, 1).unwrap_or_else(|error| panic!("{what}: {error}"));
    let report = store.recovery().clone();
    let complaints = check(&store, model);
    assert!(complaints.0.is_empty(), "{what}: {:#?}", complaints.0);
    store.close().unwrap();
    let (store, _) = open(disk, 2).unwrap();
    let again = store.recovery();
    assert!(again.clean && again.notes.is_empty() && !again.control_rebuilt, "{what}, again: {again:?}");
    assert!(check(&store, model).0.is_empty(), "{what}, again");
    store.close().unwrap();
    report
}

fn findings(disk: &SimDisk) -> Vec<Finding> {
    let mut all = Vec::new();
    reader(disk).verify(&mut |finding| all.push(finding)).unwrap();
    all.retain(|finding| !finding.note);
    all
}

type Harm = fn(&SimDisk);

#[test]
fn control_with_both_slots_bad_is_rebuilt_and_the_report_says_so() {
    let harms: [(&str, Harm); 6] = [
        ("a bit of each slot is flipped", |disk| {
            assert!(disk.flip("CONTROL", 40, 1) && disk.flip("CONTROL", 4096 + 50, 6));
        }),
        ("zeros", |disk| assert!(disk.zero("CONTROL", 0..8192))),
        ("empty", |disk| assert!(disk.truncate("CONTROL", 0))),
        ("cut in the first slot", |disk| assert!(disk.truncate("CONTROL", 511))),
        ("gone", |disk| assert!(disk.remove("CONTROL"))),
        ("unreadable", |disk| assert!(disk.fail_reads("CONTROL", 0..8192))),
    ];
    for closed in [true, false] {
        for (what, harm) in harms {
            let (disk, model) = written(closed);
            harm(&disk);
            let what = format!("CONTROL: {what}, closed {closed}");
            let found = findings(&disk);
            assert!(found.iter().any(|finding| finding.kind == "control"), "{what}: {found:?}");
            let report = opens_whole(&disk, &model, &what);
            assert!(report.control_rebuilt && !report.created, "{what}: {report:?}");
            assert!(report.losses.is_empty() && report.cut.is_empty(), "{what}: {report:?}");
            assert_eq!(findings(&disk), Vec::new(), "{what}: after the repair");
        }
    }
}

#[test]
fn control_with_one_slot_bad_goes_by_the_other_with_no_more_than_a_note() {
    for closed in [true, false] {
        for slot in [0, 4096] {
            for harm in ["flip", "zero"] {
                let (disk, model) = written(closed);
                match harm {
                    "flip" => assert!(disk.flip("CONTROL", slot + 48, 2)),
                    _ => assert!(disk.zero("CONTROL", slot..slot + 512)),
                }
                let what = format!("CONTROL: {harm} of the slot at {slot}, closed {closed}");
                let report = opens_whole(&disk, &model, &what);
                assert!(report.losses.is_empty() && report.cut.is_empty(), "{what}: {report:?}");
                let named =
                    |note: &String| note.contains("CONTROL") && note.contains(&format!("byte {slot}"));
                assert!(report.notes.iter().any(named), "{what}: {report:?}");
            }
        }
    }
}

#[test]
fn a_live_set_that_is_damaged_or_gone_is_rebuilt_and_the_report_says_so() {
    let harms: [(&str, Harm); 6] = [
        ("a flipped bit", |disk| assert!(disk.flip("LIVE", 20, 3))),
        ("zeros", |disk| assert!(disk.zero("LIVE", 0..4096))),
        ("empty", |disk| assert!(disk.truncate("LIVE", 0))),
        ("cut", |disk| assert!(disk.truncate("LIVE", 30))),
        ("gone", |disk| assert!(disk.remove("LIVE"))),
        ("unreadable", |disk| assert!(disk.fail_reads("LIVE", 0..4096))),
    ];
    for closed in [true, false] {
        for (what, harm) in harms {
            let (disk, model) = written(closed);
            harm(&disk);
            let what = format!("LIVE: {what}, closed {closed}");
            let found = findings(&disk);
            assert!(found.iter().any(|finding| finding.kind == "live-set"), "{what}: {found:?}");
            let report = opens_whole(&disk, &model, &what);
            assert!(report.losses.is_empty() && report.cut.is_empty(), "{what}: {report:?}");
            let told = |note: &String| note.contains("LIVE") && note.contains("rebuilt");
            assert!(report.notes.iter().any(told), "{what}: {report:?}");
            assert_eq!(findings(&disk), Vec::new(), "{what}: after the repair");
        }
    }
}

#[test]
fn without_control_and_live_the_segments_alone_tell_everything() {
    for closed in [true, false] {
        let (disk, model) = written(closed);
        assert!(disk.remove("CONTROL") && disk.remove("LIVE"));
        let report = opens_whole(&disk, &model, "CONTROL and LIVE gone");
        assert!(report.control_rebuilt && !report.created && report.losses.is_empty(), "{report:?}");
    }
}

/// Only LIVE remembers damage of ended segments, and CONTROL that there was some. Without both, everything is read
/// again: a session that may have lost its last events must not pass for whole.
#[test]
fn known_damage_is_found_again_when_control_and_live_are_lost() {
    for gone in [&["LIVE"][..], &["CONTROL"], &["CONTROL", "LIVE"]] {
        let disk = SimDisk::new();
        let mut workload = Workload::new(&disk, 3).unwrap();
        let ops = [Op::Create, Op::Create, Op::Append(90), Op::FlushAll, Op::Append(900), Op::FlushAll];
        workload.run(&ops).unwrap();
        workload.close().unwrap();
        let model = workload.model.lock().clone();
        let segment = "segments/00000001.seg";
        assert!(disk.zero(segment, 1024..1536));
        let (store, _) = open(&disk, 1).unwrap();
        assert_eq!(store.recovery().losses.len(), 1);
        store.close().unwrap();
        gone.iter().for_each(|file| assert!(disk.remove(file)));
        let (store, _) = open(&disk, 2).unwrap();
        let losses = &store.recovery().losses;
        assert!(losses.iter().any(|loss| loss.file.to_str() == Some(segment)), "{gone:?}: {losses:?}");
        let sight = look(&store, &model);
        assert!(sight.wrong.is_empty() && !sight.lost.is_empty(), "{gone:?}: {sight:?}");
    }
}

/// LIVE alone tells which store it is when the header of the only segment is lost with CONTROL.
#[test]
fn a_writer_opens_where_the_only_segment_and_control_are_lost() {
    for live in [true, false] {
        let disk = SimDisk::new();
        let mut workload = Workload::new(&disk, 3).unwrap();
        workload.run(&[Op::Create, Op::Append(50), Op::FlushAll]).unwrap();
        workload.close().unwrap();
        assert!(disk.zero("segments/00000001.seg", 0..512) && disk.remove("CONTROL"));
        assert!(live || disk.remove("LIVE"));
        match open(&disk, 1) {
            Ok((store, _)) => assert!(live && !store.recovery().losses.is_empty(), "{:?}", store.recovery()),
            Err(error) => assert!(!live && error.is_corruption(), "{error}"),
        }
    }
}
