//! Failing syncs and writes (G5) and full disks (G6), at every call of a scripted workload.

use std::io::ErrorKind;
use std::sync::Arc;

use sessionlog::testing::oracle::check;
use sessionlog::testing::workload::{Op, open, options};
use sessionlog::testing::{DiskOp, SeededRuntime, SimDisk, Workload};

use super::{first_seed, rounds, survive};

const STEPS: usize = 60;

/// How many calls of a kind the undisturbed script makes.
fn calls_of(seed: u64, op: Option<DiskOp>) -> u64 {
    let disk = SimDisk::new();
    let count = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counter = Arc::clone(&count);
    disk.on_call(move |_, found, _| {
        if op.is_none_or(|op| op == found) {
            counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    });
    let mut workload = Workload::new(&disk, seed).unwrap();
    workload.run(&Workload::script(seed, STEPS)).unwrap();
    workload.close().unwrap();
    count.load(std::sync::atomic::Ordering::SeqCst)
}

/// A script that needs more than one segment soon.
fn heavy_script(seed: u64) -> Vec<Op> {
    let heavier = |op| if let Op::Append(length) = op { Op::Append(length * 6 + 500) } else { op };
    Workload::script(seed, STEPS).into_iter().map(heavier).collect()
}

/// One run with one failing call, and what must hold afterwards. True if the writer was poisoned by it.
fn one_failure(seed: u64, op: DiskOp, nth: u64, error: ErrorKind, what: &str) -> bool {
    let disk = SimDisk::new();
    disk.fail_nth(op, nth, error);
    let mut poisoned = false;
    let mut model = Default::default();
    if let Ok(mut workload) = Workload::new(&disk, seed) {
        let mut failed = false;
        for step in Workload::script(seed, STEPS) {
            if let Err(error) = workload.step(step) {
                failed = true;
                assert!(!error.to_string().is_empty());
                break;
            }
            let Ok(store) = workload.store() else { break };
            if store.fault().is_some() {
                break;
            }
        }
        if let Ok(store) = workload.store()
            && store.fault().is_some()
        {
            poisoned = true;
            // Later syncs would succeed: nothing may be acknowledged by them (G5).
            for _ in 0..2 {
                let error = store.flush().expect_err(what);
                assert!(error.is_poisoned() || error.to_string().contains("simulated"), "{what}: {error}");
            }
            for session in store.list() {
                let (event, _) = sessionlog::testing::workload::event(0, "too late").unwrap();
                assert!(session.append(event).is_err(), "{what}: an append was taken after the failure");
            }
            for (id, known) in &workload.model.lock().sessions {
                let Ok(reader) = store.open(id) else { continue };
                let lines: Vec<String> = reader.events().map(|event| event.unwrap().to_line()).collect();
                let same = lines.iter().zip(&known.lines).all(|(line, known)| **line == **known);
                assert!(
                    same && lines.len() <= known.lines.len(),
                    "{what}: {id} reads wrongly while poisoned"
                );
                assert!(lines.len() >= known.acknowledged, "{what}: {id} is shorter while poisoned");
            }
        }
        if !failed && !poisoned {
            // Something in the background failed and is not needed: the close must be as good as any.
            let closed = workload.close();
            assert!(closed.is_ok() || op == DiskOp::Sync || op == DiskOp::Write, "{what}: {closed:?}");
        }
        model = workload.model.lock().clone();
        let killed = disk.kill_writer();
        survive(&killed.crash(seed + nth), &model, nth, &format!("{what}, then a power cut"));
        killed.clear_faults();
        // The kernel calls the dropped pages clean: once they are evicted, what was not written is gone.
        killed.evict_clean();
        survive(&killed, &model, nth, what);
        return poisoned;
    }
    disk.clear_faults();
    let disk = disk.kill_writer();
    survive(&disk, &model, nth, what);
    poisoned
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_and_reopening_recovers() {
    let (mut runs, mut poisoned) = (0u64, 0u64);
    for round in 0..rounds() {
        let seed = first_seed() + 4000 + round;
        for nth in 1..=calls_of(seed, Some(DiskOp::Sync)) {
            let what = format!("seed {seed}, sync {nth} fails");
            poisoned += u64::from(one_failure(seed, DiskOp::Sync, nth, ErrorKind::Other, &what));
            runs += 1;
        }
    }
    println!("failed syncs: {runs}, {poisoned} of which poisoned the writer");
    assert!(poisoned > 5);
}

#[test]
fn after_a_failed_write_nothing_is_acknowledged_and_reopening_recovers() {
    let (mut runs, mut poisoned) = (0u64, 0u64);
    for round in 0..rounds() {
        let seed = first_seed() + 5000 + round;
        for op in [DiskOp::Write, DiskOp::Rename, DiskOp::SyncDir] {
            for nth in 1..=calls_of(seed, Some(op)) {
                let what = format!("seed {seed}, {op} {nth} fails");
                poisoned += u64::from(one_failure(seed, op, nth, ErrorKind::Other, &what));
                runs += 1;
            }
        }
    }
    println!("failed writes, renames and directory syncs: {runs}, {poisoned} of which poisoned the writer");
    assert!(poisoned > 5);
}

#[test]
fn a_disk_that_is_full_from_any_call_on_refuses_and_goes_on_when_there_is_room() {
    let (mut runs, mut refused, mut unopened) = (0u64, 0u64, 0u64);
    for round in 0..rounds() {
        let seed = first_seed() + 6000 + round;
        for at in 1..=calls_of(seed, None) {
            if at % 3 != round % 3 {
                continue;
            }
            let what = format!("seed {seed}, no space from call {at} on");
            let disk = SimDisk::new();
            disk.on_call(move |call, _, disk| {
                if call == at {
                    disk.set_free_space(Some(0));
                }
            });
            runs += 1;
            let mut workload = match Workload::new(&disk, seed) {
                Ok(workload) => workload,
                Err(error) => {
                    assert!(error.is_full(), "{what}: {error}");
                    disk.clear_on_call();
                    disk.set_free_space(None);
                    survive(&disk, &Default::default(), seed, &what);
                    continue;
                }
            };
            for step in heavy_script(seed) {
                let done = workload.step(step);
                if workload.store().is_err() {
                    // Opening needs room where neither the last segment nor its prepared space has any left.
                    unopened += 1;
                    break;
                }
                done.unwrap_or_else(|error| panic!("{what}: {step:?}: {error}"));
            }
            refused += workload.refused;
            disk.clear_on_call();
            let runtime = Arc::new(SeededRuntime::new(seed));
            let reader = options(&disk.other_process(), &runtime).open_read_only("").unwrap();
            assert!(reader.stored().unwrap().all(|stat| stat.is_ok()), "{what}: reading needs no space");
            disk.set_free_space(None);
            if let Ok(store) = workload.store() {
                assert!(store.fault().is_none(), "{what}: poisoned: {:?}", store.fault());
                let before = workload.refused;
                // A failed preparation answers one refusal; what is asked for again is tried again.
                let steps = [Op::Create, Op::Append(50), Op::Append(50), Op::Append(5000), Op::FlushAll];
                for step in steps.into_iter().cycle().take(15) {
                    workload.step(step).unwrap_or_else(|error| panic!("{what}, with room again: {error}"));
                }
                assert!(workload.refused <= before + 2, "{what}: still refused with room again");
                let complaints = check(workload.store().unwrap(), &workload.model.lock());
                assert!(complaints.0.is_empty(), "{what}: {:#?}", complaints.0);
            }
            let model = workload.model.lock().clone();
            survive(&disk.kill_writer(), &model, at, &what);
        }
    }
    println!("full disks: {runs}; {refused} ops refused, {unopened} openings refused");
    assert!(refused > 100);
}

/// As [`Workload::step`]; where it was the opening that found no space, it is opened again, as a caller would.
fn step_or_open_again(workload: &mut Workload, step: Op, what: &str) {
    workload.step(step).unwrap_or_else(|error| panic!("{what}: {step:?}: {error}"));
    if workload.store().is_err() {
        workload.step(Op::Reopen).unwrap();
        workload.store().unwrap_or_else(|error| panic!("{what}: with room again: {error}"));
    }
}

/// The disk has no free space at one call, and has again at the next: what needs new space there is refused, what has
/// its place goes through, and nothing is lost or poisoned (G6).
#[test]
fn a_disk_that_is_full_at_a_single_call_costs_one_refusal_at_most() {
    let (mut runs, mut refused, mut unopened) = (0u64, 0u64, 0u64);
    for round in 0..rounds() {
        let seed = first_seed() + 9000 + round;
        let script: Vec<Op> = heavy_script(seed).into_iter().take(24).collect();
        for at in 0.. {
            let what = format!("seed {seed}, no space at call {at}");
            let disk = SimDisk::new();
            disk.on_call(move |call, _, disk| {
                if call == at || call == at + 1 {
                    disk.set_free_space((call == at).then_some(0));
                }
            });
            let mut workload = match Workload::new(&disk, seed) {
                Ok(workload) => workload,
                Err(error) => {
                    assert!(error.is_full(), "{what}: {error}");
                    unopened += 1;
                    Workload::new(&disk, seed).unwrap_or_else(|error| panic!("{what}, once more: {error}"))
                }
            };
            script.iter().for_each(|step| step_or_open_again(&mut workload, *step, &what));
            if disk.calls() <= at {
                break;
            }
            runs += 1;
            assert!(workload.refused <= 1, "{what}: {} ops were refused", workload.refused);
            refused += workload.refused;
            let steps = [Op::Create, Op::Append(50), Op::Append(5000), Op::Batch(3), Op::FlushAll];
            steps.iter().for_each(|step| step_or_open_again(&mut workload, *step, &what));
            assert!(workload.refused <= 1, "{what}: still refused with room again");
            let store = workload.store().unwrap();
            assert!(store.fault().is_none(), "{what}: poisoned: {:?}", store.fault());
            let complaints = check(store, &workload.model.lock());
            assert!(complaints.0.is_empty(), "{what}: {:#?}", complaints.0);
            workload.close().unwrap_or_else(|error| panic!("{what}: close: {error}"));
            let model = workload.model.lock().clone();
            survive(&disk, &model, seed, &what);
        }
    }
    println!(
        "full at a single call: {runs} runs; {refused} ops and {unopened} creations of the store refused"
    );
    assert!(runs > 100 && refused + unopened > 10);
}

/// A file system that copies what it changes may say "full" at any call that changes something, prepared space or not.
/// A write of accepted data that fails poisons (G5); nothing that was acknowledged is lost, and the store that is
/// opened again works.
#[test]
fn any_single_change_may_be_refused_as_on_a_full_disk() {
    let (mut runs, mut poisoned) = (0u64, 0u64);
    let changes = [DiskOp::Write, DiskOp::Sync, DiskOp::SyncDir, DiskOp::Allocate, DiskOp::Create];
    let more = [DiskOp::CreateDir, DiskOp::Rename, DiskOp::Unlink, DiskOp::SetLen];
    for round in 0..rounds() {
        let seed = first_seed() + 9500 + round;
        for op in changes.into_iter().chain(more) {
            for nth in 1..=calls_of(seed, Some(op)) {
                let what = format!("seed {seed}, {op} {nth} fails as on a full disk");
                poisoned += u64::from(one_failure(seed, op, nth, ErrorKind::StorageFull, &what));
                runs += 1;
            }
        }
    }
    println!("a full disk at any single change: {runs} runs, {poisoned} of which poisoned the writer");
    assert!(runs > 100 && poisoned > 5);
}

#[test]
fn with_no_space_at_all_a_store_is_read_deleted_from_closed_and_opened() {
    let disk = SimDisk::new();
    let seed = first_seed() + 7000;
    let mut workload = Workload::new(&disk, seed).unwrap();
    workload.run(&[Op::Create, Op::Create, Op::Create, Op::Append(100), Op::Batch(3), Op::FlushAll]).unwrap();
    disk.set_free_space(Some(0));
    while workload.refused == 0 {
        workload.step(Op::Append(4000)).unwrap();
    }
    workload.step(Op::FlushAll).unwrap();
    let refused = workload.refused;
    workload.step(Op::Delete).unwrap();
    workload.step(Op::FlushAll).unwrap();
    assert_eq!(workload.refused, refused, "a tombstone has its place on a full disk");
    let complaints = check(workload.store().unwrap(), &workload.model.lock());
    assert!(complaints.0.is_empty(), "{:#?}", complaints.0);
    let killed = (disk.snapshot(), workload.model.lock().clone());
    workload.close().unwrap();
    let model = workload.model.lock().clone();
    let (store, _) = open(&disk, seed).expect("a closed store opens for writing on a full disk");
    let complaints = check(&store, &model);
    assert!(complaints.0.is_empty(), "{:#?}", complaints.0);
    store.close().unwrap();
    let (disk, model) = killed;
    let (store, _) =
        open(&disk.kill_writer(), seed).expect("a killed store opens for writing on a full disk");
    let complaints = check(&store, &model);
    assert!(complaints.0.is_empty(), "{:#?}", complaints.0);
}
