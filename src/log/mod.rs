//! The engine: one segmented, checksummed, append-only log for all sessions, and the indexes derived from it.
//!
//! The log is the truth; tables, index files and directory runs are folds of it that are rebuilt when they cannot be
//! used. Nothing here knows what an event means beyond its class; that is the store's.

mod backup;
mod catalog;
mod checkpoint;
mod close;
mod commit;
mod commit_state;
mod continuation;
mod counters;
mod create;
mod directory;
mod doubt;
mod files;
mod fold;
mod follow;
mod header;
mod index_frames;
mod indexer;
mod keeper;
mod live;
mod notes;
mod orphans;
mod places;
mod reader;
pub(crate) mod rebuild;
mod recover;
mod replay;
mod report;
pub(crate) mod scan;
mod segments;
mod shared;
mod space;
mod staged;
mod survey;
mod ticket;
mod types;
mod verify;
mod window;
mod work;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::disk::Disk;
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, MAX_BATCH_BYTES};
use crate::format::index::{SegmentKey, SegmentTable};
use crate::format::meta::NUMBER_LIMIT;
use crate::format::{Binding, Lsn};
use crate::rt::Runtime;

use close::Handle;
use indexer::Indexer;
use keeper::Keeper;
use shared::Shared;

pub(crate) use reader::EventIter;
pub use report::{BackupReport, Cut, Finding, LogCounters, Loss, RecoveryReport, VerifySummary};
pub(crate) use shared::LockScope;
pub(crate) use ticket::Ticket;
pub use types::Durability;
pub(crate) use types::{Appended, Entry, Fork, LogOptions, Note, SessionEntry, Structure};

/// Unwritten bytes at which the background drains at once.
const DRAIN_BYTES: usize = 64 << 10;

/// A store's log, open for writing or for reading. Cheap to clone; the last clone closes it.
#[derive(Clone)]
pub(crate) struct Log {
    handle: Arc<Handle>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("path", &self.handle.shared.disk.path()).finish_non_exhaustive()
    }
}

impl Log {
    /// Opens for writing; recovers first. `create` makes a missing store.
    ///
    /// # Errors
    /// `NotFound` (no store and no `create`), `Locked`, `Version`, `Unsupported` (a network file system), `Corrupt`
    /// (nothing can be written safely), or a failed disk call.
    pub(crate) fn open_writer(
        disk: Arc<dyn Disk>,
        rt: Arc<dyn Runtime>,
        options: LogOptions,
        create: bool,
    ) -> Result<(Self, RecoveryReport)> {
        let (shared, report) = recover::open_writer(disk, rt, options, create)?;
        let keeper =
            shared.rt.spawn("sessionlog-keeper", Box::new(Keeper { shared: Arc::downgrade(&shared) }))?;
        let indexer = shared.rt.spawn("sessionlog-indexer", Box::new(Indexer::new(&shared)))?;
        // Both are set once, here.
        let _ = shared.keeper.set(keeper.bell());
        let _ = shared.indexer.set(indexer.bell());
        let handle = Handle::new(shared, vec![keeper, indexer]);
        let log = Self { handle: Arc::new(handle) };
        log.settle_staged()?;
        Ok((log, report))
    }

    /// Opens for reading, beside a live writer or without one. Writes nothing.
    ///
    /// # Errors
    /// `NotFound`, `Version`, or a failed disk call.
    pub(crate) fn open_reader(
        disk: Arc<dyn Disk>,
        rt: Arc<dyn Runtime>,
        options: LogOptions,
    ) -> Result<(Self, RecoveryReport)> {
        let (shared, report) = follow::open_reader(disk, rt, options)?;
        let handle = Handle::new(shared, Vec::new());
        let log = Self { handle: Arc::new(handle) };
        log.show_staged()?;
        Ok((log, report))
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Of a reader: takes in what a writer made durable since. True if anything changed.
    pub(crate) fn refresh(&self) -> Result<bool> {
        self.shared().refresh()
    }

    pub(crate) fn is_writer(&self) -> bool {
        self.shared().state().commit.is_some()
    }

    /// The newest undeleted, published session of that id.
    pub(crate) fn lookup(&self, id: &str) -> Result<Option<SessionEntry>> {
        self.shared().lookup(id)
    }

    /// A session by dense id, deleted and staged ones too.
    pub(crate) fn session(&self, dense: u64) -> Result<Option<SessionEntry>> {
        self.shared().session(dense)
    }

    /// Dense ids of all visible sessions in the order of their creation, of those that were continued the newest.
    pub(crate) fn sessions(&self) -> Result<Vec<u64>> {
        self.shared().sessions()
    }

    /// A dense id that was never used.
    pub(crate) fn allocate_dense(&self) -> Result<u64> {
        let mut state = self.shared().state();
        state.writer()?;
        let dense = state.live.next_dense;
        if dense >= NUMBER_LIMIT {
            let text =
                format!("create: session number {dense} is next, more than a store can have handed out");
            return Err(Error::new(ErrorKind::Corrupt, text));
        }
        state.live.next_dense = dense.saturating_add(1);
        let next = state.live.next_dense;
        state.writer()?.set_next_dense(next);
        Ok(dense)
    }

    /// Keeps a session's state in memory until [`detach`](Self::detach): needed before appending to it. Appending a
    /// Create or Fork record attaches the new session.
    pub(crate) fn attach(&self, dense: u64) -> Result<SessionEntry> {
        self.shared().attach(dense)
    }

    pub(crate) fn detach(&self, dense: u64) {
        self.shared().detach(dense);
    }

    /// Appends one atomic batch, with the MORE flag on all records but the last. Never blocks, never does I/O.
    ///
    /// # Errors
    /// `Backpressure`, `Full`, `TooLarge`, `Poisoned`, `Closed`, `Forked`, `ReadOnly`; nothing was accepted.
    pub(crate) fn append(&self, entries: &[Entry]) -> Result<Appended> {
        let shared = self.shared();
        let bytes: usize = entries.iter().map(|entry| entry.record.stored_len()).sum();
        if bytes > MAX_BATCH_BYTES {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("a batch of {bytes} bytes; at most {MAX_BATCH_BYTES} are taken at once"),
            ));
        }
        let privileged =
            entries.iter().all(|entry| matches!(entry.note, Note::Delete { .. } | Note::AcceptLoss { .. }));
        let mut places = Vec::with_capacity(entries.len());
        let mut state = shared.state();
        let fresh = state.writer()?.has_open_records();
        if !fresh {
            // One check a group: a forked child would write into its parent's log.
            drop(state);
            shared.check_process()?;
            state = shared.state();
        }
        let taken = state.writer()?.append(entries, privileged, &mut places);
        let end = match taken {
            Ok(end) => end,
            Err(error) => {
                drop(state);
                if error.is_backpressure() || error.is_full() {
                    shared.counters.backpressure.add(1);
                    shared.ring_keeper();
                }
                return Err(error);
            }
        };
        let first = places.first().copied().unwrap_or(end);
        let ring = self.note(&mut state, entries, &places, end)?;
        drop(state);
        if ring {
            shared.ring_keeper();
        }
        Ok(Appended { first, end })
    }

    /// Brings the index up to date; true if the keeper has something to do now.
    fn note(
        &self,
        state: &mut shared::Held<'_>,
        entries: &[Entry],
        places: &[Lsn],
        end: Lsn,
    ) -> Result<bool> {
        let now = self.shared().rt.monotonic();
        let state = &mut **state;
        let commit = state
            .commit
            .as_mut()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "an append without a writer"))?;
        let space = commit.space();
        if state.live.table(end.segment()).is_none() {
            let store = commit.control().store;
            let binding = Binding { store, salt: space.salt, epoch: space.segment_epoch };
            state.live.add_table(
                SegmentTable::new(SegmentKey { store, segment: space.number, salt: space.salt }),
                binding,
            );
        }
        let tight = commit.space().is_tight(end.offset());
        let bytes = commit.pending_bytes();
        for (entry, place) in entries.iter().zip(places) {
            state.live.note(&entry.note, *place, entry.record.stored_len())?;
            if let Note::Create { dense, .. } | Note::Fork { dense, .. } = entry.note {
                state.live.attach(dense);
            }
        }
        if commit.index_due()
            && let Some(table) = state.live.table_mut(end.segment())
            && commit.push_index(table.encode_part())?
        {
            table.mark();
        }
        let was_idle = state.unwritten_since.is_none();
        if was_idle {
            state.unwritten_since = Some(now);
        }
        let crossed = bytes >= DRAIN_BYTES && !state.drain_rung;
        state.drain_rung = bytes >= DRAIN_BYTES;
        Ok(was_idle || crossed || tight)
    }

    /// Returns when everything up to `upto` has come as far as `how`.
    pub(crate) fn flush(&self, upto: Lsn, how: Durability) -> Result<()> {
        self.shared().flush(upto, how)
    }

    /// Has everything up to `upto` made durable in the background; neither waits nor does any I/O.
    pub(crate) fn flush_soon(&self, upto: Lsn) {
        if let Some(commit) = self.shared().state().commit.as_mut() {
            commit.want(upto, true);
        }
        self.shared().ring_keeper();
    }

    pub(crate) fn ticket(&self, upto: Lsn) -> Ticket {
        Ticket::new(Arc::clone(self.shared()), upto)
    }

    /// A position that covers everything accepted so far.
    pub(crate) fn tail(&self) -> Lsn {
        self.shared().state().commit.as_ref().map_or(Lsn::NONE, commit_state::CommitState::tail)
    }

    pub(crate) fn durable(&self) -> Lsn {
        self.shared().state().commit.as_ref().map_or(Lsn::NONE, commit_state::CommitState::durable)
    }

    /// Blocks until an append of `bytes` may go through, or something other than room is the matter.
    ///
    /// # Errors
    /// `Full` when space could not be prepared, `Poisoned`, `Closed`, `ReadOnly`.
    pub(crate) fn wait_for_room(&self, bytes: usize) -> Result<()> {
        let shared = self.shared();
        shared.check_process()?;
        loop {
            let seen = shared.room_seen();
            {
                let mut state = shared.state();
                let commit = state.writer()?;
                commit.check_usable()?;
                if commit.has_room(bytes)? {
                    return Ok(());
                }
                let tail = commit.tail();
                commit.want(tail, false);
            }
            shared.ring_keeper();
            shared.await_room(seen);
        }
    }

    /// The error that poisoned the writer, if any.
    pub(crate) fn fault(&self) -> Option<Error> {
        self.shared().state().commit.as_ref().and_then(|commit| commit.fault().cloned())
    }

    /// Whether the writer takes and acknowledges anything: not even what is durable already, once it is poisoned (G5).
    pub(crate) fn check_fault(&self) -> Result<()> {
        self.fault().map_or(Ok(()), Err)
    }

    pub(crate) fn event(&self, entry: &SessionEntry, seq: u64) -> Result<Option<Event>> {
        self.shared().event(entry, seq)
    }

    /// Single events of a session, `seqs` ascending.
    pub(crate) fn pick(&self, entry: &SessionEntry, seqs: &[u64]) -> Result<Vec<Event>> {
        self.shared().pick(entry, seqs)
    }

    /// The events `[from, to)` of a session, inherited ones included.
    pub(crate) fn events(&self, entry: &SessionEntry, from: u64, to: u64) -> Result<EventIter> {
        self.shared().events(entry, from, to)
    }

    /// Everything below `to` that is no chunk, in seq order, inherited included; and the first hole met, if any.
    pub(crate) fn structure(&self, entry: &SessionEntry, to: u64) -> Result<(Vec<Structure>, Option<Error>)> {
        self.shared().structure(entry, to)
    }

    /// Why the session is not proven whole, if so (P2): then a resume needs `accept_loss`.
    pub(crate) fn doubt(&self, entry: &SessionEntry) -> Result<Option<Error>> {
        self.shared().doubt(entry).map(|doubt| doubt.map(|doubt| doubt.error))
    }

    /// The next seq after accepting the loss: none that a lost event may have had is used again.
    pub(crate) fn seq_after_loss(&self, entry: &SessionEntry) -> Result<u64> {
        Ok(self.shared().doubt(entry)?.map_or(entry.next_seq, |doubt| doubt.next_seq))
    }

    pub(crate) fn counters(&self) -> LogCounters {
        self.shared().report_counters()
    }

    pub(crate) fn verify(&self, found: &mut dyn FnMut(Finding)) -> Result<VerifySummary> {
        self.shared().verify(found)
    }

    /// Copies the store, as far as it is durable, into an empty directory.
    pub(crate) fn backup(&self, target: Arc<dyn Disk>) -> Result<BackupReport> {
        self.shared().backup(target.as_ref())
    }

    /// Flushes, writes the close mark and refuses everything afterwards. Idempotent.
    ///
    /// # Errors
    /// The last flush failed: what it was to make durable may be lost.
    pub(crate) fn close(&self) -> Result<()> {
        self.handle.close()
    }
}
