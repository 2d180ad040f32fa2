//! The tables of schema 4 (rule X3), and the one beside them.
//!
//! What always holds: a database that passes [`check`] has `sessions` and `events` as real tables with exactly the
//! columns of schema 4, so that a query on them runs no SQL of the database's author. What is never done: guessing a
//! layout from a number that two layouts had, and stamping a database that is not empty.

use std::path::Path;

use rusqlite::Connection;

use super::fault::failed;
use crate::event::SQLITE_SCHEMA_VERSION;
use crate::{Error, ErrorKind, Result};

/// What a new database is made of. Other readers of schema 4 know nothing else.
pub(super) const CREATE: &str = "\
CREATE TABLE sessions (
  id             TEXT PRIMARY KEY,
  version        INTEGER NOT NULL,
  created_at     INTEGER NOT NULL,
  cwd            TEXT,
  parent_session TEXT,
  seed_length    INTEGER
) STRICT;
CREATE TABLE events (
  session_id        TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  seq               INTEGER NOT NULL,
  type              TEXT NOT NULL,
  time              INTEGER NOT NULL,
  data              TEXT NOT NULL,
  source_event_seqs TEXT,
  surface_op        TEXT,
  PRIMARY KEY (session_id, seq)
) STRICT;
PRAGMA user_version = 4;
";

/// Lines that schema 4 has no place for; made when the first one comes. A seq of -1 is the header's.
pub(super) const CREATE_LINES: &str = "\
CREATE TABLE IF NOT EXISTS sessionlog_lines (
  session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  seq        INTEGER NOT NULL,
  line       TEXT NOT NULL,
  PRIMARY KEY (session_id, seq)
) STRICT;
";

const _: () = assert!(SQLITE_SCHEMA_VERSION == 4, "the statements above are schema 4's");

/// A column: name, declared type, place in the primary key (0: none).
type Column = (&'static str, &'static str, i64);

const SESSIONS: [Column; 6] = [
    ("id", "TEXT", 1),
    ("version", "INTEGER", 0),
    ("created_at", "INTEGER", 0),
    ("cwd", "TEXT", 0),
    ("parent_session", "TEXT", 0),
    ("seed_length", "INTEGER", 0),
];
const EVENTS: [Column; 7] = [
    ("session_id", "TEXT", 1),
    ("seq", "INTEGER", 2),
    ("type", "TEXT", 0),
    ("time", "INTEGER", 0),
    ("data", "TEXT", 0),
    ("source_event_seqs", "TEXT", 0),
    ("surface_op", "TEXT", 0),
];
const LINES: [Column; 3] = [("session_id", "TEXT", 1), ("seq", "INTEGER", 2), ("line", "TEXT", 0)];

/// What a database holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// No table at all, and no version: a database that nobody has used.
    Empty,
    /// Schema 4.
    Schema4 {
        /// The table of lines is there, and is ours.
        lines: bool,
    },
}

/// Which layout it is.
///
/// # Errors
/// Another version, or one that its tables do not have (kind `Version`), and damage.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<Layout> {
    let reading = |error| failed("read the schema of", path, error);
    let version: i64 =
        connection.query_row("PRAGMA main.user_version", [], |row| row.get(0)).map_err(reading)?;
    let objects: i64 = connection
        .query_row("SELECT count(*) FROM main.sqlite_schema", [], |row| row.get(0))
        .map_err(reading)?;
    if version == 0 && objects == 0 {
        return Ok(Layout::Empty);
    }
    if version != i64::from(SQLITE_SCHEMA_VERSION) {
        return Err(other_version(path, version));
    }
    for (table, columns) in [("sessions", &SESSIONS[..]), ("events", &EVENTS[..])] {
        if let Some(fault) = table_fault(connection, table, columns).map_err(reading)? {
            let text = format!(
                "{}: stamped as schema {SQLITE_SCHEMA_VERSION}, but {fault}; it was not touched",
                path.display()
            );
            return Err(Error::new(ErrorKind::Version, text));
        }
    }
    // Somebody else's table of that name is no reason to refuse: it is left alone.
    let lines = table_fault(connection, "sessionlog_lines", &LINES).map_err(reading)?.is_none();
    Ok(Layout::Schema4 { lines })
}

fn other_version(path: &Path, found: i64) -> Error {
    let what = match found {
        0 => "has tables but no schema version".to_owned(),
        3 => "is of schema version 3, a number that two incompatible layouts had".to_owned(),
        _ => format!("is of schema version {found}"),
    };
    let text = format!(
        "{} {what}; only version {SQLITE_SCHEMA_VERSION} is read. It was not touched; have the program that wrote it \
         bring it to version {SQLITE_SCHEMA_VERSION}",
        path.display()
    );
    Error::new(ErrorKind::Version, text)
}

/// What keeps `table` from being the one that is wanted.
fn table_fault(connection: &Connection, table: &str, wanted: &[Column]) -> rusqlite::Result<Option<String>> {
    let mut list = connection.prepare(&format!("PRAGMA main.table_list({table})"))?;
    let mut kinds = list.query_map([], |row| row.get::<_, String>("type"))?;
    match kinds.next().transpose()?.as_deref() {
        Some("table") => {}
        None => return Ok(Some(format!("there is no table {table}"))),
        Some(kind) => return Ok(Some(format!("{table} is a {kind}, not a table"))),
    }
    let mut info = connection.prepare(&format!("PRAGMA main.table_xinfo({table})"))?;
    let mut rows = info.query([])?;
    let mut wanted = wanted.iter();
    while let Some(row) = rows.next()? {
        let name: String = row.get("name")?;
        let Some((column, kind, key)) = wanted.next() else {
            return Ok(Some(format!("{table} has a further column {name:?}")));
        };
        let (found, pk, hidden): (String, i64, i64) = (row.get("type")?, row.get("pk")?, row.get("hidden")?);
        if name != *column {
            return Ok(Some(format!("{table} has a column {name:?} where {column} belongs")));
        }
        if hidden != 0 {
            return Ok(Some(format!("{table}.{column} is computed, not stored")));
        }
        if !found.eq_ignore_ascii_case(kind) || pk != *key {
            return Ok(Some(format!("{table}.{column} is declared {found:?} (place {pk} in the key)")));
        }
        let (_, collation, ..) = connection.column_metadata(Some("main"), table, column)?;
        if collation.is_some_and(|name| !name.as_bytes().eq_ignore_ascii_case(b"BINARY")) {
            return Ok(Some(format!("{table}.{column} is not compared byte by byte")));
        }
    }
    Ok(wanted.next().map(|(column, ..)| format!("{table} has no column {column}")))
}
