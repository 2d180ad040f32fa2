//! Failing syncs and writes (G5) and full disks (G6), at every call of a scripted workload.

use std::io::ErrorKind;
use std::sync::Arc;

use sessionlog::testing::oracle::check;
use sessionlog::testing::workload::{Op, open, options};
use sessionlog::testing::{DiskOp, Model, SeededRuntime, SimDisk, Workload};

use super::{Judged, Verdict, agrees, campaign, fails, first_seed, holds, rounds, survive};

const STEPS: usize = 60;

/// How many calls of a kind the undisturbed script makes.
fn calls_of(seed: u64, op: Option<DiskOp>) -> Result<u64, String> {
    let disk = SimDisk::new();
    let count = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counter = Arc::clone(&count);
    disk.on_call(move |_, found, _| {
        if op.is_none_or(|op| op == found) {
            counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    });
    let what = "the undisturbed script";
    let mut workload = fails(Workload::new(&disk, seed), what)?;
    fails(workload.run(&Workload::script(seed, STEPS)), what)?;
    fails(workload.close(), what)?;
    Ok(count.load(std::sync::atomic::Ordering::SeqCst))
}

/// A script that needs more than one segment soon.
fn heavy_script(seed: u64) -> Vec<Op> {
    let heavier = |op| if let Op::Append(length) = op { Op::Append(length * 6 + 500) } else { op };
    Workload::script(seed, STEPS).into_iter().map(heavier).collect()
}

/// One run with one failing call, and what must hold afterwards. True if the writer was poisoned by it.
fn one_failure(seed: u64, op: DiskOp, nth: u64, error: ErrorKind, what: &str) -> Result<bool, String> {
    let disk = SimDisk::new();
    disk.fail_nth(op, nth, error);
    let Ok(mut workload) = Workload::new(&disk, seed) else {
        disk.clear_faults();
        survive(&disk.kill_writer(), &Model::default(), nth, what)?;
        return Ok(false);
    };
    let mut failed = false;
    for step in Workload::script(seed, STEPS) {
        failed = workload.step(step).is_err();
        if failed || workload.store().map_or(true, |store| store.fault().is_some()) {
            break;
        }
    }
    let poisoned = workload.store().is_ok_and(|store| store.fault().is_some());
    if poisoned {
        stays_poisoned(&workload, what)?;
    }
    if !failed && !poisoned {
        // Something in the background failed and is not needed: the close must be as good as any.
        let closed = workload.close();
        let expected = closed.is_ok() || op == DiskOp::Sync || op == DiskOp::Write;
        agrees(expected, || format!("{what}: {closed:?}"))?;
    }
    let model = workload.model.lock().clone();
    let killed = disk.kill_writer();
    survive(&killed.crash(seed + nth), &model, nth, &format!("{what}, then a power cut"))?;
    killed.clear_faults();
    // The cache still gives what a failed sync dropped. Who goes on from there must not rely on it (P1): three is the
    // seed's way to have the power cut behind the opening.
    survive(&killed.snapshot(), &model, nth * 3, &format!("{what}, and the cache still gives it"))?;
    // The kernel calls the dropped pages clean: once they are evicted, what was not written is gone.
    killed.evict_clean();
    survive(&killed, &model, nth, what)?;
    Ok(poisoned)
}

/// A writer that failed refuses everything but reading (G5).
fn stays_poisoned(workload: &Workload, what: &str) -> Verdict {
    let store = fails(workload.store(), what)?;
    // Later syncs would succeed: nothing may be acknowledged by them.
    for _ in 0..2 {
        let told =
            store.flush().is_err_and(|error| error.is_poisoned() || error.to_string().contains("simulated"));
        agrees(told, || format!("{what}: a flush after the failure says something else"))?;
    }
    for session in store.list() {
        let (event, _) = sessionlog::testing::workload::event(0, "too late").unwrap();
        agrees(session.append(event).is_err(), || format!("{what}: an append was taken after the failure"))?;
    }
    for (id, known) in &workload.model.lock().sessions {
        let Ok(reader) = store.open(id) else { continue };
        let lines: sessionlog::Result<Vec<String>> =
            reader.events().map(|event| event.map(|event| event.to_line())).collect();
        let lines = fails(lines, &format!("{what}: {id} while poisoned"))?;
        let same = lines.iter().zip(&known.lines).all(|(line, known)| **line == **known);
        let length = (known.acknowledged..=known.lines.len()).contains(&lines.len());
        agrees(same && length, || format!("{what}: {id} reads wrongly while poisoned"))?;
    }
    Ok(())
}

/// Each call of these kinds fails once. How many of the failures poisoned the writer.
fn each_fails(seed: u64, ops: &[DiskOp], error: ErrorKind, judged: &mut Judged) -> Result<u64, String> {
    let mut poisoned = 0;
    for op in ops {
        for nth in 1..=calls_of(seed, Some(*op))? {
            *judged += 1;
            let what = format!("seed {seed}, {op} {nth} fails: {error}");
            poisoned += u64::from(one_failure(seed, *op, nth, error, &what)?);
        }
    }
    Ok(poisoned)
}

/// Each sync fails once.
pub(crate) fn failed_syncs(seed: u64, judged: &mut Judged) -> Verdict {
    let poisoned = each_fails(seed, &[DiskOp::Sync], ErrorKind::Other, judged)?;
    agrees(poisoned > 5, || format!("only {poisoned} failed syncs poisoned the writer"))
}

/// Each write, rename and sync of a directory fails once.
pub(crate) fn failed_writes(seed: u64, judged: &mut Judged) -> Verdict {
    let ops = [DiskOp::Write, DiskOp::Rename, DiskOp::SyncDir];
    let poisoned = each_fails(seed, &ops, ErrorKind::Other, judged)?;
    agrees(poisoned > 5, || format!("only {poisoned} failed writes poisoned the writer"))
}

/// A file system that copies what it changes may say "full" at any call that changes something, prepared space or not.
/// A write of accepted data that fails poisons (G5); nothing that was acknowledged is lost, and the store that is
/// opened again works.
pub(crate) fn refused_once(seed: u64, judged: &mut Judged) -> Verdict {
    let changes = [DiskOp::Write, DiskOp::Sync, DiskOp::SyncDir, DiskOp::Allocate, DiskOp::Create];
    let more = [DiskOp::CreateDir, DiskOp::Rename, DiskOp::Unlink, DiskOp::SetLen];
    let ops: Vec<DiskOp> = changes.into_iter().chain(more).collect();
    let poisoned = each_fails(seed, &ops, ErrorKind::StorageFull, judged)?;
    agrees(poisoned > 5, || format!("only {poisoned} refusals poisoned the writer"))
}

/// The disk is full from a call on: what needs space is refused, reading goes on, and all goes on with room again (G6).
pub(crate) fn full_disks(seed: u64, judged: &mut Judged) -> Verdict {
    full_disks_of(seed, &heavy_script(seed), judged)
}

/// The same with any script.
pub(crate) fn full_disks_of(seed: u64, script: &[Op], judged: &mut Judged) -> Verdict {
    let mut refused = 0;
    for at in (1..=calls_of(seed, None)?).filter(|at| at % 3 == seed % 3) {
        *judged += 1;
        let what = format!("seed {seed}, no space from call {at} on");
        let disk = SimDisk::new();
        disk.on_call(move |call, _, disk| {
            if call == at {
                disk.set_free_space(Some(0));
            }
        });
        let mut workload = match Workload::new(&disk, seed) {
            Ok(workload) => workload,
            Err(error) => {
                agrees(error.is_full(), || format!("{what}: {error}"))?;
                disk.clear_on_call();
                disk.set_free_space(None);
                survive(&disk, &Model::default(), seed, &what)?;
                continue;
            }
        };
        for step in script.iter().copied() {
            let done = workload.step(step);
            if workload.store().is_err() {
                // Opening needs room where neither the last segment nor its prepared space has any left.
                break;
            }
            fails(done, &format!("{what}: {step:?}"))?;
        }
        refused += workload.refused;
        disk.clear_on_call();
        let runtime = Arc::new(SeededRuntime::new(seed));
        let reader = fails(options(&disk.other_process(), &runtime).open_read_only(""), &what)?;
        let readable = fails(reader.stored(), &what)?.all(|stat| stat.is_ok());
        agrees(readable, || format!("{what}: reading needs no space"))?;
        disk.set_free_space(None);
        if workload.store().is_ok() {
            goes_on_with_room(&mut workload, &what)?;
        }
        let model = workload.model.lock().clone();
        survive(&disk.kill_writer(), &model, at, &what)?;
    }
    agrees(refused > 100, || format!("only {refused} ops were refused"))
}

fn goes_on_with_room(workload: &mut Workload, what: &str) -> Verdict {
    let fault = fails(workload.store(), what)?.fault();
    agrees(fault.is_none(), || format!("{what}: poisoned: {fault:?}"))?;
    let before = workload.refused;
    // A failed preparation answers one refusal; what is asked for again is tried again.
    let steps = [Op::Create, Op::Append(50), Op::Append(50), Op::Append(5000), Op::FlushAll];
    for step in steps.into_iter().cycle().take(15) {
        fails(workload.step(step), &format!("{what}, with room again"))?;
    }
    agrees(workload.refused <= before + 2, || format!("{what}: still refused with room again"))?;
    let complaints = check(fails(workload.store(), what)?, &workload.model.lock());
    agrees(complaints.0.is_empty(), || format!("{what}: {:#?}", complaints.0))
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_and_reopening_recovers() {
    campaign(4000, 20, "failed syncs", failed_syncs);
}

#[test]
fn after_a_failed_write_nothing_is_acknowledged_and_reopening_recovers() {
    campaign(5000, 20, "failed writes, renames and directory syncs", failed_writes);
}

#[test]
fn a_disk_that_is_full_from_any_call_on_refuses_and_goes_on_when_there_is_room() {
    campaign(6000, 20, "full disks", full_disks);
}

#[test]
fn any_single_change_may_be_refused_as_on_a_full_disk() {
    campaign(9500, 100, "a full disk at any single change", refused_once);
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
            holds(survive(&disk, &model, seed, &what));
        }
    }
    println!(
        "full at a single call: {runs} runs; {refused} ops and {unopened} creations of the store refused"
    );
    assert!(runs > 100 && refused + unopened > 10);
}

/// With no space at all a store is read, deleted from, closed and opened.
pub(crate) fn no_space(seed: u64, judged: &mut Judged) -> Verdict {
    let what = "no space at all";
    let disk = SimDisk::new();
    let mut workload = fails(Workload::new(&disk, seed), what)?;
    let ops = [Op::Create, Op::Create, Op::Create, Op::Append(100), Op::Batch(3), Op::FlushAll];
    fails(workload.run(&ops), what)?;
    disk.set_free_space(Some(0));
    for _ in 0..100 {
        fails(workload.step(Op::Append(4000)), what)?;
    }
    fails(workload.step(Op::FlushAll), what)?;
    let refused = workload.refused;
    agrees(refused > 0, || format!("{what}: nothing was refused"))?;
    fails(workload.step(Op::Delete), what)?;
    fails(workload.step(Op::FlushAll), what)?;
    agrees(workload.refused == refused, || "a tombstone has no place on a full disk".into())?;
    let complaints = check(fails(workload.store(), what)?, &workload.model.lock());
    agrees(complaints.0.is_empty(), || format!("{what}: {:#?}", complaints.0))?;
    let killed = (disk.snapshot().kill_writer(), workload.model.lock().clone());
    fails(workload.close(), what)?;
    let model = workload.model.lock().clone();
    for (left, (disk, model)) in [("closed", (disk, model)), ("killed", killed)] {
        *judged += 1;
        let what = format!("{what}, {left}");
        let (store, _) = fails(open(&disk, seed), &what)?;
        let complaints = check(&store, &model);
        agrees(complaints.0.is_empty(), || format!("{what}: {:#?}", complaints.0))?;
    }
    Ok(())
}

#[test]
fn with_no_space_at_all_a_store_is_read_deleted_from_closed_and_opened() {
    campaign(7000, 1, "full disks, opened", no_space);
}
