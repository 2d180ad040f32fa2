//! Other programs' files as stored sessions (rules X1, I, L).
//!
//! What always holds: a session comes in whole or not at all, and one bad file stops no other one. What is stored
//! already stays as it is: importing twice is importing once, and a longer version of a session adds its new events.
//! What a file is, its content says. What is never done: writing closers, adding markers, storing what breaks I2-I4,
//! J or the envelope's shape, writing to the files.

mod find;
mod item;
mod order;
mod pool;
mod rehearsal;
mod take;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub use find::{Found, find_files};
pub use item::Item;
use item::Kind;
use rehearsal::Rehearsal;
use take::Way;
pub use take::{Fate, Imported};

use super::jsonl::{Reader, read_ahead};
#[cfg(feature = "sqlite")]
use super::sqlite::Database;
use crate::{Error, Result, SessionStore};

/// Files of so many bytes are read on a thread of their own.
const READ_AHEAD_FROM: u64 = 256 << 10;

/// How files are imported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Import the events before a hole that is damage. Without it such a session is refused.
    pub salvage: bool,
}

/// What the sessions go to.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// A store.
    Store(&'a SessionStore),
    /// Nowhere: what would happen is told. The store, if there is one, may be open for reading only.
    Rehearsal(Option<&'a SessionStore>),
}

/// The sessions that were found at some paths, in the order in which they are to be imported: parents before their
/// children, otherwise as they were found.
#[derive(Debug, Default)]
pub struct Survey {
    /// The sessions; a file that does not even begin like one is an item too, and is refused when it is taken.
    pub items: Vec<Item>,
    /// Files and folders that could not be looked at, and what is in them but cannot be read, each with its path.
    pub errors: Vec<(PathBuf, Error)>,
    /// Folders without any file of sessions, and databases without any session.
    pub empty: Vec<PathBuf>,
}

/// Looks at the files, and in the folders, at `paths`. Of every session only its header is read.
#[must_use]
pub fn survey(paths: &[PathBuf]) -> Survey {
    let mut survey = Survey::default();
    for path in paths {
        let found = find_files(path);
        if found.files.is_empty() && found.errors.is_empty() {
            survey.empty.push(path.clone());
        }
        let named = |error: Error| (error.path().unwrap_or(path).to_path_buf(), error);
        survey.errors.extend(found.errors.into_iter().map(named));
        for file in found.files {
            if let Err(error) = item::look_at(&file, &mut survey) {
                survey.errors.push((file, error));
            }
        }
    }
    order::parents_first(&mut survey.items);
    survey
}

/// Takes sessions in, one after the other.
///
/// They are durable after the next [`flush`](crate::SessionStore::flush) of the store, or when it is closed.
#[derive(Debug)]
pub struct Importer<'a> {
    target: Target<'a>,
    options: ImportOptions,
    rehearsal: Rehearsal,
    /// The last database that a session came from: the next one is likely to come from it too.
    #[cfg(feature = "sqlite")]
    database: Option<Database>,
}

impl<'a> Importer<'a> {
    /// Into `target`.
    #[must_use]
    pub fn new(target: Target<'a>, options: ImportOptions) -> Self {
        Self {
            target,
            options,
            rehearsal: Rehearsal::default(),
            #[cfg(feature = "sqlite")]
            database: None,
        }
    }

    /// Takes in the session of `item`. `progress` is told how many of its bytes were read, now and then.
    ///
    /// # Errors
    /// A file that cannot be read or is no session; damage, unless it is salvaged (kind `Corrupt`: the message says
    /// where, why, and what could be kept); events that break I2-I4, J or the envelope's shape; an id that stands for
    /// another session in the store (kind `Conflict`, with the first event that differs) or is live there (kind
    /// `Exists`); errors of the store. The store has then what it had before.
    pub fn take(&mut self, item: &Item, progress: &mut dyn FnMut(u64)) -> Result<Imported> {
        let way = Way { target: self.target, options: self.options, rehearsal: &mut self.rehearsal };
        match &item.kind {
            Kind::Jsonl => {
                let mut reader = Reader::open(&item.path)?;
                if item.bytes < READ_AHEAD_FROM {
                    return way.take(item, &mut reader, progress);
                }
                // Reading a file is as much work as storing it.
                read_ahead(reader, item.path.clone(), |offer| way.take(item, offer, progress))
            }
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(id) => {
                let database = match self.database.take() {
                    Some(database) if database.path() == item.path => database,
                    _ => Database::open(&item.path)?,
                };
                let database = self.database.insert(database);
                let mut offer = database.session(id)?;
                way.take(item, &mut offer, progress)
            }
        }
    }

    /// Takes in the sessions of `items`, several at a time. `tell` is told what became of each, in their order, and may
    /// end it: sessions that are not whole then are given up, others may be stored and not told. `progress` is told how
    /// many more bytes were read, now and then.
    ///
    /// What became of each is what [`take`](Self::take) one after the other would give.
    pub fn take_all(
        &mut self,
        items: &[Item],
        progress: &mut dyn FnMut(u64),
        tell: &mut dyn FnMut(&Item, Result<Imported>) -> ControlFlow<()>,
    ) {
        let threads = pool::threads(items.len());
        if let Target::Store(store) = self.target
            && threads > 1
            && pool::take_all(self, store, items, threads, progress, tell)
        {
            return;
        }
        // What a dry run is told of, it compares with what it was told of before.
        let _ = items.iter().try_for_each(|item| {
            let result = self.take_counted(item, progress);
            tell(item, result)
        });
    }

    /// As [`take`](Self::take); `progress` is told of all the item's bytes, piece by piece.
    fn take_counted(&mut self, item: &Item, progress: &mut dyn FnMut(u64)) -> Result<Imported> {
        let mut done = 0;
        let result = self.take(item, &mut |read| {
            let read = read.min(item.bytes);
            progress(read.saturating_sub(done));
            done = done.max(read);
        });
        progress(item.bytes.saturating_sub(done));
        result
    }
}

/// Imports the one session in the file at `path`, durably.
///
/// # Errors
/// As [`Importer::take`].
pub fn import_file(store: &SessionStore, path: &Path, options: ImportOptions) -> Result<Imported> {
    let mut importer = Importer::new(Target::Store(store), options);
    let imported = importer.take(&item::jsonl(path), &mut |_| {})?;
    store.flush()?;
    Ok(imported)
}
