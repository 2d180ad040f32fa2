//! A session file that is read on a thread of its own, ahead of whoever takes its events.
//!
//! What always holds: the events, errors and verdict are those of the reader, in its order. Memory is a bounded number of
//! events, or one that is larger than the bound. What is never done: reading on when nobody wants more.

use std::collections::VecDeque;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::thread::{Scope, ScopedJoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::super::offer::Offer;
use super::super::verdict::Verdict;
use super::reader::Reader;
use crate::event::{Event, Header, HeaderNote};
use crate::{Error, ErrorKind, Result};

/// Bytes and events that make a batch.
const BATCH_BYTES: u64 = 128 << 10;
const BATCH_EVENTS: usize = 512;
/// Batches that wait to be taken.
const WAITING: usize = 4;

/// Events with their lines' numbers.
struct Batch {
    events: Vec<(Event, u64)>,
    /// Bytes of the file that were read.
    consumed: u64,
    /// What came behind them.
    end: Option<Result<Verdict>>,
}

/// See the module.
struct Ahead<'scope> {
    path: PathBuf,
    header: Header,
    notes: Vec<HeaderNote>,
    batches: Receiver<Batch>,
    reader: Option<ScopedJoinHandle<'scope, ()>>,
    ready: VecDeque<(Event, u64)>,
    line: u64,
    consumed: u64,
    end: Option<Result<Verdict>>,
}

/// Lets `take` have the events of `reader`, which goes on reading meanwhile.
///
/// # Errors
/// No thread could be started; those of `take`.
pub(crate) fn read_ahead<T>(
    reader: Reader<BufReader<File>>,
    path: PathBuf,
    take: impl FnOnce(&mut dyn Offer) -> Result<T>,
) -> Result<T> {
    std::thread::scope(|scope| take(&mut Ahead::start(scope, reader, path)?))
}

impl<'scope> Ahead<'scope> {
    fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        reader: Reader<BufReader<File>>,
        path: PathBuf,
    ) -> Result<Self> {
        let (header, notes) = (reader.header().clone(), reader.header_notes().to_vec());
        let (sender, batches) = bounded(WAITING);
        let thread = std::thread::Builder::new().name("sessionlog-read".to_owned());
        let started = thread.spawn_scoped(scope, move || read(reader, &sender));
        let reader = started.map_err(|error| Error::io("start a thread for", &path, error))?;
        let (ready, end) = (VecDeque::new(), None);
        Ok(Self { path, header, notes, batches, reader: Some(reader), ready, line: 1, consumed: 0, end })
    }

    /// The next batch, unless the end was reached.
    fn refill(&mut self) -> Result<()> {
        if self.end.is_some() {
            return Ok(());
        }
        match self.batches.recv() {
            Ok(Batch { events, consumed, end }) => {
                self.ready.extend(events);
                self.consumed = consumed;
                self.end = end;
                Ok(())
            }
            Err(_) => {
                let panicked = self.reader.take().is_some_and(|thread| thread.join().is_err());
                let text = format!("{}: its reader ended early (panicked: {panicked})", self.path.display());
                Err(Error::new(ErrorKind::Internal, text))
            }
        }
    }
}

/// Reads to the end, to an error, or until nobody takes a batch any more.
fn read(mut reader: Reader<BufReader<File>>, to: &Sender<Batch>) {
    let mut before = 0;
    loop {
        let mut events = Vec::with_capacity(BATCH_EVENTS);
        let mut end = None;
        // A packed row can be much smaller than its events.
        let mut bytes = 0;
        while events.len() < BATCH_EVENTS && bytes.max(reader.consumed() - before) < BATCH_BYTES {
            match Reader::next_event(&mut reader) {
                Ok(Some(event)) => {
                    bytes = bytes.saturating_add(event.data().as_str().len() as u64);
                    events.push((event, reader.line()));
                }
                Ok(None) => {
                    end = Some(Offer::finish(&mut reader));
                    break;
                }
                Err(error) => {
                    end = Some(Err(error));
                    break;
                }
            }
        }
        before = reader.consumed();
        let is_last = end.is_some();
        if to.send(Batch { events, consumed: before, end }).is_err() || is_last {
            return;
        }
    }
}

impl Offer for Ahead<'_> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn header_notes(&self) -> &[HeaderNote] {
        &self.notes
    }

    fn next_event(&mut self) -> Result<Option<Event>> {
        while self.ready.is_empty() && self.end.is_none() {
            self.refill()?;
        }
        if let Some((event, line)) = self.ready.pop_front() {
            self.line = line;
            return Ok(Some(event));
        }
        match &self.end {
            Some(Err(error)) => Err(error.clone()),
            _ => Ok(None),
        }
    }

    fn place(&self) -> String {
        format!("{} line {}", self.path.display(), self.line)
    }

    fn consumed(&self) -> u64 {
        self.consumed
    }

    fn finish(&mut self) -> Result<Verdict> {
        while self.end.is_none() {
            self.ready.clear();
            self.refill()?;
        }
        self.ready.clear();
        self.end.clone().unwrap_or_else(|| Err(Error::new(ErrorKind::Internal, "a file without an end")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_expands_to_much_more_than_itself_is_read_in_small_batches() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let id = "i".repeat(100_000);
        let row = format!(
            "{{\"type\":\"tool-call-chunks\",\"seq0\":0,\"time0\":1,\"data\":{{\"turn\":1,\"step\":1,\"index\":0,\"id\":\"{id}\",\
             \"dt\":[{}],\"args\":[{}]}}}}",
            vec!["0"; 299].join(","),
            vec!["\"\""; 300].join(",")
        );
        let header = r#"{"type":"session","version":0,"id":"s","createdAt":1}"#;
        std::fs::write(&path, format!("{header}\n{row}\n")).unwrap();
        let reader = Reader::open(&path).unwrap();
        let (sender, batches) = bounded(1000);
        read(reader, &sender);
        drop(sender);
        let mut events = 0;
        for batch in batches {
            let bytes: usize = batch.events.iter().map(|(event, _)| event.data().as_str().len()).sum();
            assert!(bytes < 400_000, "{bytes} bytes are in one batch");
            events += batch.events.len();
        }
        assert_eq!(events, 300);
    }
}
