//! okaywal: an entry for each event, committed, which syncs it.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use okaywal::{Entry, EntryId, LogManager, LogVoid, SegmentReader, WriteAheadLog};

use super::{Fault, Writer};
use crate::reading::Reading;

struct Log(WriteAheadLog);

pub fn create(directory: &Path) -> Result<Box<dyn Writer>, Fault> {
    Ok(Box::new(Log(WriteAheadLog::recover(directory, LogVoid)?)))
}

impl Writer for Log {
    fn append(&mut self, session: u64, seq: u64, line: &str) -> Result<(), Fault> {
        let mut entry = self.0.begin_entry()?;
        let mut chunk = session.to_le_bytes().to_vec();
        chunk.extend(seq.to_le_bytes());
        chunk.extend(line.as_bytes());
        entry.write_chunk(&chunk)?;
        entry.commit()?;
        Ok(())
    }
}

/// Keeps what recovery finds.
#[derive(Debug, Default)]
struct Found(Arc<Mutex<Vec<Vec<u8>>>>);

impl LogManager for Found {
    fn recover(&mut self, entry: &mut Entry<'_>) -> io::Result<()> {
        if let (Some(chunks), Ok(mut found)) = (entry.read_all_chunks()?, self.0.lock()) {
            found.extend(chunks);
        }
        Ok(())
    }

    fn checkpoint_to(&mut self, _: EntryId, _: &mut SegmentReader, _: &WriteAheadLog) -> io::Result<()> {
        Ok(())
    }
}

pub fn read(directory: &Path) -> Reading {
    let found = Found::default();
    let list = Arc::clone(&found.0);
    let mut reading = Reading::default();
    if let Err(error) = WriteAheadLog::recover(directory, found) {
        reading.complaints.push(error.to_string());
    }
    let Ok(list) = list.lock() else { return reading };
    for chunk in list.iter() {
        let Some((head, line)) = chunk.split_at_checked(16) else { continue };
        let number = |at: usize| {
            head.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
        };
        reading.events.push((number(0), number(8), String::from_utf8_lossy(line).into_owned()));
    }
    reading
}
