//! Whole runs of the real engine: actors on real threads that a seed interleaves, faults that a seed plans, and a model
//! of what was acknowledged that every crash is judged by.
//!
//! One seed is one run: [`run`] makes the script of the seed and lives through it; [`run_script`] lives through another
//! one. The same seed and script are the same run, step by step. A run judges many crashes: at disk calls that the seed
//! chooses, what a power cut or a kill at that moment leaves is opened and compared, and the power goes again in some of
//! the recoveries. [`minimise`] makes a failing script as small as it can.

mod campaign;
mod history;
mod judge;
mod life;
mod minimise;
mod options;
mod read;
mod script;
mod tally;
mod witness;
mod world;
mod write;

use std::fmt;
use std::sync::Arc;

use super::Scheduler;

pub use campaign::{Campaign, Finding};
pub use minimise::minimise;
pub use script::{CRASHES, End, Life, Op, Script, Verb};
pub use tally::Tally;

use world::World;

/// Something did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What, and at which disk call it was found.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Crashes that were judged.
    pub crashes: u64,
    /// Ops that were done.
    pub ops: u64,
    /// One number for all disk calls and all choices of the scheduler.
    pub trace_hash: u64,
    /// The first thing that did not hold.
    pub failure: Option<Failure>,
    /// Everything in numbers.
    pub tally: Tally,
    /// The choices of the scheduler and the disk calls as text, if they were asked for.
    pub trace: Vec<String>,
}

/// The run of a seed.
#[must_use]
pub fn run(seed: u64) -> Outcome {
    run_script(seed, &Script::of_seed(seed), false)
}

/// A run of `script`, interleaved as the seed says.
#[must_use]
pub fn run_script(seed: u64, script: &Script, traced: bool) -> Outcome {
    let scheduler = Scheduler::new(seed);
    scheduler.set_traced(traced);
    let world = Arc::new(World::new(scheduler.clone(), Arc::new(script.clone()), seed));
    let inside = Arc::clone(&world);
    let ran = scheduler.run(move || inside.live_through());
    let mut parts = world.parts();
    let mut tally = std::mem::take(&mut parts.tally);
    (tally.runs, tally.switches) = (1, ran.switches);
    let failure = parts.failure.take().into_iter().chain(ran.failure).reduce(|all, one| all + "; " + &one);
    Outcome {
        seed,
        crashes: tally.crashes,
        ops: tally.ops_done(),
        trace_hash: ran.trace_hash ^ parts.trace_hash,
        failure: failure.map(|what| Failure { what }),
        tally,
        trace: ran.trace,
    }
}

#[cfg(test)]
mod tests;
