//! The way of a new session's first batch into the log, in pieces when it is large (F10).
//!
//! Always: a new session appears whole or not at all. Up to 1 MiB it is one batch; past that its records are staged,
//! invisible until the publish record that the last batch ends with. Never: a lock is held while it waits for room,
//! and never more than two pieces are in memory at a time.

use std::sync::Arc;

use crate::error::Result;
use crate::event::{Event, Header};
use crate::format::lsn::Lsn;
use crate::log::{Entry, Fork};
use crate::mutation::{self, Mutation};

use super::draft::Encoding;
use super::engine::Engine;
use super::records;

/// Encoded bytes past which a session is staged.
const STAGED_PAST: usize = 1 << 20;
/// Encoded bytes of a piece of a staged session: small beside what may be unflushed.
const PIECE: usize = 256 << 10;
/// Encoded bytes past which the rest of a known session becomes more than one batch: it cannot be staged. Every batch
/// leaves the session a prefix of what comes in, so that a second try goes on from there.
pub(crate) const EXTENSION: usize = 32 << 20;

/// What the first record of the batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// A new session. It may be staged.
    Create,
    /// A new session that refers to another one's events.
    Fork(Fork),
    /// A stored session goes on; with `accept_loss` up to this seq.
    Resume { accept_loss: Option<u64> },
    /// A stored session gets more events from elsewhere.
    Extend,
}

impl Opening {
    /// A session that is not there yet, and so can be staged.
    fn is_new(self) -> bool {
        matches!(self, Self::Create | Self::Fork(_))
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
    /// The newest event: whether more follow is not known yet.
    last: Option<(Encoding, u64)>,
    bytes: usize,
    /// The end of what an extension has written already.
    written: Option<Lsn>,
    /// The log has the opening record, marked as staged.
    is_staged: bool,
}

impl Stage {
    pub(super) fn new(engine: Arc<Engine>, dense: u64, header: Header, opening: Opening) -> Self {
        let (sealed, last, written) = (Vec::new(), None, None);
        Self { engine, dense, header, opening, sealed, last, bytes: 0, written, is_staged: false }
    }

    /// Adds the next event. Writes pieces and waits for room as needed: called without any lock.
    pub(super) fn push(&mut self, event: &Event) -> Result<()> {
        self.add(event)?;
        let limit = match self.opening {
            _ if self.is_staged => PIECE,
            Opening::Create | Opening::Fork(_) => STAGED_PAST,
            Opening::Extend => EXTENSION,
            Opening::Resume { .. } if mutation::is_on(Mutation::RepairOneByOne) => 1,
            Opening::Resume { .. } => return Ok(()),
        };
        if self.bytes >= limit { self.write_piece() } else { Ok(()) }
    }

    /// Adds the next event to the last batch. Neither writes nor waits.
    pub(super) fn add(&mut self, event: &Event) -> Result<()> {
        let encoding = Encoding::of_event(event)?;
        self.bytes = self.bytes.saturating_add(encoding.len());
        if let Some((last, seq)) = self.last.replace((encoding, event.seq())) {
            self.sealed.push(last.seal(self.dense, seq, true));
        }
        Ok(())
    }

    /// Hands the last batch to the log: from then on the session is visible. It never waits, so it may be called
    /// under the session's lock. After backpressure it can be called again. The end of what was appended, if
    /// anything had to be.
    pub(super) fn finish(&mut self) -> Result<Option<Lsn>> {
        let has_events = self.last.is_some();
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
            // Its last event was the last one of a piece.
            return Ok(self.written);
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
        if let Err(error) = self.engine.append_waiting(&[records::delete(self.dense)]) {
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
        self.written = Some(end);
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
            Opening::Fork(fork) => Some(records::fork(self.dense, &self.header, fork, staged, more)),
            Opening::Resume { accept_loss } => {
                accept_loss.map(|next_seq| records::accept_loss(self.dense, next_seq, more))
            }
            Opening::Extend => None,
        }
    }
}
