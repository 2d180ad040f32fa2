//! fjall: a key for each event, and a sync of its journal behind each.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{Fault, Writer};
use crate::reading::Reading;

struct Tree {
    database: Database,
    events: Keyspace,
}

fn open(directory: &Path) -> Result<Tree, Fault> {
    let database = Database::builder(directory).open()?;
    let events = database.keyspace("events", KeyspaceCreateOptions::default)?;
    Ok(Tree { database, events })
}

pub fn create(directory: &Path) -> Result<Box<dyn Writer>, Fault> {
    Ok(Box::new(open(directory)?))
}

impl Writer for Tree {
    fn append(&mut self, session: u64, seq: u64, line: &str) -> Result<(), Fault> {
        self.events.insert([session.to_be_bytes(), seq.to_be_bytes()].concat(), line)?;
        Ok(self.database.persist(PersistMode::SyncData)?)
    }
}

pub fn read(directory: &Path) -> Reading {
    let tree = match open(directory) {
        Ok(tree) => tree,
        Err(error) => return Reading::refused(error),
    };
    let mut reading = Reading::default();
    for item in tree.events.iter() {
        match item.into_inner() {
            Ok((key, line)) => {
                let number = |at: usize| {
                    key.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes)
                };
                reading.events.push((number(0), number(8), String::from_utf8_lossy(&line).into_owned()));
            }
            Err(error) => reading.complaints.push(error.to_string()),
        }
    }
    reading
}
