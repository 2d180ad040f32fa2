//! The deterministic simulation, as much of it as a test run has time for: real threads interleaved by a seed, planned
//! faults, and crashes judged by a model (`testing::simulate`).
//!
//! `SESSIONLOG_SIM_SEEDS=N` runs more seeds, `SESSIONLOG_SIM_SEED=S` one again. Longer campaigns: `cargo run --release
//! --features testing --bin sim`.

use std::str::FromStr;

use sessionlog::testing::FaultKind;
use sessionlog::testing::simulate::{Campaign, Script, Verb, minimise, run, run_script};

/// Enough for 20,000 crashes.
const SEEDS: u64 = 800;

fn wish<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn thousands_of_simulated_crashes_lose_nothing() {
    if let Some(seed) = wish("SESSIONLOG_SIM_SEED") {
        let outcome = run(seed);
        println!("seed {seed}, trace {:016x}\n{}", outcome.trace_hash, outcome.tally);
        assert!(outcome.failure.is_none(), "{}", outcome.failure.unwrap());
        return;
    }
    let seeds = wish("SESSIONLOG_SIM_SEEDS").unwrap_or(SEEDS);
    let (tally, findings) = Campaign::new(1, seeds).run(|_| {});
    println!("{tally}");
    if let Some(first) = findings.first() {
        let small = minimise(first.seed, &Script::of_seed(first.seed));
        let again = "cargo run --release --features testing --bin sim -- --trace --seed";
        let (script, failure) = small.expect("a seed that fails once fails again");
        panic!("{}\n{again} {} --script \"{script}\"\n{failure}", first.failure, first.seed);
    }
    if seeds < SEEDS {
        return;
    }
    assert!(tally.crashes >= 20_000 && tally.witnesses > 100 && tally.again > 1000, "{tally}");
    for verb in Verb::ALL {
        assert!(tally.ops.get(verb).is_some_and(|count| *count > 0), "nobody did {}", verb.name());
    }
    for kind in FaultKind::ALL {
        assert!(tally.faults.get(&kind).is_some_and(|count| *count > 0), "{kind} never struck");
    }
}

/// A disk that breaks its promise: some acknowledged writes never reach it. Told that there is no damage, the judge
/// must find the loss, and the failing script becomes small and fails as text too.
#[test]
fn a_planted_failure_is_found_and_made_small() {
    let mut found = None;
    for seed in 0..200 {
        let mut script = Script::of_seed(seed);
        script.faults = "1,lost-write=300".parse().unwrap();
        script.lies = true;
        let outcome = run_script(seed, &script, false);
        if outcome.failure.is_some() {
            found = Some((seed, script));
            break;
        }
    }
    let (seed, script) = found.expect("lost writes are noticed");
    let (small, failure) = minimise(seed, &script).expect("it fails again");
    println!("{} ops became {}: {failure}\n{small}", script.ops(), small.ops());
    assert!(small.ops() <= 12 && small.ops() < script.ops(), "{small}");
    let again = small.to_string().parse::<Script>().unwrap();
    assert_eq!(run_script(seed, &again, false).failure, Some(failure));
    let mut honest = again;
    honest.faults = "0".parse().unwrap();
    assert_eq!(run_script(seed, &honest, false).failure, None);
}

#[test]
fn one_seed_twice_is_one_run() {
    for seed in 9000..9040 {
        let (first, second) = (run(seed), run(seed));
        assert_eq!((first.trace_hash, &first.tally), (second.trace_hash, &second.tally), "seed {seed}");
        assert_eq!(first.failure, second.failure);
    }
}
