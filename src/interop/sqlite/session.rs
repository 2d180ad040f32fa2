//! One session of somebody's database as a stream (rule X1).
//!
//! What always holds: events come in order and each is the one of its place; the first hole ends them; what the hole
//! means (torn tail or damage) is known when the rest of the rows has been looked at. What is never done: continuing
//! behind a hole.

use std::fmt;

use super::cell::{Cell, limited};
use super::database::{Database, Tables};
use super::fault::During;
use super::header_columns::HeaderColumns;
use super::row::{Fault, Row};
use super::rows::{Rows, RowsFault};
use crate::event::{Event, Header, HeaderNote};
use crate::interop::jsonl::MAX_LINE_BYTES;
use crate::interop::offer::Offer;
use crate::interop::{Ending, Hole, HoleReason, Place, Verdict};
use crate::{Error, ErrorKind, MAX_HEADER_BYTES, Result};

/// A session of a database.
pub struct SqliteSession<'a> {
    tables: Tables<'a>,
    database: Option<&'a Database>,
    header: Header,
    notes: Vec<HeaderNote>,
    rows: Rows<'a>,
    next_seq: u64,
    kept_bytes: u64,
    lost: Lost,
    ignored: IgnoredLines,
    stop: Option<Stop>,
}

/// Lines beside rows that were not used, because the rows say something else: another program has changed them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IgnoredLines {
    /// The header's line.
    pub header: bool,
    /// How many lines of events.
    pub events: u64,
    /// The first such event.
    pub first: Option<u64>,
}

#[derive(Default)]
struct Lost {
    rows: u64,
    bytes: u64,
    ends_turn: bool,
}

enum Stop {
    End,
    Hole(Hole),
    /// The database itself is damaged: that is no writer's torn tail.
    Damage(Hole),
    /// An error was handed out.
    Failed,
}

impl Database {
    /// The session whose row has the id `id`. That is the header's id, but for a NUL in it, which a row cannot have.
    ///
    /// # Errors
    /// No such session (kind `NotFound`); a row that is no header: values of other types (kind `Corrupt`), another
    /// version (kind `Version`) and whatever else refuses a header line.
    pub fn session(&self, id: &str) -> Result<SqliteSession<'_>> {
        if self.is_empty() {
            return Err(not_found(self.tables(), id));
        }
        SqliteSession::open(self.tables(), id, Some(self))
    }
}

impl<'a> SqliteSession<'a> {
    pub(super) fn open(tables: Tables<'a>, id: &str, database: Option<&'a Database>) -> Result<Self> {
        let (header, notes, line_ignored) = read_header(tables, id)?;
        Ok(Self {
            tables,
            database,
            rows: Rows::new(tables, id),
            kept_bytes: count(header.to_line().len()),
            header,
            notes,
            next_seq: 0,
            lost: Lost::default(),
            ignored: IgnoredLines { header: line_ignored, ..IgnoredLines::default() },
            stop: None,
        })
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What was odd about the header and kept as it is.
    #[must_use]
    pub fn header_notes(&self) -> &[HeaderNote] {
        &self.notes
    }

    /// The lines beside the rows so far that were not used.
    #[must_use]
    pub fn ignored_lines(&self) -> IgnoredLines {
        self.ignored
    }

    /// The next event, or `None` at the first hole or the end.
    ///
    /// # Errors
    /// An event of its place that breaks a rule of its envelope or a limit of J, and failed reads. No event comes
    /// behind an error.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        if self.stop.is_some() {
            return Ok(None);
        }
        let row = match self.rows.next_row() {
            Ok(Some(row)) => row,
            Ok(None) => {
                self.stop = Some(Stop::End);
                return Ok(None);
            }
            Err(RowsFault::Failed(error)) => {
                self.stop = Some(Stop::Failed);
                return Err(error);
            }
            Err(RowsFault::Damage(why)) => {
                let at = Place::Row { seq: i64::try_from(self.next_seq).unwrap_or(i64::MAX) };
                let reason = HoleReason::Database(why);
                self.stop = Some(Stop::Damage(Hole { at, seq: self.next_seq, reason }));
                return Ok(None);
            }
        };
        match row.event(self.next_seq) {
            Ok(read) => {
                if read.line_ignored {
                    self.ignored.events += 1;
                    self.ignored.first = self.ignored.first.or(Some(self.next_seq));
                }
                self.next_seq += 1;
                self.kept_bytes += count(row.bytes());
                Ok(Some(read.event))
            }
            Err(Fault::Hole(reason)) => {
                let seq = match row.seq {
                    Cell::Integer(seq) => seq,
                    _ => i64::try_from(self.next_seq).unwrap_or(i64::MAX),
                };
                self.stop = Some(Stop::Hole(Hole { at: Place::Row { seq }, seq: self.next_seq, reason }));
                self.lost.add(&row);
                Ok(None)
            }
            Err(Fault::Broken(error)) => {
                self.stop = Some(Stop::Failed);
                let text = format!("{} session {:?} row {}", self.path(), self.header.id(), self.next_seq);
                Err(error.clone().wrap(error.kind(), text))
            }
        }
    }

    /// Looks at the rest of the rows and says how the events end. Events that were not asked for are passed over.
    ///
    /// # Errors
    /// Failed reads; a file that changed while it was read.
    pub fn finish(mut self) -> Result<Verdict> {
        self.judge()
    }

    fn judge(&mut self) -> Result<Verdict> {
        while self.next_event()?.is_some() {}
        let ending = match self.stop.take() {
            Some(Stop::Hole(hole)) => {
                let damaged = self.rest()?;
                if damaged || self.lost.ends_turn { Ending::Damaged(hole) } else { Ending::Torn(hole) }
            }
            Some(Stop::Damage(hole)) => Ending::Damaged(hole),
            _ => Ending::Whole,
        };
        if let Some(database) = self.database {
            database.check_unchanged()?;
        }
        Ok(Verdict {
            events: self.next_seq,
            kept_bytes: self.kept_bytes,
            total_bytes: self.kept_bytes.saturating_add(self.lost.bytes),
            lost_entries: self.lost.rows,
            ending,
            packed_rows: 0,
            packed_events: 0,
        })
    }

    /// Reads to the session's last row; whether the database is damaged on the way.
    fn rest(&mut self) -> Result<bool> {
        loop {
            match self.rows.next_row() {
                Ok(Some(row)) => self.lost.add(&row),
                Ok(None) => return Ok(false),
                Err(RowsFault::Damage(_)) => return Ok(true),
                Err(RowsFault::Failed(error)) => return Err(error),
            }
        }
    }

    fn path(&self) -> impl fmt::Display + use<'a> {
        self.tables.path.display()
    }
}

impl Lost {
    fn add(&mut self, row: &Row) {
        self.rows += 1;
        self.bytes = self.bytes.saturating_add(count(row.bytes()));
        self.ends_turn = self.ends_turn || row.ends_turn();
    }
}

impl Offer for SqliteSession<'_> {
    fn header(&self) -> &Header {
        self.header()
    }

    fn header_notes(&self) -> &[HeaderNote] {
        self.header_notes()
    }

    fn next_event(&mut self) -> Result<Option<Event>> {
        Self::next_event(self)
    }

    fn place(&self) -> String {
        let row = self.next_seq.saturating_sub(1);
        format!("{} session {:?} row {row}", self.path(), self.header.id())
    }

    fn consumed(&self) -> u64 {
        self.kept_bytes.saturating_add(self.lost.bytes)
    }

    fn remarks(&self) -> Vec<String> {
        if self.ignored == IgnoredLines::default() { Vec::new() } else { vec![self.ignored.to_string()] }
    }

    fn finish(&mut self) -> Result<Verdict> {
        self.judge()
    }
}

impl fmt::Display for IgnoredLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lines beside rows were not used, for the rows say something else by now: ")?;
        if self.header {
            f.write_str("the header's")?;
        }
        if let Some(first) = self.first {
            let and = if self.header { " and " } else { "" };
            write!(f, "{and}those of {} events, the first of event {first}", self.events)?;
        }
        Ok(())
    }
}

impl fmt::Debug for SqliteSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("SqliteSession");
        out.field("header", &self.header).field("next_seq", &self.next_seq).finish_non_exhaustive()
    }
}

fn not_found(tables: Tables<'_>, id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("{}: there is no session {id:?}", tables.path.display()))
}

/// The header, what is odd in it, and whether a line beside it was not used.
fn read_header(tables: Tables<'_>, id: &str) -> Result<(Header, Vec<HeaderNote>, bool)> {
    let line = if tables.has_lines() {
        "(SELECT line FROM main.sessionlog_lines AS l WHERE l.session_id = s.id AND l.seq = -1)"
    } else {
        "NULL"
    };
    let sql = format!(
        "SELECT version, created_at, seed_length, {}, {}, {} FROM main.sessions AS s WHERE id = ?1",
        limited("cwd", MAX_HEADER_BYTES),
        limited("parent_session", MAX_HEADER_BYTES),
        limited(line, MAX_LINE_BYTES)
    );
    let read = || {
        let mut query = tables.connection.prepare(&sql)?;
        let mut rows = query.query([id])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let mut cells = [const { Cell::Null }; 6];
        let places = [0, 1, 2, 3, 5, 7];
        for (cell, at) in cells.iter_mut().zip(places) {
            *cell = if at < 3 { Cell::value(row, at)? } else { Cell::read(row, at)? };
        }
        Ok(Some(cells))
    };
    let cells = read().during("read a session of", tables.path)?.ok_or_else(|| not_found(tables, id))?;
    let [version, created_at, seed_length, cwd, parent, line] = cells;
    let wrong = |column: &str, found: &Cell| {
        let text = format!("session {id:?}: its column {column} holds {}", found.kind());
        Error::corrupt_in(tables.path, text)
    };
    let number = |column: &str, cell: &Cell| match cell {
        Cell::Integer(number) => Ok(*number),
        other => Err(wrong(column, other)),
    };
    let text = |column: &str, cell: Cell| match cell {
        Cell::Text(text) => Ok(Some(text)),
        Cell::Null => Ok(None),
        other => Err(wrong(column, &other)),
    };
    let columns = HeaderColumns {
        id: id.to_owned(),
        version: number("version", &version)?,
        created_at: number("created_at", &created_at)?,
        cwd: text("cwd", cwd)?,
        parent_session: text("parent_session", parent)?,
        seed_length: match seed_length {
            Cell::Null => None,
            other => Some(number("seed_length", &other)?),
        },
    };
    if let Cell::Text(line) = &line
        && let Ok((header, notes)) = Header::parse_line(line)
        && HeaderColumns::of(&header) == columns
    {
        return Ok((header, notes, false));
    }
    let (header, notes) = Header::parse_line(&columns.line()).map_err(|error| {
        error.clone().wrap(error.kind(), format!("{} session {id:?}", tables.path.display()))
    })?;
    Ok((header, notes, line != Cell::Null))
}

fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
