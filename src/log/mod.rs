//! The engine: one segmented, checksummed, append-only log for all sessions, and the indexes derived from it.

// The face stands before its machinery.
#![allow(
    dead_code,
    unused_variables,
    unused_imports,
    unreachable_pub,
    clippy::unused_self,
    clippy::needless_pass_by_value
)]

mod report;
mod ticket;
mod types;

use std::sync::Arc;

use crate::disk::Disk;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::format::lsn::Lsn;
use crate::rt::Runtime;

pub use report::{BackupReport, Cut, Finding, LogCounters, Loss, RecoveryReport, VerifySummary};
pub use ticket::Ticket;
pub use types::Durability;
pub(crate) use types::{Appended, Entry, Fork, LogOptions, Note, SessionEntry, Structure};

fn pending<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Internal, "not built yet"))
}

/// A store's log, open for writing or for reading. Cheap to clone; the last clone closes it.
#[derive(Clone, Debug)]
pub(crate) struct Log {}

/// Events in seq order. A damaged or missing one is an error at its place; the next call goes on behind it.
pub(crate) struct EventIter {}

impl Iterator for EventIter {
    type Item = Result<Event>;
    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}

impl Log {
    /// Opens for writing; recovers first. `create` makes a missing store (an absent one is `NotFound` otherwise).
    pub(crate) fn open_writer(
        disk: Arc<dyn Disk>,
        rt: Arc<dyn Runtime>,
        options: LogOptions,
        create: bool,
    ) -> Result<(Self, RecoveryReport)> {
        pending()
    }

    /// Opens for reading, beside a live writer or without one. Writes nothing.
    pub(crate) fn open_reader(
        disk: Arc<dyn Disk>,
        rt: Arc<dyn Runtime>,
        options: LogOptions,
    ) -> Result<(Self, RecoveryReport)> {
        pending()
    }

    /// Of a reader: takes in what a writer made durable since. True if anything changed.
    pub(crate) fn refresh(&self) -> Result<bool> {
        pending()
    }

    pub(crate) fn is_writer(&self) -> bool {
        false
    }

    /// The newest undeleted, published session of that id.
    pub(crate) fn lookup(&self, id: &str) -> Result<Option<SessionEntry>> {
        pending()
    }

    /// A session by dense id, deleted and staged ones too.
    pub(crate) fn session(&self, dense: u64) -> Result<Option<SessionEntry>> {
        pending()
    }

    /// Dense ids of all visible sessions, ascending (creation order).
    pub(crate) fn sessions(&self) -> Result<Vec<u64>> {
        pending()
    }

    /// Visible sessions forked off this one.
    pub(crate) fn children(&self, dense: u64) -> Result<Vec<u64>> {
        pending()
    }

    /// A dense id that was never used.
    pub(crate) fn allocate_dense(&self) -> Result<u64> {
        pending()
    }

    /// Keeps a session's state in memory until [`detach`](Self::detach): needed before appending to it. A session
    /// that is created needs no attach before its Create record; `append` of Create/Fork attaches it.
    pub(crate) fn attach(&self, dense: u64) -> Result<SessionEntry> {
        pending()
    }

    pub(crate) fn detach(&self, dense: u64) {}

    /// Appends one atomic batch. Set the MORE flag on all records but the last. Never blocks.
    pub(crate) fn append(&self, entries: &[Entry]) -> Result<Appended> {
        pending()
    }

    /// Returns when everything up to `upto` has come as far as `how`.
    pub(crate) fn flush(&self, upto: Lsn, how: Durability) -> Result<()> {
        pending()
    }

    pub(crate) fn ticket(&self, upto: Lsn) -> Ticket {
        Ticket::ready()
    }

    /// A position that covers everything accepted so far.
    pub(crate) fn tail(&self) -> Lsn {
        Lsn::NONE
    }

    pub(crate) fn durable(&self) -> Lsn {
        Lsn::NONE
    }

    pub(crate) fn written(&self) -> Lsn {
        Lsn::NONE
    }

    /// Blocks until an append of `bytes` may go through (or has a lasting reason to fail, which is returned).
    pub(crate) fn wait_for_room(&self, bytes: usize) -> Result<()> {
        pending()
    }

    /// The error that poisoned the writer, if any.
    pub(crate) fn fault(&self) -> Option<Error> {
        None
    }

    pub(crate) fn event(&self, entry: &SessionEntry, seq: u64) -> Result<Option<Event>> {
        pending()
    }

    /// The events `[from, to)` of a session, inherited ones included.
    pub(crate) fn events(&self, entry: &SessionEntry, from: u64, to: u64) -> Result<EventIter> {
        pending()
    }

    /// Everything below `to` that is no chunk, in seq order, inherited included; and the first hole met, if any.
    pub(crate) fn structure(&self, entry: &SessionEntry, to: u64) -> Result<(Vec<Structure>, Option<Error>)> {
        pending()
    }

    /// Why the session is not proven whole, if so (P2): then a resume needs `accept_loss`.
    pub(crate) fn doubt(&self, entry: &SessionEntry) -> Result<Option<Error>> {
        pending()
    }

    pub(crate) fn counters(&self) -> LogCounters {
        LogCounters::default()
    }

    pub(crate) fn verify(&self, found: &mut dyn FnMut(Finding)) -> Result<VerifySummary> {
        pending()
    }

    /// Copies the store, as far as it is durable, into an empty directory.
    pub(crate) fn backup(&self, target: Arc<dyn Disk>) -> Result<BackupReport> {
        pending()
    }

    /// Flushes, writes the close mark and refuses everything afterwards. Idempotent.
    pub(crate) fn close(&self) -> Result<()> {
        pending()
    }
}
