//! raft-engine: a region for each session, an entry for each event, each batch synced. Its default settings.

use std::path::Path;

use raft::eraftpb::Entry;
use raft_engine::{Config, Engine, LogBatch, MessageExt};

use super::{Fault, Writer};
use crate::reading::{Reading, SESSIONS};

struct Log(Engine);

struct Extension;

impl MessageExt for Extension {
    type Entry = Entry;

    fn index(entry: &Entry) -> u64 {
        entry.index
    }
}

fn open(directory: &Path) -> Result<Engine, Fault> {
    let dir = directory.to_str().ok_or("the path is no text")?.to_owned();
    Ok(Engine::open(Config { dir, ..Config::default() })?)
}

pub fn create(directory: &Path) -> Result<Box<dyn Writer>, Fault> {
    Ok(Box::new(Log(open(directory)?)))
}

impl Writer for Log {
    fn append(&mut self, session: u64, seq: u64, line: &str) -> Result<(), Fault> {
        let mut entry = Entry::new();
        entry.set_index(seq + 1);
        entry.set_data(line.as_bytes().to_vec().into());
        let mut batch = LogBatch::default();
        batch.add_entries::<Extension>(session + 1, &[entry])?;
        self.0.write(&mut batch, true)?;
        Ok(())
    }
}

pub fn read(directory: &Path) -> Reading {
    let engine = match open(directory) {
        Ok(engine) => engine,
        Err(error) => return Reading::refused(error),
    };
    let mut reading = Reading::default();
    for session in 0..SESSIONS {
        let region = session + 1;
        let (Some(first), Some(last)) = (engine.first_index(region), engine.last_index(region)) else {
            continue;
        };
        for index in first..=last {
            match engine.get_entry::<Extension>(region, index) {
                Ok(Some(entry)) => {
                    let line = String::from_utf8_lossy(entry.get_data()).into_owned();
                    reading.events.push((session, index - 1, line));
                }
                Ok(None) => {}
                Err(error) => reading.complaints.push(error.to_string()),
            }
        }
    }
    reading
}
