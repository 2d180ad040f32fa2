//! What all handles of one store share: the log, the runtime, the store-wide listeners and the tallies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::event::{Time, Violation};
use crate::log::{Appended, Entry, Log, SessionEntry};
use crate::rt::Runtime;

use super::counters::Tallies;
use super::listeners::Listeners;
use super::options::Invariants;

pub(super) struct Engine {
    pub(super) log: Log,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) listeners: Listeners,
    pub(super) invariants: Invariants,
    /// How many sessions a fork may read through.
    pub(super) fork_depth: usize,
    /// Encoded bytes past which events that come in at once are staged.
    pub(super) staged_past: usize,
    pub(super) tallies: Tallies,
    keys: AtomicU64,
}

impl Engine {
    pub(super) fn new(
        log: Log,
        runtime: Arc<dyn Runtime>,
        invariants: Invariants,
        fork_depth: usize,
        staged_past: usize,
    ) -> Self {
        Self {
            log,
            runtime,
            listeners: Listeners::default(),
            invariants,
            fork_depth,
            staged_past,
            tallies: Tallies::default(),
            keys: AtomicU64::new(1),
        }
    }

    /// The wall clock.
    pub(super) fn now(&self) -> Time {
        Time::from_millis(self.runtime.unix_millis())
    }

    /// A number that no other session of this process run has.
    pub(super) fn fresh_key(&self) -> u64 {
        self.keys.fetch_add(1, Ordering::Relaxed)
    }

    /// A fresh random UUID (H).
    pub(super) fn fresh_id(&self) -> String {
        let mut random = [0; 16];
        self.runtime.fill_random(&mut random);
        uuid::Builder::from_random_bytes(random).into_uuid().to_string()
    }

    /// Appends one atomic batch and waits for room when there is none at the moment. Called without any lock.
    pub(super) fn append_waiting(&self, entries: &[Entry]) -> Result<Appended> {
        loop {
            match self.log.append(entries) {
                Err(error) if error.is_backpressure() => self.wait_for_room(entries)?,
                other => return other,
            }
        }
    }

    /// Waits until a batch like `entries` may fit. Called without any lock.
    pub(super) fn wait_for_room(&self, entries: &[Entry]) -> Result<()> {
        let bytes = entries.iter().map(|entry| entry.record.stored_len()).sum();
        self.log.wait_for_room(bytes)
    }

    /// Reports broken rules that refused nothing.
    pub(super) fn report(&self, session: &str, violations: &[Violation]) {
        self.tallies.violations.add(violations.len() as u64);
        for violation in violations {
            tracing::warn!(session, %violation, "an appended event breaks a rule");
        }
    }

    /// The stored, visible session of this id.
    pub(super) fn stored(&self, id: &str) -> Result<SessionEntry> {
        self.log.lookup(id)?.ok_or_else(|| not_found(id))
    }
}

pub(super) fn not_found(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("this store holds no session {id:?}"))
}
