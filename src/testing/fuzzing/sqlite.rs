//! SQLite databases: someone's bytes, and sound ones whose cells and pages were changed.
//!
//! Always: in a temporary folder of its own, which SQLite needs; the system's temporary folder should be in memory.

use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use rusqlite::Connection;
use rusqlite::types::Value;

use super::grammar;
use super::input::Input;
use super::small_store::open;
use crate::Durability;
use crate::event::{Event, Header};
use crate::interop::sqlite::{Database, SqliteOptions, Writer};
use crate::testing::SimDisk;

/// Sound databases: of ours, and one whose tables take values of any type.
static SOUND: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| [strict(), loose()]);

const LINES: &str = include_str!("session.jsonl");
const SESSION: &str = r#"{"type":"session","version":0,"id":"s","createdAt":1,"cwd":"/x"}"#;
/// Needs a line of its own beside its row.
const ODD: &str = r#"{"seq":13, "type":"odd","time":1.50,"data":[1, "\ud800"],"more":null}"#;
const MOST_SESSIONS: usize = 20;
const MOST_PATCHES: usize = 60;

/// What to start from u8 (0: the rest is the file), then patches, each: what u8, and what that needs.
pub fn sqlite_import(input: &[u8]) {
    let mut input = Input::new(input);
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("sessions.db");
    match input.u8() {
        0 => fs::write(&path, input.rest()).expect("the temporary folder takes files"),
        which => {
            let [strict, loose] = &*SOUND;
            let sound = if which % 2 == 0 { loose } else { strict };
            fs::write(&path, sound).expect("the temporary folder takes files");
            patch(&path, &mut input);
        }
    }
    let before = fs::read(&path).expect("it was just written");
    examine(&path);
    assert!(fs::read(&path).is_ok_and(|after| after == before), "reading changes nothing");
}

/// Every session that the database gives, into a store and back.
fn examine(path: &Path) {
    let Ok(database) = Database::open(path) else { return };
    let ids: Vec<String> = database.sessions().take(MOST_SESSIONS).flatten().collect();
    let _ = database.orphans().take(MOST_SESSIONS).count();
    for id in &ids {
        session(&database, id);
    }
    let _ = database.check_unchanged();
}

fn session(database: &Database, id: &str) {
    let Ok(mut session) = database.session(id) else { return };
    let header: Header = session.header().clone();
    assert_eq!(header.id(), id, "a session is the one that was asked for");
    let mut events: Vec<Event> = Vec::new();
    while let Ok(Some(event)) = session.next_event() {
        assert_eq!(event.seq(), events.len() as u64, "events come in order, without a hole");
        assert_eq!(Event::parse_line(&event.to_line()).ok().as_ref(), Some(&event), "an event has a line");
        events.push(event);
    }
    let Ok(verdict) = session.finish() else { return };
    assert_eq!(verdict.events, events.len() as u64);
    let store = open(Arc::new(SimDisk::new())).expect("a new store opens");
    let Ok(mut import) = store.import(header.clone()) else { return };
    if events.iter().any(|event| import.push(event).is_err()) {
        return;
    }
    import.publish(Durability::Durable).expect("what was pushed is published");
    let stored = store.open(id).expect("what was published is there");
    let stored = stored.events().map(|event| event.expect("what was published is read"));
    assert!(stored.eq(events.iter().cloned()), "a session comes back as it was");
    written(&header, &events);
}

/// Written to a database of ours it comes back again.
fn written(header: &Header, events: &[Event]) {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("again.db");
    write(&path, header, events);
    let database = Database::open(&path).expect("a database of ours opens");
    // A row's id ends before a NUL; the header is whole.
    let id = database.sessions().next().expect("a session was written").expect("its id is a text");
    let mut session = database.session(&id).expect("what was written is there");
    assert_eq!(session.header().to_line(), header.to_line(), "the header comes back");
    for event in events {
        let again = session.next_event().expect("what was written is read");
        assert_eq!(again.as_ref(), Some(event), "the events come back");
    }
    assert!(matches!(session.next_event(), Ok(None)), "and no more");
}

fn write(path: &Path, header: &Header, events: &[Event]) {
    let mut writer = Writer::create(path, SqliteOptions::default()).expect("a new database is begun");
    writer.put_session(header, events.iter().cloned().map(Ok)).expect("a session is put");
    writer.finish().expect("a database is published");
}

fn strict() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("sound.db");
    let (header, _) = Header::parse_line(SESSION).expect("it is a header");
    let count = LINES.lines().count() as u64;
    let odd = ODD.replace("13", &count.to_string());
    let lines = LINES.lines().chain([odd.as_str()]);
    let events: Vec<Event> =
        lines.map(|line| Event::parse_line(line).expect("the bundled lines are events")).collect();
    write(&path, &header, &events);
    fs::read(&path).expect("it was just written")
}

/// The same rows in tables without types.
fn loose() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("sound.db");
    fs::write(&path, strict()).expect("the temporary folder takes files");
    let connection = Connection::open(&path).expect("it is a database");
    let made = connection.execute_batch(
        "PRAGMA foreign_keys = OFF;
         CREATE TEMP TABLE s AS SELECT * FROM sessions; CREATE TEMP TABLE e AS SELECT * FROM events;
         DROP TABLE sessionlog_lines; DROP TABLE events; DROP TABLE sessions;
         CREATE TABLE sessions (id TEXT PRIMARY KEY, version INTEGER NOT NULL, created_at INTEGER NOT NULL, cwd TEXT,
           parent_session TEXT, seed_length INTEGER);
         CREATE TABLE events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, time INTEGER NOT NULL,
           data TEXT NOT NULL, source_event_seqs TEXT, surface_op TEXT, PRIMARY KEY (session_id, seq));
         INSERT INTO sessions SELECT * FROM s; INSERT INTO events SELECT * FROM e; VACUUM;",
    );
    made.expect("the tables are made anew");
    drop(connection);
    fs::read(&path).expect("it was just written")
}

const COLUMNS: [(&str, &[&str]); 3] = [
    ("events", &["session_id", "seq", "type", "time", "data", "source_event_seqs", "surface_op"]),
    ("sessions", &["id", "version", "created_at", "cwd", "parent_session", "seed_length"]),
    ("sessionlog_lines", &["session_id", "seq", "line"]),
];

/// Cells first, through SQLite; then bytes of the file.
fn patch(path: &Path, input: &mut Input<'_>) {
    let connection = Connection::open(path).expect("it is a database");
    connection
        .execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; BEGIN")
        .expect("it is a database");
    for _ in 0..MOST_PATCHES {
        if input.is_empty() {
            break;
        }
        let what = input.u8();
        if what >= 0xE0 {
            break;
        }
        cell(&connection, what, input);
    }
    connection.execute_batch("COMMIT").expect("the changes are kept");
    drop(connection);
    let mut bytes = fs::read(path).expect("it was just written");
    while !input.is_empty() {
        let (page, place, len) =
            (usize::from(input.u8()), usize::from(input.u16()), usize::from(input.u8() % 32));
        let at = page * 4096 + place % 4096;
        for (to, from) in bytes.iter_mut().skip(at).zip(input.take(len)) {
            *to = *from;
        }
    }
    fs::write(path, bytes).expect("the temporary folder takes files");
}

/// One change of a row. What SQLite refuses is left as it was.
fn cell(connection: &Connection, what: u8, input: &mut Input<'_>) {
    let Some((table, columns)) = grammar::pick(input, &COLUMNS) else { return };
    let Some(column) = grammar::pick(input, columns) else { return };
    let row = input.u8() % 16;
    let sql = match what {
        0..8 => format!("DELETE FROM {table} WHERE rowid = {row} OR ?1 IS NULL AND 0"),
        8..16 => format!("UPDATE {table} SET rowid = rowid + 100 WHERE rowid = {row} OR ?1 IS NULL AND 0"),
        16..24 => format!("UPDATE {table} SET {column} = ?1"),
        _ => format!("UPDATE {table} SET {column} = ?1 WHERE rowid = {row}"),
    };
    let _ = connection.execute(&sql, [cell_value(input)]);
}

fn cell_value(input: &mut Input<'_>) -> Value {
    let mut text = String::new();
    match input.u8() % 8 {
        0 => return Value::Null,
        1 => return Value::Integer(i64::from(input.u16()) - 300),
        2 => return Value::Integer(grammar::pick(input, &[i64::MIN, i64::MAX, -1, 0]).unwrap_or(0)),
        3 => return Value::Real(grammar::pick(input, &[0.5, -0.0, 1e300, f64::INFINITY]).unwrap_or(0.0)),
        4 => {
            let len = usize::from(input.u8() % 64);
            return Value::Blob(input.take(len).to_vec());
        }
        5 => text = grammar::event_line(input, 3),
        6 => {
            let len = usize::from(input.u8() % 64);
            text = String::from_utf8_lossy(input.take(len)).into_owned();
        }
        _ => grammar::value(input, &mut text),
    }
    Value::Text(text)
}
