//! Writes a database of schema 4 and publishes it whole (rule X3).
//!
//! What always holds: one transaction a session, so a session is there whole or not at all; the file appears under its
//! name when all are in, synced, in one piece without a log beside it. What is never done: writing into the file that
//! is there, replacing it without being asked to, and dropping what has no column.

use std::fmt;
use std::fs::{self, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::connection::{self, Access};
use super::database::{Database, Tables};
use super::fault::During;
use super::header_columns::HeaderColumns;
use super::put::Put;
use super::put_session::PutSession;
use super::schema::{self, Layout};
use super::source_file::Stamp;
use super::target::{self, LOGS};
use crate::event::{Event, Header};
use crate::interop::draft::Draft;
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
        target::refuse(&target, options.replace)?;
        let (draft, _) = Draft::create(&target, LOGS)?;
        let connection = open_draft(&draft)?;
        connection.execute_batch(schema::CREATE).during("create", draft.path())?;
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
        target::refuse(&target, true)?;
        let (draft, _) = Draft::create(&target, LOGS)?;
        let before = Stamp::at(&target)?;
        let mode = fs::metadata(&target).map_err(|error| Error::io("look at", &target, error))?.permissions();
        let source = Database::open(&target)?;
        let lines = if source.is_empty() {
            let connection = open_draft(&draft)?;
            connection.execute_batch(schema::CREATE).during("create", draft.path())?;
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
        let path = self.draft.path();
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
        connection.close().map_err(|(_, error)| error).during("close", draft.path())?;
        check_draft(draft.path())?;
        let (stamp, mode) = copied.unzip();
        let bytes = draft.publish(options.replace, mode, || {
            target::refuse(&target, options.replace)?;
            match stamp {
                Some(stamp) if Stamp::at(&target)? != Some(stamp) => {
                    let text =
                        format!("{} was changed since it was copied; it was not touched", target.display());
                    Err(Error::new(ErrorKind::Conflict, text))
                }
                _ => Ok(()),
            }
        })?;
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
    connection::open(draft.path(), Access::Draft).during("open", draft.path())
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
        target.close().map_err(|(_, error)| error).during("close", draft.path())?;
    }
    leave_wal_mode(draft.path())?;
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
