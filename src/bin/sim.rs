//! `sim`: campaigns of the deterministic simulation, and single seeds again (feature `testing`).
//!
//!     cargo run --release --features testing --bin sim -- --seeds 1000 --first 1 --jobs 2 --minutes 5
//!     cargo run --release --features testing --bin sim -- --seed 17 --trace
//!     cargo run --release --features testing --bin sim -- --seed 17 --script "life=cut 0:create:0:0:0"

// A tool of developers: it prints, and stops at a wrong argument.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use sessionlog::testing::simulate::{Campaign, Finding, Outcome, Script, minimise, run_script};

const HELP: &str = "\
sim [--seeds N] [--first S] [--jobs J] [--minutes M] [--findings F] [--keep]
    runs the seeds S, S+1, … (1,000 from 1 on, on 2 threads), or as many as M minutes give; ends at F findings (1)
    and makes the first one small, unless --keep
sim --seed S [--script TEXT] [--trace] [--small]
    runs one seed again, with another script if one is given; --trace prints what happened, --small makes a failing
    script small
sim --mutations [--seeds N] [--first S]
    with the feature mutation: each deliberate fault of the engine in turn, and after how many crashes it is caught";

#[derive(Default)]
struct Arguments {
    seed: Option<u64>,
    script: Option<String>,
    trace: bool,
    small: bool,
    keep: bool,
    mutations: bool,
    seeds: Option<u64>,
    first: Option<u64>,
    jobs: Option<u64>,
    minutes: Option<u64>,
    findings: Option<u64>,
}

fn arguments() -> Result<Arguments, String> {
    let mut parsed = Arguments::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: String| text.parse().map_err(|_| format!("{text:?} is no number"));
        match word.as_str() {
            "--seed" => parsed.seed = Some(number(value()?)?),
            "--script" => parsed.script = Some(value()?),
            "--seeds" => parsed.seeds = Some(number(value()?)?),
            "--first" => parsed.first = Some(number(value()?)?),
            "--jobs" => parsed.jobs = Some(number(value()?)?),
            "--minutes" => parsed.minutes = Some(number(value()?)?),
            "--findings" => parsed.findings = Some(number(value()?)?),
            "--trace" => parsed.trace = true,
            "--small" => parsed.small = true,
            "--keep" => parsed.keep = true,
            "--mutations" => parsed.mutations = true,
            _ => return Err(HELP.to_owned()),
        }
    }
    Ok(parsed)
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    // A panic is a finding, with its text; where it happened, a single seed shows.
    if arguments.seed.is_none() || arguments.small {
        std::panic::set_hook(Box::new(|_| {}));
    }
    let found = match arguments.seed {
        None if arguments.mutations => mutations(&arguments),
        Some(seed) => one(seed, &arguments),
        None => campaign(&arguments),
    };
    if found { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs a seed; whether it failed.
fn one(seed: u64, arguments: &Arguments) -> bool {
    let script = match arguments.script.as_deref().map(str::parse::<Script>) {
        None => Script::of_seed(seed),
        Some(Ok(script)) => script,
        Some(Err(error)) => {
            eprintln!("{error}");
            return true;
        }
    };
    let begun = Instant::now();
    let outcome: Outcome = run_script(seed, &script, arguments.trace);
    outcome.trace.iter().for_each(|line| println!("{line}"));
    println!("seed {seed}, trace {:016x}, {:?}", outcome.trace_hash, begun.elapsed());
    println!("script: {script}");
    println!("{}", outcome.tally);
    let Some(failure) = &outcome.failure else { return false };
    println!("FAILED: {failure}");
    if arguments.small {
        small(seed, &script);
    }
    true
}

fn small(seed: u64, script: &Script) {
    println!("making it small …");
    match minimise(seed, script) {
        Some((script, failure)) => {
            println!("still fails: {failure}");
            println!(
                "cargo run --release --features testing --bin sim -- --seed {seed} --trace --script \"{script}\""
            );
        }
        None => println!("it did not fail again: the run depends on something that the seed does not give"),
    }
}

/// Runs many seeds; whether one failed.
fn campaign(arguments: &Arguments) -> bool {
    let time = arguments.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let seeds = arguments.seeds.unwrap_or(if time.is_some() { u64::MAX } else { 1000 });
    let campaign = Campaign {
        jobs: arguments.jobs.unwrap_or(2),
        time,
        findings: usize::try_from(arguments.findings.unwrap_or(1)).unwrap_or(1),
        ..Campaign::new(arguments.first.unwrap_or(1), seeds)
    };
    let begun = Instant::now();
    let (tally, findings) = campaign.run(|_| {});
    let seconds = begun.elapsed().as_secs_f64();
    println!("{tally}");
    println!("{seconds:.1} s: {:.0} crashes a second", count(tally.crashes) / seconds);
    for Finding { seed, failure } in &findings {
        println!("FAILED seed {seed}: {failure}");
        println!("    cargo run --release --features testing --bin sim -- --seed {seed} --trace");
    }
    if let Some(first) = findings.first().filter(|_| !arguments.keep) {
        small(first.seed, &Script::of_seed(first.seed));
    }
    !findings.is_empty()
}

/// Each fault by itself; whether one was not caught.
#[cfg(feature = "mutation")]
fn mutations(arguments: &Arguments) -> bool {
    use sessionlog::mutation::{Mutation, with};
    use sessionlog::testing::simulate::run;

    let (first, seeds) = (arguments.first.unwrap_or(1), arguments.seeds.unwrap_or(2000));
    let mut missed = 0;
    for mutation in Mutation::ALL {
        let (mut crashes, begun) = (0, Instant::now());
        let caught = with(*mutation, || {
            (first..first.saturating_add(seeds)).find_map(|seed| {
                let outcome = run(seed);
                crashes += outcome.crashes;
                outcome.failure.map(|failure| (seed, failure))
            })
        });
        match caught {
            Some((seed, failure)) => {
                println!(
                    "{mutation:?}: seed {seed}, crash {crashes}, {:.1?}: {failure:.160}",
                    begun.elapsed()
                );
            }
            None => {
                missed += 1;
                println!("{mutation:?}: NOT caught by {seeds} seeds, {crashes} crashes");
            }
        }
    }
    println!("{} faults, {missed} not caught", Mutation::ALL.len());
    missed > 0
}

#[cfg(not(feature = "mutation"))]
fn mutations(_: &Arguments) -> bool {
    eprintln!("build with --features testing,mutation");
    true
}

#[expect(clippy::cast_precision_loss, reason = "a rate to read")]
fn count(number: u64) -> f64 {
    number as f64
}
