//! Many runs, on several threads, counted together.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Failure, Outcome, Tally, run};

/// Seeds one after the other.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// The first seed.
    pub first: u64,
    /// How many seeds, unless the time is over before.
    pub seeds: u64,
    /// How many runs at once.
    pub jobs: u64,
    /// Begins no run after so long.
    pub time: Option<Duration>,
    /// Ends at so many findings.
    pub findings: usize,
}

/// A seed that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The seed.
    pub seed: u64,
    /// What did not hold.
    pub failure: Failure,
}

impl Campaign {
    /// So many seeds from `first` on, on two threads, up to the first finding.
    #[must_use]
    pub fn new(first: u64, seeds: u64) -> Self {
        Self { first, seeds, jobs: 2, time: None, findings: 1 }
    }

    /// Runs them; `progress` hears of each outcome.
    pub fn run(&self, progress: impl Fn(&Outcome) + Sync) -> (Tally, Vec<Finding>) {
        let begun = Instant::now();
        let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
        let all = Mutex::new((Tally::default(), Vec::new()));
        let work = || {
            while !over.load(Ordering::SeqCst) {
                let number = next.fetch_add(1, Ordering::SeqCst);
                if number >= self.seeds || self.time.is_some_and(|time| begun.elapsed() >= time) {
                    return;
                }
                let outcome = run(self.first.wrapping_add(number));
                progress(&outcome);
                let mut all = all.lock();
                all.0.add(&outcome.tally);
                if let Some(failure) = outcome.failure {
                    all.1.push(Finding { seed: outcome.seed, failure });
                    if all.1.len() >= self.findings {
                        over.store(true, Ordering::SeqCst);
                    }
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(work);
            }
        });
        let (tally, mut findings) = all.into_inner();
        findings.sort_by_key(|finding| finding.seed);
        (tally, findings)
    }
}
