//! Folding segments over the directory: what opening replays, what a checkpoint writes down, and what is brought back
//! when a run turns out broken. All three are the same fold.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::Lsn;
use crate::format::directory::RunRange;

use super::directory::{Directory, broken_run};
use super::live::LiveIndex;
use super::replay::{Changes, replay};
use super::segments::Index;
use super::shared::Shared;
use super::types::SessionEntry;

/// See the module.
pub(crate) struct Fold<'a> {
    shared: &'a Shared,
    directory: Arc<Directory>,
    changes: Changes,
    /// Something was passed over because a read failed: good enough to go on with, not to be written down.
    pub unread: Option<Error>,
}

impl<'a> Fold<'a> {
    pub(crate) fn new(shared: &'a Shared, directory: Arc<Directory>) -> Self {
        Self { shared, directory, changes: Changes::default(), unread: None }
    }

    pub(crate) fn len(&self) -> usize {
        self.changes.entries.len().saturating_add(self.changes.orphans.len())
    }

    pub(crate) fn into_changes(self) -> Changes {
        self.changes
    }

    /// A session as it is after the segments so far.
    pub(crate) fn known(&self, dense: u64) -> Result<Option<SessionEntry>> {
        match self.changes.get(dense) {
            Some(entry) => Ok(Some(entry)),
            None => self.directory.session(dense),
        }
    }

    /// Applies a segment. False where it is missing or damaged beyond reading: its sessions have holes.
    ///
    /// # Errors
    /// A run of the directory is broken, or a read failed.
    pub(crate) fn take(&mut self, number: u32) -> Result<bool> {
        let segments = Arc::clone(&self.shared.segments.read());
        let index = match segments.index(self.shared, number) {
            Ok(index) => index,
            Err(error) => return self.pass_over(number, error),
        };
        match self.apply(number, &index) {
            Ok(()) => return Ok(true),
            Err(error) if error.is_corruption() && broken_run(&error).is_none() => {
                tracing::warn!(%error, segment = number, "an index block is damaged; rebuilding the index");
            }
            Err(error) => return Err(error),
        }
        let rebuilt = segments.replace_index(self.shared, number);
        match rebuilt.and_then(|index| self.apply(number, &index)) {
            Ok(()) => Ok(true),
            Err(error) => self.pass_over(number, error),
        }
    }

    fn pass_over(&self, number: u32, error: Error) -> Result<bool> {
        if broken_run(&error).is_some() || !error.is_corruption() && !error.is_not_found() {
            return Err(error);
        }
        tracing::error!(%error, segment = number, "a segment cannot be read; its sessions have holes");
        Ok(false)
    }

    fn apply(&mut self, number: u32, index: &Index) -> Result<()> {
        let unread = replay(self.shared, number, index, &mut self.changes, &self.directory)?;
        self.unread = self.unread.take().or(unread);
        Ok(())
    }
}

/// Applies the segments behind the directory chain to the live entries, and links the tables in memory.
///
/// # Errors
/// An index can neither be read nor rebuilt for a reason other than damage.
pub(crate) fn replay_behind_chain(shared: &Shared, ended: &[u32], active: Option<u32>) -> Result<()> {
    loop {
        let result = replay_once(shared, ended, active);
        match result.as_ref().err().and_then(broken_run) {
            Some(range) => shared.shorten(range),
            None => return result,
        }
    }
}

fn replay_once(shared: &Shared, ended: &[u32], active: Option<u32>) -> Result<()> {
    let (directory, tables) = {
        let state = shared.state();
        (Arc::clone(&state.live.directory), state.live.table_numbers())
    };
    let covered = directory.to.segment();
    let mut fold = Fold::new(shared, directory);
    for number in ended.iter().copied().chain(active).filter(|number| *number > covered) {
        if tables.contains(&number) {
            link(shared, &fold, number)?;
        }
        fold.take(number)?;
    }
    let changes = fold.into_changes();
    let mut state = shared.state();
    let highest = changes.entries.keys().next_back().copied().max(changes.orphans.last());
    state.live.next_dense = state.live.next_dense.max(highest.map_or(1, |dense| dense.saturating_add(1)));
    restore(&mut state.live, changes);
    Ok(())
}

/// Brings in what a fold found.
fn restore(live: &mut LiveIndex, changes: Changes) {
    for replayed in changes.entries.into_values() {
        live.restore(replayed.entry, Lsn::new(replayed.segment, 1));
    }
    live.restore_orphans(changes.orphans);
}

/// Sets the links of a table in memory to the segments before it.
fn link(shared: &Shared, fold: &Fold<'_>, number: u32) -> Result<()> {
    let Some(table) = shared.state().live.table(number).cloned() else { return Ok(()) };
    let mut links = Vec::new();
    for session in table.sessions() {
        let dense = session.part().dense;
        let last = fold.known(dense)?.map_or(0, |entry| entry.last_segment);
        if last != session.part().prev_segment {
            links.push((dense, last));
        }
    }
    drop(table);
    if let Some(table) = shared.state().live.table_mut(number) {
        links.into_iter().for_each(|(dense, last)| table.set_prev(dense, last));
    }
    Ok(())
}

impl Shared {
    /// Before anything else can look: the chain ends before a broken run.
    fn shorten(&self, range: RunRange) {
        tracing::warn!(from = %range.from, to = %range.to, "a directory run is damaged; replaying the segments");
        let mut state = self.state();
        state.live.directory = Arc::new(state.live.directory.before(range));
    }

    /// Takes a broken run out of the chain that `directory` was, and brings back from the segments what it and the
    /// runs behind it knew.
    ///
    /// # Errors
    /// A segment cannot be read for a reason other than damage.
    pub(crate) fn heal(&self, directory: &Arc<Directory>, range: RunRange) -> Result<()> {
        Self::unlocked();
        tracing::warn!(from = %range.from, to = %range.to, "a directory run is damaged; replaying the segments");
        let mut shorter = Arc::new(directory.before(range));
        let changes = loop {
            match self.between(&shorter, directory.to) {
                Ok(fold) => break fold.into_changes(),
                Err(error) => match broken_run(&error) {
                    Some(range) => shorter = Arc::new(shorter.before(range)),
                    None => return Err(error),
                },
            }
        };
        let mut state = self.state();
        // Another thread was faster: whoever asked asks again.
        if Arc::ptr_eq(&state.live.directory, directory) {
            restore(&mut state.live, changes);
            state.live.directory = shorter;
        }
        drop(state);
        self.ring_indexer();
        Ok(())
    }

    fn between(&self, from: &Arc<Directory>, to: Lsn) -> Result<Fold<'_>> {
        let mut fold = Fold::new(self, Arc::clone(from));
        let segments = Arc::clone(&self.segments.read());
        let numbers = segments.numbers();
        for number in numbers.into_iter().filter(|n| *n > from.to.segment() && *n <= to.segment()) {
            fold.take(number)?;
        }
        Ok(fold)
    }
}
