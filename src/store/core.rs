//! What all handles of one live session share, and how an event joins it.
//!
//! Always: one short lock per session orders its appends; whoever holds it makes no system call and waits for
//! nothing (A1, T3). A refused append leaves log, surface and seq as they were (A3): the surface is tried out and
//! put back unless the log took the batch. Never: it holds an event once its batch was handed to the log.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, Header, Staged, Surface};
use crate::format::lsn::Lsn;
use crate::log::{Entry, LockScope};

use super::delivery::Delivery;
use super::draft::{self, Draft};
use super::engine::{Engine, not_found};
use super::inside;
use super::listeners::Listeners;
use super::live::LiveTable;
use super::messages::MessageCache;
use super::pending::Pending;
use super::place::Place;
use super::rules::Rules;
use super::session::{Session, conflict};
use super::subscription::Feed;

pub(super) struct Core {
    /// Distinguishes this session from a later one of the same id.
    pub(super) key: u64,
    pub(super) id: Arc<str>,
    /// The session's number in the log.
    pub(super) dense: u64,
    pub(super) header: Header,
    pub(super) engine: Arc<Engine>,
    pub(super) live: Weak<LiveTable>,
    pub(super) listeners: Listeners,
    pub(super) delivery: Delivery,
    pub(super) messages: MessageCache,
    /// The log keeps the session in memory for it; given back once.
    attached: AtomicBool,
    state: Mutex<State>,
}

/// What the session's lock guards.
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) next_seq: u64,
    pub(super) surface: Surface,
    pub(super) rules: Option<Rules>,
    pub(super) marks: Marks,
    pub(super) feeds: Vec<Arc<Feed>>,
}

/// The held session lock. Debug builds notice a disk call or a wait under it (T3).
pub(super) struct Held<'a> {
    guard: MutexGuard<'a, State>,
    _scope: LockScope,
}

impl Deref for Held<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.guard
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.guard
    }
}

/// Where the session stands in its life (L1).
pub(super) enum Phase {
    /// Entered, not yet announced: nothing is written, events are collected.
    Entered(Box<Pending>),
    Live,
    Ended(Ended),
}

/// Why a handle is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Detached,
    RolledBack,
    Deleted,
    StoreClosed,
}

/// Which seqs are durable once the log is durable up to where.
pub(super) struct Marks {
    durable: u64,
    open: VecDeque<(Lsn, u64)>,
}

/// How many places a session remembers. More are thinned out, which makes an answer late, never wrong; whoever
/// flushes notes what that reached.
const MAX_MARKS: usize = 32;

impl Core {
    pub(super) fn new(parts: CoreParts) -> Self {
        Self {
            key: parts.engine.fresh_key(),
            id: parts.id,
            dense: parts.dense,
            header: parts.header,
            engine: parts.engine,
            live: parts.live,
            listeners: Listeners::default(),
            delivery: Delivery::default(),
            messages: MessageCache::default(),
            attached: AtomicBool::new(true),
            state: Mutex::new(parts.state),
        }
    }

    pub(super) fn state(&self) -> Held<'_> {
        Held { guard: self.state.lock(), _scope: LockScope::enter() }
    }

    /// Appends the drafts as one batch (A6); `expect` is the seq that the first one must get (A7).
    pub(super) fn append(self: &Arc<Self>, expect: Option<u64>, drafts: Vec<Draft>) -> Result<Range<u64>> {
        inside::refuse_append(self.key)?;
        let mut state = self.state();
        state.check_open(&self.id)?;
        let first = state.next_seq;
        if let Some(expected) = expect.filter(|expected| *expected != first) {
            self.engine.tallies.conflicts.add(1);
            return Err(conflict(&self.id, first, expected));
        }
        if drafts.is_empty() {
            return Ok(first..first);
        }
        let events = self.accept(&mut state, drafts)?;
        let feeds = self.publish(&mut state, &events);
        let range = first..state.next_seq;
        let is_live = matches!(state.phase, Phase::Live);
        drop(state);
        if is_live {
            self.after_append(&feeds);
        }
        Ok(range)
    }

    /// Checks the drafts and hands them to the log, or to memory before the announcement. All or nothing.
    fn accept(&self, state: &mut State, mut drafts: Vec<Draft>) -> Result<Vec<Event>> {
        let first = state.next_seq;
        let mut staged = Staged::begin(&mut state.surface, first);
        let mut events = Vec::with_capacity(drafts.len());
        let count = drafts.len();
        for (index, draft) in drafts.iter_mut().enumerate() {
            let named = |error| draft::of_batch(count, index, error);
            let seq = staged.push(draft.event()).map_err(named)?;
            events.push(draft.settle(seq).map_err(named)?);
        }
        let next_seq = first.saturating_add(events.len() as u64);
        let trial = state.rules.as_mut().map(|rules| rules.try_out(&events)).transpose()?;
        match &mut state.phase {
            Phase::Entered(pending) => pending.extend(&events),
            Phase::Live => match self.engine.log.append(&seal(drafts, self.dense, first)) {
                Ok(appended) => state.marks.push(appended.end, next_seq),
                Err(error) => {
                    if let (Some(rules), Some(trial)) = (&mut state.rules, trial) {
                        rules.take_back(trial);
                    }
                    return Err(error);
                }
            },
            Phase::Ended(ended) => return Err(ended.error(&self.id)),
        }
        staged.commit();
        state.next_seq = next_seq;
        if let Some(trial) = trial {
            self.engine.report(&self.id, &trial.violations);
        }
        Ok(events)
    }

    /// Puts accepted events where subscribers and listeners will find them, in seq order. Before the announcement
    /// nobody hears of them: the session may still be rolled back.
    pub(super) fn publish(&self, state: &mut State, events: &[Event]) -> Vec<Arc<Feed>> {
        if !matches!(state.phase, Phase::Live) {
            return Vec::new();
        }
        if self.engine.listeners.hears_events() || self.listeners.hears_events() {
            self.delivery.push(events.iter().cloned());
        }
        if state.feeds.is_empty() {
            return Vec::new();
        }
        state.feeds.retain(|feed| !feed.is_abandoned());
        for event in events {
            let dropped: u64 = state.feeds.iter().map(|feed| feed.send(event)).sum();
            self.engine.tallies.notices_dropped.add(dropped);
        }
        state.feeds.clone()
    }

    /// Wakes subscribers and runs listeners, without the session's lock.
    pub(super) fn after_append(self: &Arc<Self>, feeds: &[Arc<Feed>]) {
        feeds.iter().for_each(|feed| feed.wake());
        let session = Session::from_core(Arc::clone(self));
        self.delivery.drain(|event| {
            let failed = self.engine.listeners.call_event(&session, event);
            let failed = failed + self.listeners.call_event(&session, event);
            self.engine.tallies.listener_failures.add(failed);
        });
    }

    /// Where the session's events are now, and at the same moment something of its surface.
    pub(super) fn place_and<T>(&self, look: impl FnOnce(&Surface) -> T) -> Result<(Place, T)> {
        let (end, seen) = {
            let state = self.state();
            let seen = look(&state.surface);
            match &state.phase {
                Phase::Entered(pending) => return Ok((pending.place(self.engine.log.clone()), seen)),
                Phase::Live | Phase::Ended(Ended::Detached) => (state.next_seq, seen),
                Phase::Ended(ended) => return Err(ended.error(&self.id)),
            }
        };
        // Read after the lock was released: the log may have to look at the disk for a detached session. What it
        // knows has only grown meanwhile, and `end` bounds what is seen of it.
        let entry = self.engine.log.session(self.dense)?.ok_or_else(|| not_found(&self.id))?;
        Ok((Place::stored(self.engine.log.clone(), entry, end), seen))
    }

    /// Where the session's events are now.
    pub(super) fn place(&self) -> Result<Place> {
        self.place_and(|_| ()).map(|(place, ())| place)
    }

    /// The surface, if this is the live session number `dense` and it has exactly `seq` events.
    pub(super) fn surface_at(&self, dense: u64, seq: u64) -> Option<Surface> {
        let state = self.state();
        let is_there = self.dense == dense && matches!(state.phase, Phase::Live) && state.next_seq == seq;
        is_there.then(|| state.surface.clone())
    }

    /// Notes that a flush of the first `next_seq` events was acknowledged.
    pub(super) fn note_durable(&self, next_seq: u64) {
        self.state().marks.reached(next_seq);
    }

    /// Lets the log forget the session. Only the first call counts: by a second one somebody may have resumed it.
    pub(super) fn give_back(&self) {
        if self.attached.swap(false, Ordering::AcqRel) {
            self.engine.log.detach(self.dense);
        }
    }

    /// Ends the session in memory and takes it out of the live set.
    pub(super) fn end(&self, why: Ended) {
        let feeds = {
            let mut state = self.state();
            if !matches!(state.phase, Phase::Ended(_)) {
                state.phase = Phase::Ended(why);
            }
            std::mem::take(&mut state.feeds)
        };
        drop(feeds);
        self.give_back();
        if let Some(live) = self.live.upgrade() {
            live.remove(&self.id, self.key);
        }
    }
}

/// The records of one batch.
fn seal(drafts: Vec<Draft>, dense: u64, first: u64) -> Vec<Entry> {
    let last = drafts.len().saturating_sub(1);
    let drafts = drafts.into_iter().enumerate();
    drafts.zip(first..).map(|((place, draft), seq)| draft.seal(dense, seq, place < last)).collect()
}

/// What a [`Core`] is made of.
pub(super) struct CoreParts {
    pub(super) id: Arc<str>,
    pub(super) dense: u64,
    pub(super) header: Header,
    pub(super) engine: Arc<Engine>,
    pub(super) live: Weak<LiveTable>,
    pub(super) state: State,
}

impl State {
    /// Refuses use of a session that ended.
    pub(super) fn check_open(&self, id: &str) -> Result<()> {
        match self.phase {
            Phase::Ended(ended) => Err(ended.error(id)),
            Phase::Entered(_) | Phase::Live => Ok(()),
        }
    }
}

impl Ended {
    pub(super) fn error(self, id: &str) -> Error {
        let why = match self {
            Self::Detached => "was detached from the store; resume it to write again",
            Self::RolledBack => "never came into the store: its announcement failed or was given up",
            Self::Deleted => "was deleted",
            Self::StoreClosed => "belongs to a store that was closed; open the store again",
        };
        Error::new(ErrorKind::Closed, format!("session {id:?} {why}"))
    }
}

impl Marks {
    /// The first `next_seq` events are durable once the log is durable up to `end`.
    pub(super) fn new(end: Lsn, next_seq: u64) -> Self {
        Self { durable: 0, open: VecDeque::from([(end, next_seq)]) }
    }

    pub(super) fn push(&mut self, end: Lsn, next_seq: u64) {
        if self.open.len() >= MAX_MARKS {
            let mut keep = false;
            self.open.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.open.push_back((end, next_seq));
    }

    /// Up to where the log must come for all of the session.
    pub(super) fn end(&self) -> Lsn {
        self.open.back().map_or(Lsn::NONE, |(end, _)| *end)
    }

    /// Somebody saw the first `next_seq` events become durable.
    pub(super) fn reached(&mut self, next_seq: u64) {
        self.durable = self.durable.max(next_seq);
    }

    /// How many leading events are durable when the log is durable up to `durable`.
    pub(super) fn durable(&mut self, durable: Lsn) -> u64 {
        // The last mark stays: it is where a flush has to come.
        while let Some((end, next_seq)) = self.open.front().copied() {
            if end > durable {
                break;
            }
            self.durable = self.durable.max(next_seq);
            if self.open.len() == 1 {
                break;
            }
            self.open.pop_front();
        }
        self.durable
    }
}
