//! Several sessions on their way into a store at a time, each on a thread of its own.
//!
//! What always holds: outcomes are those of taking one item after the other, and are told in that order. Sessions get
//! their numbers in it, and one waits for those before it that it may have to do with: of its id, or the parent whose
//! events it inherits. Memory is what a few sessions take, whatever the number of files. What is never done: events
//! cross threads, unless there are fewer files than threads.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope, available_parallelism};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::super::jsonl::{Reader, read_ahead};
use super::take::{bring, named};
use super::{ImportOptions, Imported, Importer, Item, Kind, READ_AHEAD_FROM};
use crate::event::Header;
use crate::{Error, ErrorKind, Import, Result, SessionStore};

/// More threads would wait for the one log, and each holds some megabytes.
const MOST_THREADS: usize = 4;
/// Bytes that are read between two reports of progress.
const PROGRESS_STEP: u64 = 1 << 20;

/// How many of so many sessions are to be taken at a time.
pub(super) fn threads(items: usize) -> usize {
    available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_THREADS).min(items)
}

/// A session whose import has begun.
struct Job<'a> {
    item: &'a Item,
    reader: Reader<BufReader<File>>,
    import: Import,
    /// There is a thread to spare for reading.
    ahead: bool,
    answer: Answer,
}

/// Reports what becomes of a session, whatever becomes of its job.
struct Answer {
    index: usize,
    to: Sender<Report>,
    result: Option<Result<Imported>>,
}

impl Drop for Answer {
    fn drop(&mut self) {
        let lost = || Err(Error::new(ErrorKind::Internal, "an import ended before its session did"));
        // Whoever does not listen any more does not want to know.
        let result = Box::new(self.result.take().unwrap_or_else(lost));
        let _ = self.to.send(Report::Done(self.index, result));
    }
}

/// What a thread reports.
enum Report {
    /// So many more bytes were read.
    Read(u64),
    /// What became of the item at this place.
    Done(usize, Box<Result<Imported>>),
}

/// What the caller is told, item by item.
pub(super) type Tell<'c> = &'c mut dyn FnMut(&Item, Result<Imported>) -> ControlFlow<()>;

/// Takes the items in on so many threads; false if none could be started.
pub(super) fn take_all(
    importer: &mut Importer<'_>,
    store: &SessionStore,
    items: &[Item],
    threads: usize,
    progress: &mut dyn FnMut(u64),
    tell: Tell<'_>,
) -> bool {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (jobs, waiting) = bounded(threads);
        let (answers, reports) = unbounded();
        let options = importer.options;
        let started = (0..threads).take_while(|_| start(scope, &waiting, options, &stop)).count();
        drop(waiting);
        if started == 0 {
            return false;
        }
        let (flying, done) = (Vec::new(), BTreeMap::new());
        let mut board = Board { importer, store, items, answers, reports, flying, done, told: 0, progress };
        let flow = items.iter().enumerate().try_for_each(|(index, item)| {
            // One session for each thread, and one that waits for it.
            board.wait_while(|flying| flying.len() >= 2 * started);
            let ahead = items.len().saturating_sub(index) < started;
            if let Some(job) = board.begin(index, item, ahead) {
                // Without any thread the job reports that it is lost.
                let _ = jobs.send(job);
            }
            board.tell(tell)
        });
        if flow.is_continue() {
            board.wait_while(|flying| !flying.is_empty());
            let _ = board.tell(tell);
        }
        stop.store(true, Ordering::Relaxed);
        true
    })
}

/// A session that a thread has.
struct Flying {
    index: usize,
    id: String,
}

/// What is under way, and what is not told yet.
struct Board<'b, 'a, 's> {
    importer: &'b mut Importer<'s>,
    store: &'b SessionStore,
    items: &'a [Item],
    answers: Sender<Report>,
    reports: Receiver<Report>,
    flying: Vec<Flying>,
    done: BTreeMap<usize, Result<Imported>>,
    told: usize,
    progress: &'b mut dyn FnMut(u64),
}

impl<'a> Board<'_, 'a, '_> {
    /// Begins to take the item in. None when that is over already: it was refused, or had to be taken alone.
    fn begin(&mut self, index: usize, item: &'a Item, ahead: bool) -> Option<Job<'a>> {
        // Databases are kept open from one session to the next, and what is no file cannot be opened twice.
        if item.kind != Kind::Jsonl || item.id.is_none() {
            self.wait_while(|flying| !flying.is_empty());
            let result = self.importer.take_counted(item, self.progress);
            self.done.insert(index, result);
            return None;
        }
        match self.open(item) {
            Ok((reader, import)) => {
                self.flying.push(Flying { index, id: reader.header().id().to_owned() });
                let answer = Answer { index, to: self.answers.clone(), result: None };
                Some(Job { item, reader, import, ahead: ahead && item.bytes >= READ_AHEAD_FROM, answer })
            }
            Err(error) => {
                (self.progress)(item.bytes);
                self.done.insert(index, Err(error));
                None
            }
        }
    }

    /// Opens the file and begins the import of its session, when what it may have to do with is there.
    fn open(&mut self, item: &Item) -> Result<(Reader<BufReader<File>>, Import)> {
        let reader = Reader::open(&item.path)?;
        let header = reader.header();
        self.wait_while(|flying| flying.iter().any(|other| concerns(other, header)));
        let import = self.store.import(header.clone()).map_err(|error| named(error, &item.path))?;
        Ok((reader, import))
    }

    /// Takes in reports as long as `full` says so.
    fn wait_while(&mut self, full: impl Fn(&[Flying]) -> bool) {
        while full(&self.flying) {
            match self.reports.recv() {
                Ok(Report::Read(bytes)) => (self.progress)(bytes),
                Ok(Report::Done(index, result)) => {
                    self.flying.retain(|flying| flying.index != index);
                    self.done.insert(index, *result);
                }
                // It has a sender itself.
                Err(_) => return,
            }
        }
    }

    /// Tells what is known, up to the first item that is still under way.
    fn tell(&mut self, tell: Tell<'_>) -> ControlFlow<()> {
        while let Some(result) = self.done.remove(&self.told) {
            let item = self.items.get(self.told);
            self.told += 1;
            if let Some(item) = item {
                tell(item, result)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether the session of `header` may have to do with one that is under way: they are one, or it refers to its events.
fn concerns(other: &Flying, header: &Header) -> bool {
    let inherits = header.seed_length().is_some_and(|events| events > 0);
    other.id == header.id() || inherits && header.parent_session() == Some(&other.id)
}

fn start<'scope, 'a: 'scope>(
    scope: &'scope Scope<'scope, '_>,
    waiting: &Receiver<Job<'a>>,
    options: ImportOptions,
    stop: &'scope AtomicBool,
) -> bool {
    let waiting = waiting.clone();
    let thread = Builder::new().name("sessionlog-import".to_owned());
    thread.spawn_scoped(scope, move || waiting.iter().for_each(|job| work(job, options, stop))).is_ok()
}

/// Takes one session in and reports.
fn work(job: Job<'_>, options: ImportOptions, stop: &AtomicBool) {
    let Job { item, mut reader, import, ahead, mut answer } = job;
    let reports = answer.to.clone();
    let mut reported = 0;
    let mut progress = |read: u64| {
        let read = read.min(item.bytes);
        if read.saturating_sub(reported) >= PROGRESS_STEP {
            let _ = reports.send(Report::Read(read.saturating_sub(reported)));
            reported = read;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Closed, "the import was ended"));
        }
        Ok(())
    };
    let result = if ahead {
        read_ahead(reader, item.path.clone(), |offer| {
            bring(import, options, item, offer, &mut progress, None)
        })
    } else {
        bring(import, options, item, &mut reader, &mut progress, None)
    };
    let _ = reports.send(Report::Read(item.bytes.saturating_sub(reported)));
    answer.result = Some(result);
}
