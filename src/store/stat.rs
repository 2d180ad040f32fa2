//! What the store knows of a session without reading an event (L5).

use crate::error::Result;
use crate::event::{Event, Header, Time};
use crate::log::{Log, SessionEntry};

/// A stored session in numbers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Stat {
    /// The id.
    pub id: String,
    /// When it was created, as its header says.
    pub created_at: Time,
    /// Its working directory.
    pub cwd: Option<String>,
    /// The session that it was forked from.
    pub parent_session: Option<String>,
    /// How many of its events were inherited, as its header says.
    pub seed_length: Option<u64>,
    /// How many events it has, inherited ones included.
    pub events: u64,
    /// Bytes of the records that it holds itself, without what it inherited by reference.
    pub bytes: u64,
    /// Time of its first event in Unix milliseconds, rounded.
    pub first_time: Option<i64>,
    /// Time of its last event in Unix milliseconds, rounded.
    pub last_time: Option<i64>,
    /// A turn is open behind the last event.
    pub open: bool,
    /// Events were lost to damage and nobody accepted that: a resume needs to.
    pub damaged: bool,
    /// Changes whenever the session does, also when it is deleted and made anew under the same id.
    pub change_token: String,
}

impl Stat {
    pub(super) fn of(log: &Log, entry: &SessionEntry) -> Result<Self> {
        let header = header_of(entry)?;
        let damaged = log.doubt(entry)?.is_some();
        let (first_time, last_time) = times(log, entry)?;
        Ok(Self {
            id: header.id().to_owned(),
            created_at: header.created_at().clone(),
            cwd: header.cwd().map(str::to_owned),
            parent_session: header.parent_session().map(str::to_owned),
            seed_length: header.seed_length(),
            events: entry.next_seq,
            bytes: log.own_bytes(entry)?,
            first_time,
            last_time,
            open: entry.open_turn,
            damaged,
            change_token: format!("{}.{}.{}", entry.dense, entry.next_seq, u8::from(damaged)),
        })
    }
}

/// Times of the first and the last event, inherited ones included. Only where a fork has no event of its own and its
/// parent went on behind the cut, one event is read.
fn times(log: &Log, entry: &SessionEntry) -> Result<(Option<i64>, Option<i64>)> {
    let Some(fork) = entry.inherits() else { return Ok((entry.first_time, entry.last_time)) };
    let mut holder = log.session(fork.ancestor)?;
    let last = match (entry.last_time, &holder) {
        (None, Some(above)) if above.next_seq == fork.cut => above.last_time,
        // What cannot be read has no time: the damage is reported where events are asked for.
        (None, _) => log.event(entry, fork.cut.saturating_sub(1)).ok().flatten().map(|event| millis(&event)),
        (own, _) => own,
    };
    while let Some(above) = holder.as_ref().and_then(SessionEntry::inherits) {
        holder = log.session(above.ancestor)?;
    }
    Ok((holder.and_then(|root| root.first_time), last))
}

fn millis(event: &Event) -> i64 {
    event.time().millis_rounded()
}

/// The header as it was stored.
pub(super) fn header_of(entry: &SessionEntry) -> Result<Header> {
    Header::parse_line(&entry.header).map(|(header, _)| header)
}

/// The stored sessions in the order of their creation, looked up one by one. Sessions that are deleted meanwhile are
/// left out, sessions that are created meanwhile are not seen.
pub struct Stored {
    pub(super) log: Log,
    pub(super) sessions: std::vec::IntoIter<u64>,
}

impl Iterator for Stored {
    type Item = Result<Stat>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let dense = self.sessions.next()?;
            match self.log.session(dense) {
                Ok(Some(entry)) if !entry.deleted && !entry.staged => {
                    return Some(Stat::of(&self.log, &entry));
                }
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stored").field("left", &self.sessions.len()).finish_non_exhaustive()
    }
}
