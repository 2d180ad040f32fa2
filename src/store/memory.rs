//! A session without a store (L2).
//!
//! Always: the same rules, checked by the same code, as a session in a store. Never: it touches a disk; it is gone
//! when its last handle is.

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, ErrorKind, Result};
use crate::event::{
    Event, Header, Message, NewEvent, PlainEvent, Staged, Surface, SurfaceEvent, SurfaceIntent, SurfaceNode,
    Time,
};
use crate::rt::{RealRuntime, Runtime};

use super::create::SeedFold;
use super::draft;
use super::messages::MessageCache;
use super::options::Invariants;
use super::place::{Events, structure_of};
use super::provenance::{Provenance, provenance};
use super::rules::Rules;
use super::session::{Appended, conflict, message};
use super::subscription::{self, Feed, Subscription};

/// A session in memory. Handles are cheap to clone and can be used from many threads.
#[derive(Clone)]
pub struct MemorySession {
    inner: Arc<Inner>,
}

struct Inner {
    header: Header,
    runtime: Arc<dyn Runtime>,
    state: Mutex<State>,
    messages: MessageCache,
}

struct State {
    events: Vec<Event>,
    surface: Surface,
    rules: Option<Rules>,
    feeds: Vec<Arc<Feed>>,
}

impl MemorySession {
    /// An empty session.
    #[must_use]
    pub fn new(header: Header) -> Self {
        let fold = SeedFold::new(Invariants::Off);
        Self::assemble(header, Vec::new(), fold, Arc::new(RealRuntime::new()))
    }

    /// A session that begins with `seed`, kept exactly.
    ///
    /// # Errors
    /// The first event that breaks rules I1 to I4, by name; nothing is made then.
    pub fn with_seed(header: Header, seed: Vec<Event>) -> Result<Self> {
        Self::build(header, seed, Invariants::Off, Arc::new(RealRuntime::new()))
    }

    /// As [`with_seed`](Self::with_seed), with rules I5 to I10 checked at each append as `policy` says, and with the
    /// clock and waits of `runtime`.
    ///
    /// # Errors
    /// As [`with_seed`](Self::with_seed).
    pub fn build(
        header: Header,
        seed: Vec<Event>,
        policy: Invariants,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self> {
        let mut fold = SeedFold::new(policy);
        seed.iter().try_for_each(|event| fold.push(event))?;
        Ok(Self::assemble(header, seed, fold, runtime))
    }

    fn assemble(header: Header, events: Vec<Event>, mut fold: SeedFold, runtime: Arc<dyn Runtime>) -> Self {
        let state =
            State { events, rules: fold.rules.take(), surface: fold.into_surface(), feeds: Vec::new() };
        let state = Mutex::new(state);
        Self { inner: Arc::new(Inner { header, runtime, state, messages: MessageCache::default() }) }
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.inner.header.id()
    }

    /// The header, which never changes.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.inner.header
    }

    /// The sequence number that the next event gets.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.inner.state.lock().events.len() as u64
    }

    /// Appends an event through the dynamic door.
    ///
    /// # Errors
    /// Those of [`Session::append`](crate::Session::append) that do not come from a store.
    pub fn append(&self, event: NewEvent) -> Result<Appended> {
        self.append_one(None, event)
    }

    /// As [`append`](Self::append), if the event gets the seq `expected` (A7).
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict), and those of [`append`](Self::append).
    pub fn append_expecting(&self, expected: u64, event: NewEvent) -> Result<Appended> {
        self.append_one(Some(expected), event)
    }

    /// Appends a typed event that makes no message.
    ///
    /// # Errors
    /// [`InvalidValue`](ErrorKind::InvalidValue) with the path of what JSON cannot carry (J), and those of
    /// [`append`](Self::append).
    pub fn append_event<E: PlainEvent>(&self, event: &E) -> Result<Appended> {
        self.append(NewEvent::plain(event)?)
    }

    /// Appends a typed event that makes a message.
    ///
    /// # Errors
    /// As [`append_event`](Self::append_event).
    pub fn append_message<E: SurfaceEvent>(
        &self,
        event: &E,
        intent: SurfaceIntent,
        sources: Option<Vec<u64>>,
    ) -> Result<Appended> {
        self.append(message(event, intent, sources)?)
    }

    /// Appends all of the events or none (A6). The range of their seqs.
    ///
    /// # Errors
    /// Those of [`append`](Self::append), for the first event that is refused.
    pub fn append_batch(&self, events: Vec<NewEvent>) -> Result<Range<u64>> {
        self.append_all(None, &events).map(|(range, _)| range)
    }

    /// As [`append_batch`](Self::append_batch), if the first event gets the seq `expected` (A7).
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict), and those of [`append_batch`](Self::append_batch).
    pub fn append_batch_expecting(&self, expected: u64, events: Vec<NewEvent>) -> Result<Range<u64>> {
        self.append_all(Some(expected), &events).map(|(range, _)| range)
    }

    fn append_one(&self, expect: Option<u64>, event: NewEvent) -> Result<Appended> {
        let (range, time) = self.append_all(expect, &[event])?;
        let time = time.unwrap_or_else(|| Time::from_millis(0));
        Ok(Appended { seq: range.start, time })
    }

    /// The seqs, and the time of the last event.
    fn append_all(&self, expect: Option<u64>, new: &[NewEvent]) -> Result<(Range<u64>, Option<Time>)> {
        new.iter().try_for_each(draft::check_limits)?;
        let now = Time::from_millis(self.inner.runtime.unix_millis());
        let mut state = self.inner.state.lock();
        let first = state.events.len() as u64;
        if let Some(expected) = expect.filter(|expected| *expected != first) {
            return Err(conflict(self.id(), first, expected));
        }
        let events = state.accept(new, &now)?;
        state.events.extend_from_slice(&events);
        let feeds = state.feed(&events);
        let range = first..state.events.len() as u64;
        drop(state);
        feeds.iter().for_each(|feed| feed.wake());
        Ok((range, events.last().map(|event| event.time().clone())))
    }

    /// All events.
    #[must_use]
    pub fn events(&self) -> Events {
        self.read_from(0)
    }

    /// The events from `seq` on; those that are appended later are not among them.
    #[must_use]
    pub fn read_from(&self, seq: u64) -> Events {
        let state = self.inner.state.lock();
        let from = usize::try_from(seq).unwrap_or(usize::MAX);
        Events::in_memory(state.events.get(from..).unwrap_or_default())
    }

    /// The last `count` events, oldest first.
    #[must_use]
    pub fn tail(&self, count: u64) -> Events {
        let seq = self.seq();
        self.read_from(seq.saturating_sub(count))
    }

    /// The event `seq`.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) for a seq that the session does not have.
    pub fn event(&self, seq: u64) -> Result<Event> {
        let state = self.inner.state.lock();
        let found = usize::try_from(seq).ok().and_then(|seq| state.events.get(seq)).cloned();
        found.ok_or_else(|| {
            let count = state.events.len();
            Error::new(
                ErrorKind::NotFound,
                format!("there is no event {seq}; the session has {count} events"),
            )
        })
    }

    fn pick(&self, seqs: &[u64]) -> Result<Vec<Event>> {
        seqs.iter().map(|seq| self.event(*seq)).collect()
    }

    /// The nodes of the surface, from head to tail.
    #[must_use]
    pub fn surface(&self) -> Vec<SurfaceNode> {
        self.with_surface(|surface| surface.nodes().collect())
    }

    /// Looks at the surface without copying it. Do not use the session inside.
    pub fn with_surface<T>(&self, look: impl FnOnce(&Surface) -> T) -> T {
        look(&self.inner.state.lock().surface)
    }

    /// The messages for a model: the surface, derived (M).
    ///
    /// # Errors
    /// None at present; as for sessions in a store.
    pub fn derive_messages(&self) -> Result<Vec<Message>> {
        let nodes: Vec<u64> = self.with_surface(|surface| surface.nodes().map(|node| node.seq).collect());
        self.inner.messages.derive(&nodes, |seqs| self.pick(seqs))
    }

    /// Where the event `seq` comes from and what became of it (S4).
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn provenance(&self, seq: u64) -> Result<Provenance> {
        let (structure, surface) = {
            let state = self.inner.state.lock();
            let nodes = state.events.iter().filter(|event| event.surface_op().is_some());
            let structure: Vec<_> = nodes.map(structure_of).collect();
            (structure, state.surface.clone())
        };
        provenance(seq, &structure, &surface, |seqs| self.pick(seqs))
    }

    /// Nothing to do: there is no disk. It is here so that code can be generic over both kinds of session.
    ///
    /// # Errors
    /// None.
    pub fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// A feed of the events from now on, with room for `capacity` of them.
    #[must_use]
    pub fn subscribe(&self, capacity: usize) -> Subscription {
        let (feed, subscription) = subscription::feed(capacity, Arc::clone(&self.inner.runtime));
        self.inner.state.lock().feeds.push(Arc::new(feed));
        subscription
    }
}

impl State {
    /// Checks the events and folds them in, all or none.
    fn accept(&mut self, new: &[NewEvent], now: &Time) -> Result<Vec<Event>> {
        let first = self.events.len() as u64;
        let mut staged = Staged::begin(&mut self.surface, first);
        let mut events = Vec::with_capacity(new.len());
        for event in new {
            let seq = staged.push(event)?;
            events.push(event.clone().into_event(seq, now.clone()));
        }
        if let Some(rules) = &mut self.rules {
            let trial = rules.try_out(&events)?;
            for violation in &trial.violations {
                tracing::warn!(%violation, "an appended event breaks a rule");
            }
        }
        staged.commit();
        Ok(events)
    }

    fn feed(&mut self, events: &[Event]) -> Vec<Arc<Feed>> {
        self.feeds.retain(|feed| !feed.is_abandoned());
        for event in events {
            for feed in &self.feeds {
                feed.send(event);
            }
        }
        self.feeds.clone()
    }
}

impl std::fmt::Debug for MemorySession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemorySession").field("id", &self.id()).finish_non_exhaustive()
    }
}
