//! One session on its way into a database, inside a transaction of its own.
//!
//! What always holds: of a session that is there only events that were compared are built upon, and what a row cannot say
//! is in its line before the transaction ends. What is never done: changing a row that is there.

use std::path::Path;

use rusqlite::{Connection, Statement};

use super::database::Tables;
use super::event_columns::EventColumns;
use super::fault::During;
use super::header_columns::HeaderColumns;
use super::misfit::{Kept, Misfits, count};
use super::put::Outcome;
use super::schema::{self, Layout};
use super::session::SqliteSession;
use crate::event::{Event, Header};
use crate::interop::Ending;
use crate::{Error, ErrorKind, Result};

/// One session on its way into its transaction.
pub(super) struct PutSession<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
    pub(super) target: &'a Path,
    pub(super) strict: bool,
    pub(super) lines: bool,
    pub(super) header: &'a Header,
    pub(super) columns: HeaderColumns,
    pub(super) kept: Vec<Kept>,
}

type Source<'a> = dyn Iterator<Item = Result<Event>> + 'a;

impl PutSession<'_> {
    /// Does it; the caller commits.
    pub(super) fn put(&mut self, events: &mut Source<'_>) -> Result<Outcome> {
        let known: bool = {
            let sql = "SELECT EXISTS (SELECT 1 FROM main.sessions WHERE id = ?1)";
            let found = self.connection.query_row(sql, [&self.columns.id], |row| row.get(0));
            found.during("look for a session in", self.path)?
        };
        if !known {
            self.put_header()?;
            let events = self.put_events(0, None, events)?;
            return Ok(Outcome::Added { events });
        }
        match self.compare(events)? {
            Compared::Same { events } => Ok(Outcome::Unchanged { events }),
            Compared::Ahead { events } => Ok(Outcome::Ahead { events }),
            Compared::Behind { stored, next } => {
                let events = self.put_events(stored, Some(*next), events)?;
                Ok(Outcome::Extended { from: stored, events })
            }
        }
    }

    fn put_header(&mut self) -> Result<()> {
        let HeaderColumns { id, version, created_at, cwd, parent_session, seed_length } = &self.columns;
        let sql = "INSERT INTO main.sessions (id, version, created_at, cwd, parent_session, seed_length) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let values = (id, version, created_at, cwd, parent_session, seed_length);
        self.connection.execute(sql, values).during("write to", self.path)?;
        let misfits = self.columns.misfits(self.header);
        if !misfits.is_empty() {
            self.refuse(None, &misfits)?;
            self.keep_line(None, &self.header.to_line())?;
            count(&mut self.kept, None, misfits);
        }
        Ok(())
    }

    /// Writes `first` and then `events`, whose seqs go on from `seq`; how many they are.
    fn put_events(&mut self, seq: u64, first: Option<Event>, events: &mut Source<'_>) -> Result<u64> {
        let sql = "INSERT INTO main.events (session_id, seq, type, time, data, source_event_seqs, surface_op) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let mut insert = self.connection.prepare(sql).during("write to", self.path)?;
        let mut next = seq;
        for event in first.map(Ok).into_iter().chain(events) {
            let event = event?;
            self.put_event(&mut insert, next, &event)?;
            next += 1;
        }
        Ok(next - seq)
    }

    fn put_event(&mut self, insert: &mut Statement<'_>, seq: u64, event: &Event) -> Result<()> {
        self.check_place(seq, event)?;
        let columns = EventColumns::of(event);
        let place = i64::try_from(seq).unwrap_or(i64::MAX);
        let EventColumns { event_type, time, data, sources, surface_op } = &columns;
        let (sources, op) = (sources.as_deref(), surface_op.as_deref());
        let values = (&self.columns.id, place, event_type, time, data, sources, op);
        insert.execute(values).during("write to", self.path)?;
        let misfits = columns.misfits(event);
        if !misfits.is_empty() {
            self.refuse(Some(seq), &misfits)?;
            self.keep_line(Some(seq), &event.to_line())?;
            count(&mut self.kept, Some(seq), misfits);
        }
        Ok(())
    }

    fn check_place(&self, seq: u64, event: &Event) -> Result<()> {
        if event.seq() == seq {
            return Ok(());
        }
        let text =
            format!("session {:?}: event {} came where event {seq} belongs", self.header.id(), event.seq());
        Err(Error::new(ErrorKind::InvalidArgument, text))
    }

    fn refuse(&self, seq: Option<u64>, misfits: &Misfits) -> Result<()> {
        let Some((misfit, field)) = misfits.first().filter(|_| self.strict) else { return Ok(()) };
        let place = seq.map_or("header".to_owned(), |seq| format!("event {seq}"));
        let text = format!(
            "session {:?} {place}, {field}: schema 4 has no place for {misfit}; without strict its line is kept beside \
             the row, in sessionlog_lines",
            self.header.id()
        );
        Err(Error::new(ErrorKind::Unsupported, text))
    }

    fn keep_line(&mut self, seq: Option<u64>, line: &str) -> Result<()> {
        if !self.lines {
            self.connection.execute_batch(schema::CREATE_LINES).during("write to", self.path)?;
            let layout = schema::check(self.connection, self.path)?;
            if layout != (Layout::Schema4 { lines: true }) {
                let text = format!(
                    "{}: it has a table sessionlog_lines of another make, so what schema 4 has no place for cannot be kept",
                    self.target.display()
                );
                return Err(Error::new(ErrorKind::Unsupported, text));
            }
            self.lines = true;
        }
        // A session that was deleted by a program without foreign keys may have left its lines.
        let sql = "INSERT OR REPLACE INTO main.sessionlog_lines (session_id, seq, line) VALUES (?1, ?2, ?3)";
        let seq = seq.map_or(-1, |seq| i64::try_from(seq).unwrap_or(i64::MAX));
        let written = self.connection.execute(sql, (&self.columns.id, seq, line));
        written.during("write to", self.path).map(|_| ())
    }

    /// Compares what is stored with `events`, as far as both go.
    fn compare(&self, events: &mut Source<'_>) -> Result<Compared> {
        let tables = Tables {
            connection: self.connection,
            path: self.target,
            layout: Layout::Schema4 { lines: self.lines },
        };
        let mut stored = SqliteSession::open(tables, &self.columns.id, None)?;
        if stored.header().to_line() != self.header.to_line() {
            return Err(self.conflict("its header is another"));
        }
        let mut seq = 0;
        let next = loop {
            let next = events.next().transpose()?;
            let Some(known) = stored.next_event()? else { break next };
            let Some(event) = next else { return Ok(Compared::Ahead { events: seq }) };
            self.check_place(seq, &event)?;
            if known.to_line() != event.to_line() {
                return Err(self.conflict(&format!("event {seq} is the first that differs")));
            }
            seq += 1;
        };
        if let Ending::Torn(hole) | Ending::Damaged(hole) = stored.finish()?.ending {
            let text =
                format!("session {:?} is damaged in {hole}; nothing was added to it", self.header.id());
            return Err(Error::corrupt_in(self.target, text));
        }
        Ok(match next {
            Some(next) => Compared::Behind { stored: seq, next: Box::new(next) },
            None => Compared::Same { events: seq },
        })
    }

    fn conflict(&self, what: &str) -> Error {
        let text = format!(
            "{} has another session {:?}: {what}; it was left as it is",
            self.target.display(),
            self.header.id()
        );
        Error::new(ErrorKind::Conflict, text)
    }
}

/// How a stored session stands to the one that is put.
enum Compared {
    Same { events: u64 },
    Ahead { events: u64 },
    Behind { stored: u64, next: Box<Event> },
}
