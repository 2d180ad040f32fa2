//! An event on its way into the log: everything about it that needs no lock is done.
//!
//! Always: limits are checked before encoding (F10), and the payload is encoded and hashed outside every lock (C1).
//! What is left to do under the session's lock is to check it against the surface and to give it its seq.

use crate::error::{Error, ErrorKind, Result};
use crate::event::{Class, Event, MAX_BATCH_BYTES, NewEvent, SurfaceOp, Time};
use crate::format::payload::{self, Encoded, Parts};
use crate::format::{Meta, RecordDraft};
use crate::log::{Entry, Note};

/// An encoded event that lacks session, seq and place.
#[derive(Clone)]
pub(super) struct Encoding {
    class: Class,
    op: Option<SurfaceOp>,
    time_ms: i64,
    encoded: Encoded,
    record: RecordDraft,
}

impl Encoding {
    /// Encodes an event that has its seq.
    pub(super) fn of_event(event: &Event) -> Result<Self> {
        Self::new(&Parts::of_event(event))
    }

    fn new(parts: &Parts<'_>) -> Result<Self> {
        parts.check_limits()?;
        // Room for a packed chunk, or for what stands before the data of others.
        let room = if parts.class == Class::Chunk { parts.data.len().saturating_sub(64) } else { 0 };
        let mut front = Vec::with_capacity(room.max(32));
        let (encoded, data_follows) = payload::encode_front(parts, &mut front);
        let record = if data_follows {
            RecordDraft::with_text(front, parts.data.shared())
        } else {
            RecordDraft::new(front)
        };
        Ok(Self {
            class: parts.class,
            op: parts.surface_op,
            time_ms: parts.time.millis_rounded(),
            encoded,
            record,
        })
    }

    /// Bytes of the encoded payload.
    pub(super) fn len(&self) -> usize {
        self.record.payload_len()
    }

    /// The record of the event `seq` of the session `dense`; `more` when the next record is of the same batch.
    pub(super) fn seal(self, dense: u64, seq: u64, more: bool) -> Entry {
        let Self { class, op, time_ms, encoded, record } = self;
        let meta = Meta::Event(encoded.meta(dense, seq, more));
        Entry { record: record.seal(&meta), note: Note::Event { dense, seq, class, op, time_ms } }
    }
}

/// An event to be appended, encoded, with what a session checks it by.
pub(super) struct Draft {
    event: NewEvent,
    time: Time,
    encoding: Encoding,
}

impl Draft {
    /// Encodes `event`; without a time of its own it gets `now`.
    pub(super) fn new(event: NewEvent, now: &Time) -> Result<Self> {
        let time = event.time().unwrap_or(now).clone();
        // A line that is kept verbatim names its seq; every other event encodes the same at any seq.
        let seq = event.line.as_ref().map_or(0, |(_, seq)| *seq);
        let encoding = Encoding::new(&Parts::of_new(&event, seq, &time))?;
        Ok(Self { event, time, encoding })
    }

    /// Encodes a batch.
    pub(super) fn batch(events: Vec<NewEvent>, now: &Time) -> Result<Vec<Self>> {
        let mut drafts = Vec::with_capacity(events.len());
        let mut bytes = 0usize;
        let count = events.len();
        for (index, event) in events.into_iter().enumerate() {
            let draft = Self::new(event, now).map_err(|error| of_batch(count, index, error))?;
            bytes = bytes.saturating_add(draft.encoding.len());
            if bytes > MAX_BATCH_BYTES {
                return Err(Error::new(
                    ErrorKind::TooLarge,
                    format!(
                        "append: the batch has {bytes} encoded bytes, at most {MAX_BATCH_BYTES} are possible"
                    ),
                ));
            }
            drafts.push(draft);
        }
        Ok(drafts)
    }

    /// The event to be checked against a session.
    pub(super) fn event(&self) -> &NewEvent {
        &self.event
    }

    /// The event as it will be stored at `seq`. A verbatim line of another seq is given up.
    pub(super) fn settle(&mut self, seq: u64) -> Result<Event> {
        if self.event.line.take_if(|(_, own)| *own != seq).is_some() {
            self.encoding = Encoding::new(&Parts::of_new(&self.event, seq, &self.time))?;
        }
        Ok(self.event.clone().into_event(seq, self.time.clone()))
    }

    pub(super) fn time(&self) -> &Time {
        &self.time
    }

    /// See [`Encoding::seal`].
    pub(super) fn seal(self, dense: u64, seq: u64, more: bool) -> Entry {
        self.encoding.seal(dense, seq, more)
    }
}

/// Says which event of a batch of `count` an error is about.
pub(super) fn of_batch(count: usize, index: usize, error: Error) -> Error {
    if count < 2 {
        return error;
    }
    error.clone().wrap(error.kind(), format!("events[{index}] of the batch"))
}

/// The limits of F10 for a stored event that is not encoded.
pub(super) fn check_limits_of(event: &Event) -> Result<()> {
    Parts::of_event(event).check_limits()
}

/// The limits of F10 for an event that is not encoded.
pub(super) fn check_limits(event: &NewEvent) -> Result<()> {
    Parts::of_new(event, 0, &Time::from_millis(0)).check_limits()
}
