//! The events of a session that entered and was not announced yet (L1).
//!
//! Always: nothing of it is on disk. Its first events (a seed, closers of a fork) are quiet: no listener hears of
//! them (A8).

use std::sync::Arc;

use crate::event::Event;
use crate::log::{Log, SessionEntry};

use super::live::Pinned;
use super::place::Place;
use super::stage::Opening;

pub(super) struct Pending {
    pub(super) opening: Opening,
    /// The session whose events come before, as it stands in the log, and how many.
    pub(super) base: Option<Base>,
    /// Copies the events of `base` instead of referring to them.
    pub(super) copies: bool,
    pub(super) events: Vec<Event>,
    /// How many of the events no listener hears of.
    pub(super) quiet: usize,
    /// Somebody is announcing it.
    pub(super) announcing: bool,
    /// Keeps the parent of a fork from being deleted before the fork refers to it.
    pub(super) _pin: Option<Pinned>,
}

/// The first `count` events of a stored session.
#[derive(Clone)]
pub(super) struct Base {
    pub(super) entry: SessionEntry,
    pub(super) count: u64,
}

impl Pending {
    pub(super) fn extend(&mut self, events: &[Event]) {
        self.events.extend_from_slice(events);
    }

    /// Where the session's events are at the moment.
    pub(super) fn place(&self, log: Log) -> Place {
        let stored = self.base.as_ref().map_or(0, |base| base.count);
        let memory: Arc<[Event]> = Arc::from(self.events.as_slice());
        Place::mixed(self.base.as_ref().map(|base| (log, base.entry.clone())), stored, memory)
    }
}
