//! What the SQLite tests share: databases in folders of their own, and what was in a folder before and after.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use sessionlog::event::{Event, Header};
use sessionlog::interop::sqlite::{Database, Put, SqliteOptions, Writer};
use sessionlog::interop::{Ending, Hole, Verdict};
use sessionlog::{Error, Result};

pub(crate) const SCHEMA: &str = "
CREATE TABLE sessions (id TEXT PRIMARY KEY, version INTEGER NOT NULL, created_at INTEGER NOT NULL, cwd TEXT,
  parent_session TEXT, seed_length INTEGER) STRICT;
CREATE TABLE events (session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, seq INTEGER NOT NULL,
  type TEXT NOT NULL, time INTEGER NOT NULL, data TEXT NOT NULL, source_event_seqs TEXT, surface_op TEXT,
  PRIMARY KEY (session_id, seq)) STRICT;
PRAGMA user_version = 4;";

/// A folder with one database in it.
pub(crate) struct Folder {
    pub(crate) root: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("sessions.db");
        Self { root, path }
    }

    /// A database made by `sql`, in rollback mode.
    pub(crate) fn with(sql: &str) -> Self {
        let folder = Self::new();
        folder.run(sql);
        folder
    }

    pub(crate) fn run(&self, sql: &str) {
        let connection = Connection::open(&self.path).unwrap();
        connection.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        connection.close().unwrap();
    }

    /// Every file with its bytes.
    pub(crate) fn content(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.root.path()).unwrap().map(|entry| entry.unwrap());
        let named = |path: PathBuf| {
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap())
        };
        entries.map(|entry| named(entry.path())).collect()
    }

    /// Looks at the database while nothing in its folder may change.
    pub(crate) fn look<T>(&self, look: impl FnOnce(Result<Database>) -> T) -> T {
        let before = self.content();
        let found = look(Database::open(&self.path));
        assert!(self.content() == before, "the folder changed: {:?}", self.content().keys());
        found
    }
}

/// A session as it was read.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) header: Header,
    pub(crate) events: Vec<Event>,
    pub(crate) verdict: Verdict,
}

impl Session {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.events.iter().map(Event::to_line).collect()
    }

    pub(crate) fn damage(&self) -> &Hole {
        match &self.verdict.ending {
            Ending::Damaged(hole) => hole,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn tear(&self) -> &Hole {
        match &self.verdict.ending {
            Ending::Torn(hole) => hole,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn read(database: &Database, id: &str) -> Result<Session> {
    let mut session = database.session(id)?;
    let header = session.header().clone();
    let mut events = Vec::new();
    while let Some(event) = session.next_event()? {
        events.push(event);
    }
    let verdict = session.finish()?;
    assert_eq!(verdict.events, u64::try_from(events.len()).unwrap());
    Ok(Session { header, events, verdict })
}

pub(crate) fn read_all(path: &Path) -> Vec<Session> {
    let database = Database::open(path).unwrap();
    let ids: Vec<String> = database.sessions().map(|id| id.unwrap()).collect();
    ids.iter().map(|id| read(&database, id).unwrap()).collect()
}

pub(crate) fn put(writer: &mut Writer, header: &Header, events: &[Event]) -> Result<Put> {
    writer.put_session(header, events.iter().cloned().map(Ok::<Event, Error>))
}

/// A database at `path` with these sessions.
pub(crate) fn write(path: &Path, sessions: &[(Header, Vec<Event>)], options: SqliteOptions) -> Vec<Put> {
    let mut writer = Writer::create(path, options).unwrap();
    let puts = sessions.iter().map(|(header, events)| put(&mut writer, header, events).unwrap()).collect();
    writer.finish().unwrap();
    puts
}

pub(crate) fn header(line: &str) -> Header {
    Header::parse_line(line).unwrap().0
}

pub(crate) fn events(lines: &[&str]) -> Vec<Event> {
    lines.iter().map(|line| Event::parse_line(line).unwrap()).collect()
}

/// All rows of `table`, each as its values in SQL.
pub(crate) fn rows(path: &Path, table: &str, columns: &[&str], order: &str) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let quoted: Vec<String> = columns.iter().map(|column| format!("quote({column})")).collect();
    let sql = format!("SELECT {} FROM {table} ORDER BY {order}", quoted.join(" || ',' || "));
    let mut query = connection.prepare(&sql).unwrap();
    query.query_map([], |row| row.get(0)).unwrap().map(|row| row.unwrap()).collect()
}

pub(crate) fn session_rows(path: &Path) -> Vec<String> {
    let columns = ["id", "version", "created_at", "cwd", "parent_session", "seed_length"];
    rows(path, "sessions", &columns, "id")
}

pub(crate) fn event_rows(path: &Path) -> Vec<String> {
    let columns = ["session_id", "seq", "type", "time", "data", "source_event_seqs", "surface_op"];
    rows(path, "events", &columns, "session_id, seq")
}

/// What a finished file must be: whole, of version 4, in rollback mode, alone in its folder.
pub(crate) fn assert_finished(path: &Path) {
    let bytes = fs::read(path).unwrap();
    assert_eq!(&bytes[18..20], [1, 1], "no WAL");
    let connection = Connection::open(format!("file:{}?mode=ro", path.display())).unwrap();
    let one = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0));
    assert_eq!(one("PRAGMA integrity_check").unwrap(), "ok".to_owned().into());
    assert_eq!(one("PRAGMA foreign_key_check"), Err(rusqlite::Error::QueryReturnedNoRows));
    assert_eq!(one("PRAGMA user_version").unwrap(), 4.into());
    assert_eq!(one("PRAGMA auto_vacuum").unwrap(), 0.into());
    assert_eq!(one("PRAGMA journal_mode").unwrap(), "delete".to_owned().into());
}
