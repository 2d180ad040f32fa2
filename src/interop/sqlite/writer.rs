//! Writes a database of schema 4 and publishes it whole (rule X3).
//!
//! What always holds: one transaction a session, so a session is there whole or not at all; the file appears under its
//! name when all are in, synced, in one piece without a log beside it. What is never done: writing into the file that
//! is there, replacing it without being asked to, and dropping what has no column.

use std::fmt;
use std::fs::{self, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, Statement};

use super::connection::{self, Access};
use super::database::{Database, Tables};
use super::draft::Draft;
use super::event_columns::EventColumns;
use super::fault::During;
use super::header_columns::HeaderColumns;
use super::misfit::{Kept, Misfits, count};
use super::put::{Outcome, Put};
use super::schema::{self, Layout};
use super::session::SqliteSession;
use super::source_file::Stamp;
use crate::event::{Event, Header};
use crate::interop::Ending;
use crate::{Error, ErrorKind, Result};

/// How databases are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SqliteOptions {
    /// Replace a file that is there already. Without it such a file is an error of kind `Exists`.
    pub replace: bool,
    /// Refuse a session that schema 4 has no place for, instead of keeping its lines beside the rows.
    pub strict: bool,
}

/// A database that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenDatabase {
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
}

/// A database that is being written; nothing is left of it when it is dropped.
pub struct Writer {
    // Before the draft, so that it is closed before the file is removed.
    connection: Connection,
    draft: Draft,
    target: PathBuf,
    options: SqliteOptions,
    lines: bool,
    /// What was there when it was copied.
    copied: Option<(Stamp, Permissions)>,
}

impl Writer {
    /// Begins a new database that will be at `path`.
    ///
    /// # Errors
    /// A file that is there already (kind `Exists`), unless it is to be replaced; a log of another program beside it
    /// (kind `Locked`); failed writes.
    pub fn create(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self> {
        let target = path.as_ref().to_path_buf();
        let draft = Draft::create(&target, options.replace)?;
        let connection = open_draft(&draft)?;
        connection.execute_batch(schema::CREATE).during("create", &draft.path)?;
        Ok(Self { connection, draft, target, options, lines: false, copied: None })
    }

    /// Begins with what the database at `path` holds; the result will take its place.
    ///
    /// # Errors
    /// As [`Database::open`] and [`create`](Self::create); a database that is damaged (kind `Corrupt`), or whose
    /// triggers would have to run (kind `Unsupported`).
    pub fn append_to(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self> {
        // What takes the place of a link's file has to be beside that file.
        let path = path.as_ref();
        let target = fs::canonicalize(path).map_err(|error| Error::io("open", path, error))?;
        let options = SqliteOptions { replace: true, ..options };
        let draft = Draft::create(&target, true)?;
        let before = Stamp::at(&target)?;
        let mode = fs::metadata(&target).map_err(|error| Error::io("look at", &target, error))?.permissions();
        let source = Database::open(&target)?;
        let lines = if source.is_empty() {
            let connection = open_draft(&draft)?;
            connection.execute_batch(schema::CREATE).during("create", &draft.path)?;
            false
        } else {
            copy(&source, &draft)?
        };
        drop(source);
        let connection = open_draft(&draft)?;
        let copied = before.map(|stamp| (stamp, mode));
        Ok(Self { connection, draft, target, options, lines, copied })
    }

    /// Puts a session in: a new one whole, of a known one what comes behind the events that are there. In either case
    /// all or nothing; after an error the others can still be put.
    ///
    /// # Errors
    /// A known session whose header or events are others (kind `Conflict`, which names the first seq) or that is
    /// damaged (kind `Corrupt`); with `strict`, what schema 4 has no place for (kind `Unsupported`); events that are
    /// not in order from 0 (kind `InvalidArgument`); whatever `events` yields; failed writes.
    pub fn put_session(
        &mut self,
        header: &Header,
        events: impl IntoIterator<Item = Result<Event>>,
    ) -> Result<Put> {
        let path = &self.draft.path;
        let transaction = self.connection.unchecked_transaction().during("begin in", path)?;
        let (put, lines) = {
            let mut session = PutSession {
                connection: &self.connection,
                path,
                target: &self.target,
                strict: self.options.strict,
                lines: self.lines,
                header,
                columns: HeaderColumns::of(header),
                kept: Vec::new(),
            };
            let outcome = session.put(&mut events.into_iter())?;
            (Put { outcome, kept: session.kept }, session.lines)
        };
        transaction.commit().during("commit in", path)?;
        self.lines = lines;
        Ok(put)
    }

    /// Publishes the database.
    ///
    /// # Errors
    /// A file that is there now and was not, or that was changed since it was copied (kind `Conflict`); a log beside
    /// it; failed writes. What was there is untouched then.
    pub fn finish(self) -> Result<WrittenDatabase> {
        let Self { connection, draft, target, options, copied, .. } = self;
        connection.close().map_err(|(_, error)| error).during("close", &draft.path)?;
        if let Some((stamp, _)) = &copied
            && Stamp::at(&target)? != Some(*stamp)
        {
            let text = format!("{} was changed since it was copied; it was not touched", target.display());
            return Err(Error::new(ErrorKind::Conflict, text));
        }
        check_draft(&draft.path)?;
        let bytes = draft.publish(options.replace, copied.map(|(_, mode)| mode))?;
        Ok(WrittenDatabase { path: target, bytes })
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("target", &self.target)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

fn open_draft(draft: &Draft) -> Result<Connection> {
    connection::open(&draft.path, Access::Draft).during("open", &draft.path)
}

/// Copies `source` into the draft; whether it has our table of lines.
fn copy(source: &Database, draft: &Draft) -> Result<bool> {
    let tables = source.tables();
    refuse_triggers(tables)?;
    {
        let mut target = open_draft(draft)?;
        let backup = Backup::new(tables.connection, &mut target).during("copy", tables.path)?;
        while backup.step(1 << 10).during("copy", tables.path)? != StepResult::Done {}
        drop(backup);
        target.close().map_err(|(_, error)| error).during("close", &draft.path)?;
    }
    leave_wal_mode(&draft.path)?;
    source.check_unchanged()?;
    let connection = open_draft(draft)?;
    let found: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .during("check a copy of", tables.path)?;
    if found != "ok" {
        return Err(Error::corrupt_in(
            tables.path,
            format!("it is damaged, so nothing is added to it: {found}"),
        ));
    }
    match schema::check(&connection, tables.path)? {
        Layout::Schema4 { lines } => Ok(lines),
        Layout::Empty => Err(Error::corrupt_in(tables.path, "its copy is empty")),
    }
}

/// The copy of a database in WAL mode is in WAL mode, which two bytes of its header say.
fn leave_wal_mode(path: &Path) -> Result<()> {
    let opened = fs::OpenOptions::new().write(true).open(path);
    let mut file = opened.map_err(|error| Error::io("open", path, error))?;
    let written = file.seek(SeekFrom::Start(18)).and_then(|_| file.write_all(&[1, 1]));
    written.map_err(|error| Error::io("write", path, error))
}

/// Somebody keeps something in step with these tables; rows that come in behind its back would break that.
fn refuse_triggers(tables: Tables<'_>) -> Result<()> {
    let sql = "SELECT name FROM main.sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) IN \
               ('sessions', 'events', 'sessionlog_lines') ORDER BY name LIMIT 1";
    let found: Result<Option<String>, _> = tables.connection.prepare(sql).and_then(|mut query| {
        let mut rows = query.query_map([], |row| row.get(0))?;
        rows.next().transpose()
    });
    let Some(name) = found.during("read the schema of", tables.path)? else { return Ok(()) };
    let text = format!(
        "{}: its trigger {name:?} runs when rows are added, and triggers are not run here; export into a new file",
        tables.path.display()
    );
    Err(Error::new(ErrorKind::Unsupported, text))
}

/// That the closed file is one that can be copied as it is.
fn check_draft(path: &Path) -> Result<()> {
    let connection = connection::open(path, Access::Read).during("open", path)?;
    let layout = schema::check(&connection, path)?;
    let mode: String =
        connection.query_row("PRAGMA main.journal_mode", [], |row| row.get(0)).during("open", path)?;
    if matches!(layout, Layout::Schema4 { .. }) && mode == "delete" {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Internal, format!("{}: written as {layout:?} in {mode} mode", path.display())))
}

/// One session on its way into its transaction.
struct PutSession<'a> {
    connection: &'a Connection,
    path: &'a Path,
    target: &'a Path,
    strict: bool,
    lines: bool,
    header: &'a Header,
    columns: HeaderColumns,
    kept: Vec<Kept>,
}

type Source<'a> = dyn Iterator<Item = Result<Event>> + 'a;

impl PutSession<'_> {
    fn put(&mut self, events: &mut Source<'_>) -> Result<Outcome> {
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
