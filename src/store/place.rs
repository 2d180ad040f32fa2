//! Where the events of one session are read from: the log, and before its batch is written, memory.
//!
//! Always: seqs below `stored` come from the log, the rest up to `end` from memory. It is a snapshot: events that
//! are appended later are not seen. Never: it holds a lock.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::event::{Class, Event};
use crate::format::lsn::Lsn;
use crate::log::{EventIter, Log, SessionEntry, Structure};

/// A snapshot of a session to read from.
#[derive(Clone)]
pub(super) struct Place {
    /// The log and the session in it whose events below `stored` are read; none for a session in memory.
    log: Option<(Log, SessionEntry)>,
    stored: u64,
    /// Events from `stored` on.
    memory: Arc<[Event]>,
    end: u64,
}

impl Place {
    /// The first `end` events of a session that is in the log.
    pub(super) fn stored(log: Log, entry: SessionEntry, end: u64) -> Self {
        Self { log: Some((log, entry)), stored: end, memory: Arc::from([]), end }
    }

    /// A session whose events below `stored` are in the log (if it is there at all) and the others here.
    pub(super) fn mixed(log: Option<(Log, SessionEntry)>, stored: u64, memory: Arc<[Event]>) -> Self {
        let end = stored.saturating_add(memory.len() as u64);
        Self { log, stored, memory, end }
    }

    /// The seq behind the last event.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn event(&self, seq: u64) -> Result<Event> {
        let found = match (&self.log, seq.checked_sub(self.stored)) {
            _ if seq >= self.end => None,
            (Some((log, entry)), None) => log.event(entry, seq)?,
            (_, place) => {
                let place = place.and_then(|place| usize::try_from(place).ok());
                place.and_then(|place| self.memory.get(place)).cloned()
            }
        };
        found.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("there is no event {seq}; the session has {} events", self.end),
            )
        })
    }

    /// Single events, `seqs` ascending.
    pub(super) fn pick(&self, seqs: &[u64]) -> Result<Vec<Event>> {
        let (stored, memory) = seqs.split_at(seqs.partition_point(|seq| *seq < self.stored));
        let mut events = match &self.log {
            Some((log, entry)) => log.pick(entry, stored)?,
            None => Vec::new(),
        };
        for seq in memory {
            events.push(self.event(*seq)?);
        }
        Ok(events)
    }

    /// The events `from..end`, streaming.
    pub(super) fn read_from(&self, from: u64) -> Events {
        let log = match &self.log {
            Some((log, entry)) if from < self.stored => match log.events(entry, from, self.stored) {
                Ok(events) => Some(events),
                Err(error) => return Events::failed(error),
            },
            _ => None,
        };
        let next = usize::try_from(from.saturating_sub(self.stored)).unwrap_or(usize::MAX);
        Events { error: None, log, memory: Arc::clone(&self.memory), next }
    }

    /// The last `count` events, oldest first.
    pub(super) fn tail(&self, count: u64) -> Events {
        self.read_from(self.end.saturating_sub(count))
    }

    /// What is known of every event that is no chunk without reading it (S3), in seq order. A hole that nobody
    /// accepted is an error: what is left of the session must not pass for all of it.
    pub(super) fn structure(&self) -> Result<Vec<Structure>> {
        let (mut all, hole) = self.stored_structure()?;
        if let Some(hole) = hole {
            return Err(hole);
        }
        all.extend(self.memory.iter().filter(|event| event.class() != Class::Chunk).map(structure_of));
        Ok(all)
    }

    /// The structure of what is stored, and its first hole that nobody accepted.
    pub(super) fn stored_structure(&self) -> Result<(Vec<Structure>, Option<Error>)> {
        match &self.log {
            Some((log, entry)) if self.stored > 0 => {
                let (found, hole) = log.structure(entry, self.stored)?;
                Ok((found, hole.filter(|_| !self.is_lossy())))
            }
            _ => Ok((Vec::new(), None)),
        }
    }

    /// A loss of this session was accepted: what is missing counts as never written.
    pub(super) fn is_lossy(&self) -> bool {
        self.log.as_ref().is_some_and(|(_, entry)| entry.accepted > Lsn::NONE)
    }
}

/// What the index would record of an event.
pub(super) fn structure_of(event: &Event) -> Structure {
    Structure { seq: event.seq(), class: event.class(), op: event.surface_op() }
}

/// Events in seq order, streamed in bounded memory (L5).
///
/// Where events are lost to damage the iterator gives the error at that place, and goes on behind it at the next
/// call: it never skips a hole silently.
pub struct Events {
    error: Option<Error>,
    log: Option<EventIter>,
    memory: Arc<[Event]>,
    next: usize,
}

impl Events {
    pub(super) fn in_memory(events: &[Event]) -> Self {
        Self { error: None, log: None, memory: Arc::from(events), next: 0 }
    }

    /// Nothing but `error`.
    pub(super) fn failed(error: Error) -> Self {
        Self { error: Some(error), log: None, memory: Arc::from([]), next: 0 }
    }
}

impl Events {
    /// Appends the next event's line, without LF, to `line`: what [`to_line`](Event::to_line) of the next event gives,
    /// without building it. An event that cannot be read leaves `line` as it is.
    pub fn next_line(&mut self, line: &mut String) -> Option<Result<()>> {
        if let Some(error) = self.error.take() {
            return Some(Err(error));
        }
        if let Some(log) = &mut self.log {
            match log.next_line(line) {
                Some(item) => return Some(item),
                None => self.log = None,
            }
        }
        let event = self.memory.get(self.next)?;
        self.next += 1;
        // Writing to a String cannot fail.
        let _ = event.write_line(line);
        Some(Ok(()))
    }
}

impl Iterator for Events {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.error.take() {
            return Some(Err(error));
        }
        if let Some(log) = &mut self.log {
            match log.next() {
                Some(item) => return Some(item),
                None => self.log = None,
            }
        }
        let event = self.memory.get(self.next)?.clone();
        self.next += 1;
        Some(Ok(event))
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}
