//! Power cuts and kills at every disk call of a scripted workload, and during the recovery from them (G1, G2, P1).

use std::sync::{Arc, Mutex};

use sessionlog::testing::oracle::check;
use sessionlog::testing::workload::open;
use sessionlog::testing::{DiskOp, Model, Random, SimDisk, Workload};

use super::{first_seed, rounds, survive};

/// The disk as it is at a call, and what is acknowledged by then.
struct Moment {
    call: u64,
    op: DiskOp,
    disk: SimDisk,
    model: Model,
}

/// Runs a script once and keeps the moment before every call that changes the disk or makes a change durable.
fn moments(seed: u64, steps: usize) -> Vec<Moment> {
    let disk = SimDisk::new();
    let kept: Arc<Mutex<Vec<Moment>>> = Arc::default();
    let mut workload = {
        // The creation of the store is part of the script.
        let (list, model) = (Arc::clone(&kept), Arc::new(Mutex::new(Model::default())));
        keep(&disk, list, move || model.lock().unwrap().clone());
        Workload::new(&disk, seed).unwrap()
    };
    let (list, model) = (Arc::clone(&kept), Arc::clone(&workload.model));
    keep(&disk, list, move || model.lock().clone());
    workload.run(&Workload::script(seed, steps)).unwrap();
    workload.close().unwrap();
    disk.clear_on_call();
    let model = workload.model.lock().clone();
    let mut all = std::mem::take(&mut *kept.lock().unwrap());
    all.push(Moment { call: disk.calls(), op: DiskOp::Sync, disk: disk.snapshot(), model });
    all
}

fn keep(disk: &SimDisk, list: Arc<Mutex<Vec<Moment>>>, model: impl Fn() -> Model + Send + 'static) {
    disk.on_call(move |call, op, disk| {
        if op.is_change() || op.is_sync() {
            list.lock().unwrap().push(Moment { call, op, disk: disk.snapshot(), model: model() });
        }
    });
}

#[test]
fn a_power_cut_at_every_call_loses_nothing_that_was_acknowledged() {
    let (mut calls, mut cuts, mut acknowledged) = (0u64, 0u64, 0);
    for round in 0..rounds() {
        let seed = first_seed() + round;
        let moments = moments(seed, 90);
        calls += moments.len() as u64;
        for moment in &moments {
            for cut in 0..2 {
                let choice = seed.wrapping_mul(1_000_003) + moment.call * 7 + cut;
                let what =
                    format!("seed {seed}, power cut {choice} at call {} ({:?})", moment.call, moment.op);
                survive(&moment.disk.crash(choice), &moment.model, choice, &what);
                cuts += 1;
            }
            acknowledged = moment.model.acknowledged();
        }
    }
    println!(
        "power cuts: {cuts} at {calls} calls; {acknowledged} events acknowledged at the end of the last script"
    );
    assert!(acknowledged > 20 && calls > 100);
}

#[test]
fn a_kill_at_every_call_loses_nothing_that_was_acknowledged() {
    let mut kills = 0u64;
    for round in 0..rounds() {
        let seed = first_seed() + 1000 + round;
        for moment in moments(seed, 90) {
            let what = format!("seed {seed}, killed at call {} ({:?})", moment.call, moment.op);
            let disk = moment.disk.kill_writer();
            survive(&disk, &moment.model, moment.call, &what);
            kills += 1;
        }
    }
    println!("kills: {kills}, one at every call");
}

/// Opens a crashed disk and keeps the moments of that; the recovery itself must succeed.
fn recovery_moments(disk: &SimDisk, model: &Model, seed: u64) -> Vec<Moment> {
    let kept: Arc<Mutex<Vec<Moment>>> = Arc::default();
    let known = model.clone();
    keep(disk, Arc::clone(&kept), move || known.clone());
    let (store, _) = open(disk, seed).unwrap();
    disk.clear_on_call();
    drop(store);
    let mut kept = kept.lock().unwrap();
    std::mem::take(&mut *kept)
}

#[test]
fn a_power_cut_at_every_call_of_a_recovery_and_again_in_the_next_one_loses_nothing() {
    let (mut second, mut third) = (0u64, 0u64);
    for round in 0..rounds() {
        let seed = first_seed() + 2000 + round;
        let mut random = Random::new(seed);
        let moments = moments(seed, 80);
        for moment in moments.iter().filter(|moment| moment.call % 6 == round % 6) {
            let first = random.next_u64();
            for inner in recovery_moments(&moment.disk.crash(first), &moment.model, first) {
                let choice = random.next_u64();
                let what = format!(
                    "seed {seed}, cut {first} at call {}, then {choice} at call {} ({:?}) of the recovery",
                    moment.call, inner.call, inner.op
                );
                let again = inner.disk.crash(choice);
                if random.chance(1, 12) {
                    for innermost in recovery_moments(&again.snapshot(), &inner.model, choice) {
                        let last = random.next_u64();
                        let what = format!("{what}, then {last} at call {} of the next", innermost.call);
                        survive(&innermost.disk.crash(last), &innermost.model, last, &what);
                        third += 1;
                    }
                }
                survive(&again, &inner.model, choice, &what);
                second += 1;
            }
        }
    }
    println!("power cuts during recovery: {second}; during the recovery from those: {third}");
    assert!(second > 50 && third > 5);
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

#[test]
fn what_a_crash_leaves_opens_the_same_for_reading() {
    let seed = first_seed() + 3000;
    for moment in moments(seed, 60).iter().filter(|moment| moment.call % 5 == 0) {
        if moment.model.sessions.is_empty() {
            // The creation of the store itself was cut short.
            continue;
        }
        let disk = moment.disk.crash(moment.call);
        let before = disk.files();
        let runtime = Arc::new(sessionlog::testing::SeededRuntime::new(seed));
        let opened = sessionlog::testing::workload::options(&disk, &runtime).open_read_only("");
        let reader = match opened {
            Ok(reader) => reader,
            Err(error) => panic!("call {}: {error}", moment.call),
        };
        let complaints = check(&reader, &moment.model);
        assert!(complaints.0.is_empty(), "call {}: {:#?}", moment.call, complaints.0);
        assert_eq!(disk.files(), before, "reading changes nothing");
    }
}
