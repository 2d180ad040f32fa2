//! Power cuts and kills at every disk call of a scripted workload, and during the recovery from them (G1, G2, P1).

use std::sync::{Arc, Mutex};

use sessionlog::testing::oracle::check;
use sessionlog::testing::workload::{Op, open, options};
use sessionlog::testing::{DiskOp, Model, Random, SeededRuntime, SimDisk, Workload};

use super::{Judged, Verdict, agrees, campaign, fails, survive};

/// The disk as it is at a call, and what is acknowledged by then.
pub(crate) struct Moment {
    pub(crate) call: u64,
    pub(crate) op: DiskOp,
    pub(crate) disk: SimDisk,
    pub(crate) model: Model,
}

/// Moments as they are kept.
pub(crate) type Moments = Arc<Mutex<Vec<Moment>>>;

/// The moments of a script that meets everything.
fn moments(seed: u64, steps: usize) -> Result<Vec<Moment>, String> {
    moments_of(seed, &Workload::script(seed, steps))
}

/// Runs a script once and keeps the moment before every call that changes the disk or makes a change durable.
pub(crate) fn moments_of(seed: u64, script: &[Op]) -> Result<Vec<Moment>, String> {
    let disk = SimDisk::new();
    let kept = Moments::default();
    let mut workload = {
        // The creation of the store is part of the script.
        let (list, model) = (Arc::clone(&kept), Arc::new(Mutex::new(Model::default())));
        keep(&disk, list, move || model.lock().unwrap().clone());
        fails(Workload::new(&disk, seed), "the creation")?
    };
    let (list, model) = (Arc::clone(&kept), Arc::clone(&workload.model));
    keep(&disk, list, move || model.lock().clone());
    fails(workload.run(script), "the script")?;
    fails(workload.close(), "the close")?;
    disk.clear_on_call();
    let model = workload.model.lock().clone();
    let mut all = std::mem::take(&mut *kept.lock().unwrap());
    all.push(Moment { call: disk.calls(), op: DiskOp::Sync, disk: disk.snapshot(), model });
    Ok(all)
}

/// Keeps the moment before every call from now on that changes the disk or makes a change durable.
pub(crate) fn keep(disk: &SimDisk, list: Moments, model: impl Fn() -> Model + Send + 'static) {
    disk.on_call(move |call, op, disk| {
        if op.is_change() || op.is_sync() {
            list.lock().unwrap().push(Moment { call, op, disk: disk.snapshot(), model: model() });
        }
    });
}

/// A power cut at every call, twice.
pub(crate) fn cuts(seed: u64, judged: &mut Judged) -> Verdict {
    let mut acknowledged = 0;
    for moment in moments(seed, 90)? {
        for cut in 0..2 {
            let choice = seed.wrapping_mul(1_000_003) + moment.call * 7 + cut;
            let what = format!("seed {seed}, power cut {choice} at call {} ({:?})", moment.call, moment.op);
            *judged += 1;
            survive(&moment.disk.crash(choice), &moment.model, choice, &what)?;
        }
        acknowledged = moment.model.acknowledged();
    }
    agrees(acknowledged > 20, || format!("only {acknowledged} events were acknowledged"))
}

/// Power cuts while a store is created and first used.
pub(crate) fn creations(seed: u64, judged: &mut Judged) -> Verdict {
    let script =
        [Op::Create, Op::Append(40), Op::FlushAll, Op::Append(600), Op::Flush, Op::Reopen, Op::Append(9)];
    for moment in moments_of(seed, &script)? {
        for cut in 0..4 {
            let choice = seed + moment.call * 4 + cut;
            *judged += 1;
            let what =
                format!("creations, seed {seed}, cut {choice} at call {} ({:?})", moment.call, moment.op);
            survive(&moment.disk.crash(choice), &moment.model, choice, &what)?;
        }
    }
    Ok(())
}

/// A power cut at every call of a script that fills segments: rotations, seals, indexes.
pub(crate) fn rotations(seed: u64, judged: &mut Judged) -> Verdict {
    let mut script = vec![Op::Create, Op::Create];
    for step in 0..28 {
        script.extend([Op::Append(9000), if step % 2 == 0 { Op::FlushAll } else { Op::Append(100) }]);
    }
    let moments = moments_of(seed, &script)?;
    let segments = moments
        .last()
        .map_or(0, |moment| moment.disk.files().iter().filter(|file| file.ends_with(".seg")).count());
    agrees(segments > 3, || format!("only {segments} segments"))?;
    for moment in moments {
        *judged += 1;
        let what = format!("rotations, seed {seed}, cut at call {} ({:?})", moment.call, moment.op);
        survive(&moment.disk.crash(seed + moment.call), &moment.model, moment.call, &what)?;
    }
    Ok(())
}

/// Power cuts of a writer that is rarely flushed: several frames are in the cache, and the disk keeps any of them (E2).
pub(crate) fn drained(seed: u64, judged: &mut Judged) -> Verdict {
    let mut script = vec![Op::Create, Op::FlushAll];
    for step in 0..18 {
        script.extend([Op::Append(700), Op::Idle(3)]);
        script.extend((step % 6 == 5).then_some(Op::FlushAll));
    }
    for moment in moments_of(seed, &script)? {
        for cut in 0..4 {
            let choice = seed + moment.call * 4 + cut;
            *judged += 1;
            let what =
                format!("drained, seed {seed}, cut {choice} at call {} ({:?})", moment.call, moment.op);
            survive(&moment.disk.crash(choice), &moment.model, choice, &what)?;
        }
    }
    Ok(())
}

/// The process dies at every call.
pub(crate) fn kills(seed: u64, judged: &mut Judged) -> Verdict {
    for moment in moments(seed, 90)? {
        let what = format!("seed {seed}, killed at call {} ({:?})", moment.call, moment.op);
        *judged += 1;
        survive(&moment.disk.kill_writer(), &moment.model, moment.call, &what)?;
    }
    Ok(())
}

/// Opens a crashed disk and keeps the moments of that; the recovery itself must succeed.
fn recovery_moments(disk: &SimDisk, model: &Model, seed: u64) -> Result<Vec<Moment>, String> {
    let kept = Moments::default();
    let known = model.clone();
    keep(disk, Arc::clone(&kept), move || known.clone());
    let (store, _) = fails(open(disk, seed), "the recovery to be cut")?;
    disk.clear_on_call();
    drop(store);
    let mut kept = kept.lock().unwrap();
    Ok(std::mem::take(&mut *kept))
}

/// A power cut at every call of a recovery, and now and then another in the next one.
pub(crate) fn recovery_cuts(seed: u64, judged: &mut Judged) -> Verdict {
    let (mut random, mut third) = (Random::new(seed), 0u64);
    let moments = moments(seed, 80)?;
    for moment in moments.iter().filter(|moment| moment.call % 6 == seed % 6) {
        let first = random.next_u64();
        for inner in recovery_moments(&moment.disk.crash(first), &moment.model, first)? {
            let choice = random.next_u64();
            let what = format!(
                "seed {seed}, cut {first} at call {}, then {choice} at call {} ({:?}) of the recovery",
                moment.call, inner.call, inner.op
            );
            let again = inner.disk.crash(choice);
            if random.chance(1, 12) {
                for innermost in recovery_moments(&again.snapshot(), &inner.model, choice)? {
                    let last = random.next_u64();
                    let what = format!("{what}, then {last} at call {} of the next", innermost.call);
                    *judged += 1;
                    survive(&innermost.disk.crash(last), &innermost.model, last, &what)?;
                    third += 1;
                }
            }
            *judged += 1;
            survive(&again, &inner.model, choice, &what)?;
        }
    }
    agrees(third > 5, || format!("only {third} crashes of the recovery from a crashed recovery"))
}

/// A reader of what a crash left sees what a writer would, and changes nothing.
pub(crate) fn readers_after(seed: u64, judged: &mut Judged) -> Verdict {
    for moment in moments(seed, 60)? {
        if moment.model.sessions.is_empty() {
            // The creation of the store itself was cut short.
            continue;
        }
        *judged += 1;
        let what = format!("seed {seed}, read after a crash at call {}", moment.call);
        let disk = moment.disk.crash(moment.call);
        let before = disk.files();
        let runtime = Arc::new(SeededRuntime::new(seed));
        let reader = fails(options(&disk, &runtime).open_read_only(""), &what)?;
        let complaints = check(&reader, &moment.model);
        agrees(complaints.0.is_empty(), || format!("{what}: {:#?}", complaints.0))?;
        agrees(disk.files() == before, || format!("{what}: reading changed the files"))?;
    }
    Ok(())
}

#[test]
fn a_power_cut_at_every_call_loses_nothing_that_was_acknowledged() {
    campaign(0, 200, "power cuts", cuts);
}

#[test]
fn a_power_cut_while_a_store_is_created_loses_nothing_that_was_acknowledged() {
    campaign(0, 60, "power cuts of creations", creations);
}

#[test]
fn a_power_cut_around_a_rotation_loses_nothing_that_was_acknowledged() {
    campaign(0, 60, "power cuts with rotations", rotations);
}

#[test]
fn a_power_cut_of_a_drained_log_leaves_a_clean_prefix() {
    campaign(0, 100, "power cuts of a drained log", drained);
}

#[test]
fn a_kill_at_every_call_loses_nothing_that_was_acknowledged() {
    campaign(1000, 100, "kills", kills);
}

#[test]
fn a_power_cut_at_every_call_of_a_recovery_and_again_in_the_next_one_loses_nothing() {
    campaign(2000, 50, "power cuts during recovery", recovery_cuts);
}

#[test]
fn what_a_crash_leaves_opens_the_same_for_reading() {
    campaign(3000, 50, "readers of what a crash left", readers_after);
}

#[test]
fn one_seed_twice_gives_one_trace() {
    let trace = |seed| {
        let disk = SimDisk::new();
        let mut workload = Workload::new(&disk, seed).unwrap();
        workload.run(&Workload::script(seed, 100)).unwrap();
        workload.close().unwrap();
        (disk.trace(), workload.runtime.trace())
    };
    let (first, second, other) = (trace(5), trace(5), trace(6));
    assert!(first == second, "one seed, two traces");
    assert!(first != other, "another seed, another trace");
    println!("trace of {} disk calls and {} scheduler choices, twice the same", first.0.len(), first.1.len());
}
