//! A live session: the handle that appends and reads.
//!
//! Always: an append is visible to every reading method of every handle when it returns (A1). Never: an append
//! waits for I/O, for another thread's listener, or for a lock that is held across either.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::event::{
    Event, Header, Message, NewEvent, PlainEvent, Surface, SurfaceEvent, SurfaceIntent, SurfaceNode, Time,
};
use crate::format::Lsn;
use crate::log::Durability;

use super::core::{Core, Ended, Phase};
use super::draft::Draft;
use super::listeners::{Flushing, ListenerId};
use super::place::Events;
use super::provenance::{Provenance, provenance};
use super::subscription::{self, Subscription};
use super::ticket::{FlushTicket, Round};

/// A session that is open for writing. Handles are cheap to clone and can be used from many threads.
#[derive(Clone)]
pub struct Session {
    core: Arc<Core>,
}

/// What an append gives back: the event's place and time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Appended {
    /// The sequence number.
    pub seq: u64,
    /// The time that was stored.
    pub time: Time,
}

/// A typed event that makes a message, on its way to the dynamic door.
pub(super) fn message<E: SurfaceEvent>(
    event: &E,
    intent: SurfaceIntent,
    sources: Option<Vec<u64>>,
) -> Result<NewEvent> {
    let event = NewEvent::message(event, intent)?;
    Ok(match sources {
        Some(sources) => event.with_sources(sources),
        None => event,
    })
}

/// The session has moved on (A7).
pub(super) fn conflict(id: &str, seq: u64, expected: u64) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!("session {id:?} is at seq {seq}, not at the expected {expected}; read on and try again"),
    )
}

impl Session {
    pub(super) fn from_core(core: Arc<Core>) -> Self {
        Self { core }
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(super) fn key(&self) -> u64 {
        self.core.key
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.core.id
    }

    /// The header, which never changes.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.core.header
    }

    /// The sequence number that the next event gets: the number of events.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.core.state().next_seq
    }

    /// Appends an event through the dynamic door. It is visible at once and reaches the disk without a flush within
    /// milliseconds; [`flush`](Self::flush) makes it durable.
    ///
    /// # Errors
    /// [`Marker`](ErrorKind::Marker), [`Sources`](ErrorKind::Sources) and [`Replace`](ErrorKind::Replace) for
    /// surface metadata that the rules refuse (A2, A4, A5); [`TooLarge`](ErrorKind::TooLarge);
    /// [`Backpressure`](ErrorKind::Backpressure) when there is no room at the moment and
    /// [`Full`](ErrorKind::Full) when the disk has none; [`Poisoned`](ErrorKind::Poisoned) after a failed write;
    /// [`Closed`](ErrorKind::Closed); [`Listener`](ErrorKind::Listener) from inside a listener of this session.
    /// After any of them nothing has changed (A3).
    pub fn append(&self, event: NewEvent) -> Result<Appended> {
        self.append_one(None, event)
    }

    /// As [`append`](Self::append), if the event gets the seq `expected` (A7).
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) when the session has moved on, and those of [`append`](Self::append).
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

    /// Appends a typed event that makes a message, at the place on the surface that `intent` says, made from the
    /// events `sources` (none: no `sourceEventSeqs` is stored).
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

    /// Appends all of the events or none, also across a crash (A6). The range of their seqs.
    ///
    /// # Errors
    /// Those of [`append`](Self::append), for the first event that is refused.
    pub fn append_batch(&self, events: Vec<NewEvent>) -> Result<Range<u64>> {
        self.append_all(None, events)
    }

    /// As [`append_batch`](Self::append_batch), if the first event gets the seq `expected` (A7).
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) when the session has moved on, and those of
    /// [`append_batch`](Self::append_batch).
    pub fn append_batch_expecting(&self, expected: u64, events: Vec<NewEvent>) -> Result<Range<u64>> {
        self.append_all(Some(expected), events)
    }

    fn append_one(&self, expect: Option<u64>, event: NewEvent) -> Result<Appended> {
        let draft = Draft::new(event, &self.core.engine.now())?;
        let time = draft.time().clone();
        let range = self.core.append(expect, vec![draft])?;
        Ok(Appended { seq: range.start, time })
    }

    fn append_all(&self, expect: Option<u64>, events: Vec<NewEvent>) -> Result<Range<u64>> {
        let drafts = Draft::batch(events, &self.core.engine.now())?;
        self.core.append(expect, drafts)
    }

    /// All events, streamed. An error that is not about one event comes as the only item.
    #[must_use]
    pub fn events(&self) -> Events {
        self.read_from(0)
    }

    /// The events from `seq` on, streamed; those that are appended later are not among them.
    #[must_use]
    pub fn read_from(&self, seq: u64) -> Events {
        self.core.place().map_or_else(Events::failed, |place| place.read_from(seq))
    }

    /// The last `count` events, oldest first, at the cost of reading these.
    #[must_use]
    pub fn tail(&self, count: u64) -> Events {
        self.core.place().map_or_else(Events::failed, |place| place.tail(count))
    }

    /// The event `seq`.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) for a seq that the session does not have;
    /// [`Corrupt`](ErrorKind::Corrupt) when it was lost to damage.
    pub fn event(&self, seq: u64) -> Result<Event> {
        self.core.place()?.event(seq)
    }

    /// The nodes of the surface, from head to tail.
    #[must_use]
    pub fn surface(&self) -> Vec<SurfaceNode> {
        self.with_surface(|surface| surface.nodes().collect())
    }

    /// Looks at the surface without copying it. Appends of this session wait meanwhile: be quick, and do not use
    /// the session inside.
    pub fn with_surface<T>(&self, look: impl FnOnce(&Surface) -> T) -> T {
        look(&self.core.state().surface)
    }

    /// The messages for a model: the surface, derived (M). What was derived before is not read again.
    ///
    /// # Errors
    /// [`Corrupt`](ErrorKind::Corrupt) when a message was lost to damage; errors of reading.
    pub fn derive_messages(&self) -> Result<Vec<Message>> {
        let (place, nodes) =
            self.core.place_and(|surface| surface.nodes().map(|node| node.seq).collect::<Vec<_>>())?;
        self.core.messages.derive(&nodes, |seqs| place.pick(seqs))
    }

    /// Where the event `seq` comes from and what became of it (S4).
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn provenance(&self, seq: u64) -> Result<Provenance> {
        let (place, surface) = self.core.place_and(Surface::clone)?;
        let structure = place.structure()?;
        provenance(seq, &structure, &surface, |seqs| place.pick(seqs))
    }

    /// Makes everything that was appended so far durable, and runs the flush listeners beside that (A8).
    ///
    /// # Errors
    /// The failure of the log, else the first one of a listener, after all have settled.
    pub fn flush(&self) -> Result<()> {
        let (upto, seq) = self.flushable()?;
        let round = self.start_listeners(seq)?;
        let log = self.core.engine.log.flush(upto, Durability::Durable);
        if log.is_ok() {
            self.core.note_durable(seq);
        }
        let listeners = round.map_or(Ok(()), |round| round.wait());
        log.and(listeners)
    }

    /// Starts a flush, to be waited for or awaited.
    ///
    /// # Errors
    /// As [`flush`](Self::flush), for what can be known at once.
    pub fn flush_ticket(&self) -> Result<FlushTicket> {
        let (upto, seq) = self.flushable()?;
        let round = self.start_listeners(seq)?;
        Ok(FlushTicket::new(self.core.engine.log.ticket(upto), round, Some((Arc::clone(&self.core), seq))))
    }

    /// Brings everything that was appended so far to `how`, without the flush listeners.
    ///
    /// # Errors
    /// The failure of the log.
    pub fn flush_to(&self, how: Durability) -> Result<()> {
        let (upto, seq) = self.flushable()?;
        self.core.engine.log.flush(upto, how)?;
        if how == Durability::Durable {
            self.core.note_durable(seq);
        }
        Ok(())
    }

    /// The highest seq that is durable, if any is. After a failed write, what is above it may be lost (G5).
    #[must_use]
    pub fn durable_seq(&self) -> Option<u64> {
        let durable = self.core.engine.log.durable();
        self.core.state().marks.durable(durable).checked_sub(1)
    }

    /// A feed of the events from now on, with room for `capacity` of them.
    ///
    /// # Errors
    /// [`Closed`](ErrorKind::Closed) when the session is not live any more.
    pub fn subscribe(&self, capacity: usize) -> Result<Subscription> {
        let (feed, subscription) = subscription::feed(capacity, Arc::clone(&self.core.engine.runtime));
        let mut state = self.core.state();
        state.check_open(&self.core.id)?;
        state.feeds.push(Arc::new(feed));
        Ok(subscription)
    }

    /// Calls `listener` after each append to this session, in seq order, on the thread of an appender. Its errors
    /// and panics reach nobody (A8). The session is passed in: a listener that holds a handle of its own session keeps
    /// that in memory for ever.
    pub fn on_event(
        &self,
        listener: impl Fn(&Session, &Event) -> Result<()> + Send + Sync + 'static,
    ) -> ListenerId {
        self.core.listeners.on_event(listener)
    }

    /// Calls `listener` at each flush of this session, beside the other flush listeners; the flush waits for it.
    pub fn on_flush(&self, listener: impl Fn(&Flushing) -> Result<()> + Send + Sync + 'static) -> ListenerId {
        self.core.listeners.on_flush(listener)
    }

    /// Removes a listener of this session; whether it was there.
    pub fn remove_listener(&self, id: ListenerId) -> bool {
        self.core.listeners.remove(id)
    }

    /// Flushes, and takes the session out of the live set also when that failed. Other handles get
    /// [`Closed`](ErrorKind::Closed) from then on.
    ///
    /// # Errors
    /// The failure of the flush.
    pub fn close(&self) -> Result<()> {
        let flushed = self.flush();
        self.detach();
        flushed
    }

    /// Takes the session out of the live set without a flush. What was appended reaches the disk as ever; appends
    /// get [`Closed`](ErrorKind::Closed), reading goes on.
    pub fn detach(&self) {
        let why = match self.core.state().phase {
            Phase::Entered(_) => Ended::RolledBack,
            _ => Ended::Detached,
        };
        self.core.end(why);
    }

    /// Whether the handle can append: the session was not detached, deleted or closed.
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self.core.state().phase, Phase::Live)
    }

    /// Up to where a flush has to come, and how many events it covers.
    fn flushable(&self) -> Result<(Lsn, u64)> {
        self.core.engine.log.check_fault()?;
        let state = self.core.state();
        match &state.phase {
            Phase::Live | Phase::Ended(Ended::Detached) => Ok((state.marks.end(), state.next_seq)),
            Phase::Entered(_) => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("session {:?} was not announced yet: there is nothing to flush", self.core.id),
            )),
            Phase::Ended(ended) => Err(ended.error(&self.core.id)),
        }
    }

    fn start_listeners(&self, seq: u64) -> Result<Option<Arc<Round>>> {
        super::inside::refuse_flush(self.key())?;
        let told = Flushing { session: Some(self.clone()), seq };
        let mut calls = self.core.engine.listeners.flush_calls(&told);
        calls.extend(self.core.listeners.flush_calls(&told));
        Ok(Round::start(&self.core.engine.runtime, calls))
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.id()).finish_non_exhaustive()
    }
}
