//! What a store has done since it was opened, as numbers.
//!
//! They inform; no metric ever decides anything.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::log::LogCounters;

/// The store's own tallies, beside the log's.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    pub(super) listener_failures: Tally,
    pub(super) notices_dropped: Tally,
    pub(super) violations: Tally,
    pub(super) conflicts: Tally,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Tally(AtomicU64);

impl Tally {
    pub(super) fn add(&self, count: u64) {
        if count > 0 {
            self.0.fetch_add(count, Ordering::Relaxed);
        }
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a store has done since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// What the log did.
    pub log: LogCounters,
    /// Sessions that are live now.
    pub live_sessions: u64,
    /// Listeners that failed or panicked.
    pub listener_failures: u64,
    /// Events that subscriptions dropped because they were full.
    pub notices_dropped: u64,
    /// Appended events that broke rules I5 to I10, when these are looked at.
    pub violations: u64,
    /// Appends that were refused because the session had moved on.
    pub conflicts: u64,
}

impl Counters {
    pub(super) fn gather(log: LogCounters, tallies: &Tallies, live: usize) -> Self {
        Self {
            log,
            live_sessions: live as u64,
            listener_failures: tallies.listener_failures.get(),
            notices_dropped: tallies.notices_dropped.get(),
            violations: tallies.violations.get(),
            conflicts: tallies.conflicts.get(),
        }
    }
}
