//! The way of many events into the log at once: a new session's first ones, or those that a stored one gets from
//! elsewhere; in pieces when they are large (F10).
//!
//! Always: they appear whole or not at all. Up to 1 MiB they are one batch; past that they are staged, invisible until
//! the publish record that the last batch ends with. A stored session that gets so many goes on under a new number: a
//! staged fork of it, of the same id, that continues it. Never: a lock is held while it waits for room, and never more
//! than two pieces are in memory at a time.

use std::sync::Arc;

use crate::error::Result;
use crate::event::{Class, Event, Header};
use crate::format::lsn::Lsn;
use crate::log::{Entry, Fork};
use crate::mutation::{self, Mutation};

use super::draft::Encoding;
use super::engine::{Engine, not_found};
use super::stat::header_of;
use super::{fork, records};

/// Encoded bytes past which events are staged, by default: small beside what may be unflushed. What a stored session costs
/// more when it goes on under a new number, a header and a link to follow, is nothing beside so many bytes, and the
/// links that may follow each other reach through gigabytes before its events are copied.
pub(super) const STAGED_PAST: usize = 1 << 20;
/// Encoded bytes of a piece of a staged session.
const PIECE: usize = 256 << 10;

/// What the first record of the batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// A new session. It may be staged.
    Create,
    /// A new session that refers to another one's events; whether a turn is open behind them.
    Fork(Fork, bool),
    /// A stored session goes on; with `accept_loss` up to this seq.
    Resume { accept_loss: Option<u64> },
    /// A stored session gets more events from elsewhere.
    Extend,
}

impl Opening {
    /// A session that is not there yet, and so can be staged.
    fn is_new(self) -> bool {
        matches!(self, Self::Create | Self::Fork(..))
    }
}

/// See the module.
pub(super) struct Stage {
    engine: Arc<Engine>,
    dense: u64,
    header: Header,
    opening: Opening,
    /// Records of the open piece; each says that more follow.
    sealed: Vec<Entry>,
    /// Events before the newest one that may come to stand under another number.
    held: Vec<(Encoding, u64)>,
    /// The newest event: whether more follow is not known yet.
    last: Option<(Encoding, u64)>,
    bytes: usize,
    /// The log has the opening record, marked as staged.
    is_staged: bool,
}

impl Stage {
    pub(super) fn new(engine: Arc<Engine>, dense: u64, header: Header, opening: Opening) -> Self {
        let (sealed, held) = (Vec::new(), Vec::new());
        Self { engine, dense, header, opening, sealed, held, last: None, bytes: 0, is_staged: false }
    }

    /// The number that the events stand under.
    pub(super) fn dense(&self) -> u64 {
        self.dense
    }

    /// Takes note of an event that a fork inherits.
    pub(super) fn inherit(&mut self, class: Class) {
        if let Opening::Fork(_, turn_open) = &mut self.opening {
            match class {
                Class::TurnStart => *turn_open = true,
                Class::TurnEnd => *turn_open = false,
                _ => {}
            }
        }
    }

    /// Adds the next event. Writes pieces and waits for room as needed: called without any lock.
    pub(super) fn push(&mut self, event: &Event) -> Result<()> {
        self.add(event)?;
        self.relieve()
    }

    /// Adds the next event to the last batch. Neither writes nor waits.
    pub(super) fn add(&mut self, event: &Event) -> Result<()> {
        self.take(Encoding::of_event(event)?, event.seq());
        Ok(())
    }

    fn take(&mut self, encoding: Encoding, seq: u64) {
        self.bytes = self.bytes.saturating_add(encoding.len());
        match (self.last.replace((encoding, seq)), self.opening) {
            (Some(last), Opening::Extend) => self.held.push(last),
            (Some((last, seq)), _) => self.sealed.push(last.seal(self.dense, seq, true)),
            (None, _) => {}
        }
    }

    /// Writes a piece if there is one by now.
    fn relieve(&mut self) -> Result<()> {
        let limit = if self.is_staged { self.engine.staged_past.min(PIECE) } else { self.engine.staged_past };
        match self.opening {
            Opening::Resume { .. } if mutation::is_on(Mutation::RepairOneByOne) => self.write_piece(),
            _ if self.bytes < limit => Ok(()),
            Opening::Create | Opening::Fork(..) => self.write_piece(),
            Opening::Extend => self.go_on_under_a_new_number(),
            Opening::Resume { .. } => Ok(()),
        }
    }

    /// Turns what would have been added to the stored session into one that continues it.
    fn go_on_under_a_new_number(&mut self) -> Result<()> {
        let id = self.header.id();
        let stored = self.engine.log.session(self.dense)?.ok_or_else(|| not_found(id))?;
        let fork = fork::continuation(&self.engine, &stored)?;
        let copied = stored.next_seq.saturating_sub(fork.cut);
        // What comes in may spell it otherwise.
        self.header = header_of(&stored)?;
        self.dense = self.engine.log.allocate_dense()?;
        self.opening = Opening::Fork(fork, stored.open_turn && copied == 0);
        let mut held = std::mem::take(&mut self.held);
        held.extend(self.last.take());
        self.bytes = 0;
        if copied > 0 {
            for event in self.engine.log.events(&stored, 0, stored.next_seq)? {
                self.push(&event?)?;
            }
        }
        for (encoding, seq) in held {
            self.take(encoding, seq);
            self.relieve()?;
        }
        Ok(())
    }

    /// Hands the last batch to the log: from then on the session is visible. It never waits, so it may be called
    /// under the session's lock. After backpressure it can be called again. The end of what was appended, if
    /// anything had to be.
    pub(super) fn finish(&mut self) -> Result<Option<Lsn>> {
        let has_events = self.last.is_some();
        let held = self.held.drain(..).map(|(encoding, seq)| encoding.seal(self.dense, seq, true));
        self.sealed.extend(held);
        let mut batch = Vec::with_capacity(self.sealed.len() + 2);
        batch.extend(self.first_record(false, has_events));
        let front = batch.len();
        batch.append(&mut self.sealed);
        let events = batch.len();
        if let Some((last, seq)) = &self.last {
            batch.push(last.clone().seal(self.dense, *seq, self.is_staged));
        }
        if self.is_staged {
            batch.push(records::publish(self.dense));
        }
        if batch.is_empty() {
            return Ok(None);
        }
        match self.engine.log.append(&batch) {
            Ok(appended) => {
                self.last = None;
                self.is_staged = false;
                Ok(Some(appended.end))
            }
            Err(error) => {
                batch.truncate(events);
                self.sealed.extend(batch.drain(front..));
                Err(error)
            }
        }
    }

    /// Waits until the last batch may fit. Called without any lock.
    pub(super) fn wait_for_room(&self) -> Result<()> {
        self.engine.log.wait_for_room(self.bytes)
    }

    /// Takes back what was staged and not published, as far as that is possible now; otherwise the next open does.
    pub(super) fn abandon(&mut self) {
        if !self.is_staged {
            return;
        }
        self.is_staged = false;
        if let Err(error) = self.engine.append_waiting(&[records::delete(self.dense, false)]) {
            tracing::warn!(session = self.header.id(), %error, "a staged session is left for the next open to remove");
        }
    }

    fn write_piece(&mut self) -> Result<()> {
        let mut piece = Vec::with_capacity(self.sealed.len() + 2);
        piece.extend(self.first_record(true, self.last.is_some()));
        piece.append(&mut self.sealed);
        if let Some((last, seq)) = self.last.take() {
            piece.push(last.seal(self.dense, seq, false));
        }
        self.bytes = 0;
        let end = self.engine.append_waiting(&piece)?.end;
        // Written and synced while the next pieces are made, so that a large session rarely has to wait for room.
        self.engine.log.flush_soon(end);
        if mutation::is_on(Mutation::RepairOneByOne) {
            self.engine.log.flush(end, crate::log::Durability::Durable)?;
        }
        self.is_staged = self.opening.is_new();
        Ok(())
    }

    fn first_record(&self, staged: bool, more: bool) -> Option<Entry> {
        match self.opening {
            _ if self.is_staged => None,
            Opening::Create => Some(records::create(self.dense, &self.header, staged, more)),
            Opening::Fork(fork, turn_open) => {
                Some(records::fork(self.dense, &self.header, fork, turn_open, staged, more))
            }
            Opening::Resume { accept_loss } => {
                accept_loss.map(|next_seq| records::accept_loss(self.dense, next_seq, more))
            }
            Opening::Extend => None,
        }
    }
}
