//! SQLite in WAL mode with `synchronous = FULL`: each event in a transaction of its own.

use std::path::Path;

use rusqlite::Connection;

use super::{Fault, Writer};
use crate::reading::Reading;

struct Database(Connection);

fn open(directory: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(directory.join("events.db"))?;
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
    Ok(connection)
}

pub fn create(directory: &Path) -> Result<Box<dyn Writer>, Fault> {
    let connection = open(directory)?;
    connection.execute_batch(
        "CREATE TABLE events (session INTEGER, seq INTEGER, line TEXT, PRIMARY KEY (session, seq)) WITHOUT ROWID",
    )?;
    Ok(Box::new(Database(connection)))
}

impl Writer for Database {
    fn append(&mut self, session: u64, seq: u64, line: &str) -> Result<(), Fault> {
        let mut insert = self.0.prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3)")?;
        insert.execute((i64::try_from(session)?, i64::try_from(seq)?, line))?;
        Ok(())
    }
}

pub fn read(directory: &Path) -> Reading {
    let mut reading = Reading::default();
    let connection = match open(directory) {
        Ok(connection) => connection,
        Err(error) => return Reading::refused(error),
    };
    // What a program sees that reads its events; and then what the check sees that a careful one runs.
    if let Err(error) = rows(&connection, &mut reading) {
        reading.complaints.push(error.to_string());
    }
    match connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)) {
        Ok(text) if text == "ok" => {}
        Ok(text) => reading.complaints.push(text),
        Err(error) => reading.complaints.push(error.to_string()),
    }
    reading
}

fn rows(connection: &Connection, reading: &mut Reading) -> rusqlite::Result<()> {
    let mut select = connection.prepare("SELECT session, seq, CAST(line AS BLOB) FROM events")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (session, seq): (i64, i64) = (row.get(0)?, row.get(1)?);
        let line = String::from_utf8_lossy(&row.get::<_, Vec<u8>>(2)?).into_owned();
        reading.events.push((session.unsigned_abs(), seq.unsigned_abs(), line));
    }
    Ok(())
}
