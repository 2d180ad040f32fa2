//! redb: each event in a transaction of its own, with its default durability, which syncs it.

use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::{Fault, Writer};
use crate::reading::Reading;

const EVENTS: TableDefinition<(u64, u64), &[u8]> = TableDefinition::new("events");

struct Tree(Database);

pub fn create(directory: &Path) -> Result<Box<dyn Writer>, Fault> {
    Ok(Box::new(Tree(Database::create(directory.join("events.redb"))?)))
}

impl Writer for Tree {
    fn append(&mut self, session: u64, seq: u64, line: &str) -> Result<(), Fault> {
        let transaction = self.0.begin_write()?;
        transaction.open_table(EVENTS)?.insert((session, seq), line.as_bytes())?;
        Ok(transaction.commit()?)
    }
}

pub fn read(directory: &Path) -> Reading {
    let mut reading = Reading::default();
    if let Err(error) = rows(directory, &mut reading) {
        reading.complaints.push(error.to_string());
    }
    reading
}

fn rows(directory: &Path, reading: &mut Reading) -> Result<(), Fault> {
    let mut database = Database::open(directory.join("events.redb"))?;
    {
        let transaction = database.begin_read()?;
        let table = transaction.open_table(EVENTS)?;
        for item in table.iter()? {
            let (key, line) = item?;
            let (session, seq) = key.value();
            reading.events.push((session, seq, String::from_utf8_lossy(line.value()).into_owned()));
        }
    }
    // Reading checks nothing; its own check does.
    if !database.check_integrity()? {
        reading.complaints.push("check_integrity: it was damaged, and was repaired".to_owned());
    }
    Ok(())
}
