//! Checkpoints: ended segments written down as directory runs, and runs merged into larger ones (D2).
//!
//! A run always ends where an ended segment ends, and holds what replaying exactly its segments over the chain gives:
//! never the live entries, which are newer. Each file is durable under its name before anything relies on it or
//! anything older goes. What fails is tried again later; nothing but memory and the next open's time depend on it.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::format::Lsn;
use crate::format::blocks::Sink;
use crate::format::directory::{DirEntry, RunFile, RunKey, RunRange, merge, write_run};
use crate::format::names;
use crate::mutation::{self, Mutation};

use super::create::replace_with;
use super::directory::{Directory, Run, broken_run, dir_entry, open_chain, open_run};
use super::fold::Fold;
use super::replay::Changes;
use super::segments::Bytes;
use super::shared::Shared;
use super::survey::Survey;

/// Bounds of one run: more segments, or more sessions, go into the next one.
const MOST_SEGMENTS: usize = 256;
const MOST_SESSIONS: usize = 50_000;
/// Runs of like size are merged when there are this many.
const MERGED: usize = 3;
/// A run that this size would be exceeded by is merged no further: a merge is held in memory.
const MOST_MERGED_BYTES: u64 = 64 << 20;
/// Entries forgotten in one hold of the lock.
const FORGET: usize = 256;

/// Derived files that an earlier writer left and nothing needs.
pub(crate) fn leftovers(shared: &Shared, survey: &Survey, chain: &Directory) -> Vec<String> {
    let mut names: Vec<String> = survey.index_temps.iter().map(|number| names::index_temp(*number)).collect();
    for name in shared.disk.list(names::DIRECTORY).unwrap_or_default() {
        if name.strip_suffix(".tmp").is_some_and(|run| RunRange::of_name(run).is_some()) {
            names.push(format!("{}/{name}", names::DIRECTORY));
        }
    }
    names.extend(covered_strays(chain));
    names
}

/// Runs outside the chain whose range is inside of it.
fn covered_strays(chain: &Directory) -> impl Iterator<Item = String> {
    let inside = chain.strays.iter().filter(|range| range.to <= chain.to);
    inside.map(|range| names::run(range.from, range.to))
}

impl Shared {
    /// The ended segments that the next run is about: behind the chain, in order, with their indexes written.
    pub(crate) fn uncovered(&self) -> Vec<u32> {
        let (to, unindexed) = {
            let state = self.state();
            (state.live.directory.to, state.unindexed.clone())
        };
        let segments = Arc::clone(&self.segments.read());
        let behind = segments.numbers().into_iter().filter(|number| *number > to.segment());
        behind.take_while(|number| !unindexed.contains(number)).take(MOST_SEGMENTS).collect()
    }

    /// Writes the run of the segments `numbers`. False where none of them can be read.
    ///
    /// # Errors
    /// A disk call fails.
    pub(crate) fn write_run(&self, numbers: &[u32]) -> Result<bool> {
        Self::unlocked();
        let (directory, next_dense) = {
            let state = self.state();
            (Arc::clone(&state.live.directory), state.live.next_dense)
        };
        let mut fold = Fold::new(self, Arc::clone(&directory));
        let mut to = None;
        for number in numbers {
            match self.fold_segment(&mut fold, *number) {
                Ok(end) => to = end.or(to),
                Err(error) => return self.heal_or(&directory, error),
            }
            if fold.len() > MOST_SESSIONS {
                break;
            }
        }
        let Some(to) = to else { return Ok(false) };
        if let Some(error) = fold.unread.take() {
            return Err(error);
        }
        let range = RunRange { from: directory.to, to };
        let key = RunKey { store: self.live_set().store, from: range.from, to };
        let count = fold.len();
        let changes = fold.into_changes();
        let run = self.put_run(range, &mut |sink| {
            write_run(&key, next_dense, count, &|take| each_entry(&changes, take), sink)
        })?;
        drop(changes);
        self.counters.checkpoints.add(1);
        let end = directory.runs.len();
        self.publish_directory(&directory, directory.with(end..end, run));
        Ok(true)
    }

    /// Where the segment ends, if it could be folded in.
    fn fold_segment(&self, fold: &mut Fold<'_>, number: u32) -> Result<Option<Lsn>> {
        let segments = Arc::clone(&self.segments.read());
        match segments.facts(self, number) {
            Ok(facts) => Ok(fold.take(number)?.then(|| Lsn::new(number, facts.end.end))),
            Err(error) if error.is_corruption() || error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn heal_or(&self, directory: &Arc<Directory>, error: crate::error::Error) -> Result<bool> {
        match broken_run(&error) {
            Some(range) => self.heal(directory, range).map(|()| true),
            None => Err(error),
        }
    }

    fn put_run(&self, range: RunRange, write: &mut dyn FnMut(Sink<'_>) -> Result<()>) -> Result<Run> {
        let (temp, name) = (names::run_temp(range.from, range.to), names::run(range.from, range.to));
        replace_with(self.disk.as_ref(), &temp, &name, names::DIRECTORY, write)?;
        open_run(self, range, u32::MAX, false)
    }

    /// Makes `new` the directory, if it still is `old`, and forgets what that makes redundant.
    fn publish_directory(&self, old: &Arc<Directory>, new: Directory) {
        let to = new.to;
        let covered = {
            let mut state = self.state();
            if !Arc::ptr_eq(&state.live.directory, old) {
                return;
            }
            if let Some(commit) = state.commit.as_mut() {
                commit.touch_control(|slot| slot.directory_to = to);
                let doomed: Vec<_> =
                    covered_strays(&new).filter(|name| !state.doomed.contains(name)).collect();
                state.doomed.extend(doomed);
            }
            state.live.directory = Arc::new(new);
            state.live.covered(to)
        };
        for some in covered.chunks(FORGET) {
            let mut state = self.state();
            let to = state.live.directory.to;
            some.iter().for_each(|dense| state.live.forget(*dense, to));
        }
        self.ring_keeper();
    }

    /// Merges runs of like size. True if there were any.
    ///
    /// # Errors
    /// A disk call fails.
    pub(crate) fn merge_runs(&self) -> Result<bool> {
        Self::unlocked();
        let directory = Arc::clone(&self.state().live.directory);
        let sizes: Vec<u64> = directory.runs.iter().map(|run| run.bytes).collect();
        let Some(at) = to_merge(&sizes) else { return Ok(false) };
        let runs = directory.runs.get(at.clone()).unwrap_or_default();
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Ok(false) };
        let range = RunRange { from: first.range.from, to: last.range.to };
        let files: Vec<&RunFile<Bytes>> = runs.iter().map(|run| &run.file).collect();
        // No entry is left out: a damaged segment may hold what refers to a deleted session (D6).
        let merged =
            merge(&files, |entry| !(entry.deleted && mutation::is_on(Mutation::TombstoneMergedAway)));
        let bytes = match merged {
            Ok(bytes) => bytes,
            Err(fault) => {
                let broken = runs.iter().find_map(|run| run.verify().err());
                let error = broken.unwrap_or_else(|| {
                    crate::error::Error::corrupt(names::run(range.from, range.to), 0, fault)
                });
                return self.heal_or(&directory, error);
            }
        };
        let run = self.put_run(range, &mut |sink| sink(0, &bytes))?;
        self.publish_directory(&directory, directory.with(at, run));
        Ok(true)
    }

    /// Of a reader: takes up the runs that a writer wrote since, as far as they cover what was read here.
    pub(crate) fn renew_directory(&self) {
        let old = Arc::clone(&self.state().live.directory);
        let at = self.follow.lock().as_ref().map_or(0, |follow| follow.header.number);
        let announced = self.control().directory_to;
        if announced <= old.to || announced.segment() >= at {
            return;
        }
        let new = open_chain(self, at);
        if new.to <= old.to {
            return;
        }
        let to = new.to;
        self.publish_directory(&old, Arc::try_unwrap(new).unwrap_or_default());
        let mut state = self.state();
        for number in state.live.table_numbers() {
            if number <= to.segment() {
                state.live.drop_table(number);
            }
        }
    }
}

/// Every session of a fold, ascending by number.
fn each_entry(changes: &Changes, take: &mut dyn FnMut(&DirEntry)) {
    let mut orphans = changes.orphans.iter().peekable();
    for (dense, replayed) in &changes.entries {
        while let Some(orphan) = orphans.next_if(|orphan| orphan.dense < *dense) {
            take(&dir_entry(&orphan));
        }
        if !(replayed.entry.deleted && mutation::is_on(Mutation::TombstoneNotInRun)) {
            take(&dir_entry(&replayed.entry));
        }
    }
    orphans.for_each(|orphan| take(&dir_entry(&orphan)));
}

/// The newest runs that are alike: each older one is at most twice as large as all newer ones together.
fn to_merge(sizes: &[u64]) -> Option<Range<usize>> {
    let mut start = sizes.len();
    let mut sum = 0u64;
    for size in sizes.iter().rev() {
        let joint = sum.saturating_add(*size);
        if start < sizes.len() && (*size > sum.saturating_mul(2) || joint > MOST_MERGED_BYTES) {
            break;
        }
        sum = joint;
        start = start.saturating_sub(1);
    }
    (sizes.len().saturating_sub(start) >= MERGED).then_some(start..sizes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_like_size_are_merged() {
        assert_eq!(to_merge(&[]), None);
        assert_eq!(to_merge(&[5, 5]), None);
        assert_eq!(to_merge(&[5, 5, 5]), Some(0..3));
        assert_eq!(to_merge(&[100, 5, 5, 5]), Some(1..4), "an old large run is left alone");
        assert_eq!(to_merge(&[100, 20, 1]), None);
        assert_eq!(to_merge(&[MOST_MERGED_BYTES, MOST_MERGED_BYTES, 5, 5]), None, "memory is bounded");
    }

    #[test]
    fn the_number_of_runs_stays_small() {
        let mut sizes: Vec<u64> = Vec::new();
        for _ in 0..10_000 {
            sizes.push(1000);
            while let Some(at) = to_merge(&sizes) {
                let sum = sizes.drain(at).sum();
                sizes.push(sum);
            }
            assert!(sizes.len() < 24, "{sizes:?}");
        }
    }
}
