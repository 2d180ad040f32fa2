//! What the store already has of a session that comes in: a shorter version of it, or the events it inherited.
//!
//! Always: events are compared one by one, as they come, in bounded memory. Never: anything is written.

use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, Header};
use crate::log::{Log, SessionEntry};

use super::place::{Events, Place};
use super::stat::header_of;

/// The stored events that an incoming session is compared with.
pub(super) struct Known {
    entry: SessionEntry,
    place: Place,
    events: Events,
    next: u64,
}

/// How an incoming event relates to the stored ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// The stored event at its place is the same.
    Same,
    /// The stored event at its place is another one.
    Differs,
    /// Nothing is stored at its place.
    Behind,
}

impl Known {
    /// The first `end` events of `entry`.
    pub(super) fn new(log: &Log, entry: SessionEntry, end: u64) -> Self {
        let place = Place::stored(log.clone(), entry.clone(), end);
        Self { entry, events: place.read_from(0), place, next: 0 }
    }

    /// The session's id.
    pub(super) fn id(&self) -> &str {
        &self.entry.id
    }

    /// The session's header.
    pub(super) fn header(&self) -> Result<Header> {
        header_of(&self.entry)
    }

    /// How many events there are.
    pub(super) fn end(&self) -> u64 {
        self.place.end()
    }

    /// The first `count` events again.
    pub(super) fn first(&self, count: u64) -> impl Iterator<Item = Result<Event>> + use<> {
        self.place.read_from(0).take(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Compares the next event; they come in order.
    pub(super) fn compare(&mut self, event: &Event) -> Result<Match> {
        if self.next >= self.end() {
            return Ok(Match::Behind);
        }
        let Some(stored) = self.events.next() else {
            let text = format!("the stored session {:?} ends before event {}", self.entry.id, self.next);
            return Err(Error::new(ErrorKind::Internal, text));
        };
        let stored = stored.map_err(|error| {
            let kind = error.kind();
            error.wrap(
                kind,
                format!("compare event {} with the stored session {:?}", self.next, self.entry.id),
            )
        })?;
        self.next += 1;
        Ok(if stored == *event { Match::Same } else { Match::Differs })
    }
}

/// Refuses a header that speaks of another session than the stored one of that id. How it is spelled, and what this
/// version does not know in it, does not count.
pub(super) fn check_header(entry: &SessionEntry, header: &Header) -> Result<()> {
    refuse_other(&header_of(entry)?, header)
}

/// As [`check_header`], of a session that would be stored.
pub(super) fn refuse_other(stored: &Header, header: &Header) -> Result<()> {
    let differs = [
        ("createdAt", stored.created_at() != header.created_at()),
        ("cwd", stored.cwd() != header.cwd()),
        ("parentSession", stored.parent_session() != header.parent_session()),
        ("seedLength", stored.seed_length() != header.seed_length()),
    ];
    let Some((field, _)) = differs.iter().find(|(_, differs)| *differs) else { return Ok(()) };
    Err(Error::new(
        ErrorKind::Conflict,
        format!(
            "another session {:?} is stored already: its header has another {field}; nothing was changed, delete the \
             stored one first if this one is to take its place",
            header.id()
        ),
    ))
}
