//! The indexer: the background task that turns an ended segment into its final form: truncated to its end, with an
//! index file, and taken into the directory.
//!
//! One step writes or removes at most one file (T2), oldest segments first. Tables stay in memory until the index file
//! is durable; a crash loses nothing, the next open does it again. It never decides truth and never poisons.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::format::{Ending, names};
use crate::rt::{Step, Task};

use super::create::replace_with;
use super::segments::Index;
use super::shared::Shared;

/// After this long, what failed is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// So many steps are done before a close lets go of the rest: a store that is only ever opened for a moment gets its
/// segments indexed too.
const LAST_STEPS: u32 = 8;

/// See the module. Holds the log weakly: a dropped log ends it.
pub(crate) struct Indexer {
    shared: Weak<Shared>,
    last_steps: u32,
}

impl Indexer {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::downgrade(shared), last_steps: LAST_STEPS }
    }
}

impl Task for Indexer {
    fn step(&mut self) -> Step {
        let Some(shared) = self.shared.upgrade() else { return Step::Done };
        let stopping = shared.state().stopping;
        if stopping {
            self.last_steps = self.last_steps.saturating_sub(1);
        }
        if stopping && self.last_steps == 0 {
            return Step::Done;
        }
        match work(&shared) {
            Ok(true) => Step::Again,
            Ok(false) if stopping => Step::Done,
            Ok(false) => Step::Sleep(None),
            Err(error) => {
                tracing::warn!(%error, "an index or a directory run could not be written; it is tried again later");
                if stopping { Step::Done } else { Step::Sleep(Some(RETRY_AFTER)) }
            }
        }
    }
}

/// Does the one thing that is due; false if nothing is.
fn work(shared: &Shared) -> Result<bool> {
    Shared::unlocked();
    let (doomed, unindexed) = {
        let mut state = shared.state();
        (state.doomed.pop(), state.unindexed.first().copied())
    };
    if let Some(name) = doomed {
        remove(shared, &name);
        return Ok(true);
    }
    if let Some(number) = unindexed {
        match finish(shared, number) {
            Err(error) if !error.is_corruption() && !error.is_not_found() => return Err(error),
            Err(error) => give_up(number, &error),
            Ok(()) => {}
        }
        shared.state().unindexed.retain(|other| *other != number);
        return Ok(true);
    }
    let uncovered = shared.uncovered();
    if !uncovered.is_empty() && shared.write_run(&uncovered)? {
        return Ok(true);
    }
    shared.merge_runs()
}

fn give_up(segment: u32, error: &Error) {
    tracing::warn!(%error, segment, "an ended segment could not be indexed; readers rebuild the index");
}

/// A derived file that stays only takes up space: the next open tries again.
fn remove(shared: &Shared, name: &str) {
    match shared.disk.unlink(name) {
        Err(error) if !error.is_not_found() => {
            tracing::warn!(%error, "a file that nothing needs any more could not be removed");
        }
        _ => {}
    }
}

impl Shared {
    /// An index file is missing or does not hold: the indexer, if there is one, writes it anew.
    pub(crate) fn want_index(&self, number: u32) {
        {
            let mut state = self.state();
            match state.unindexed.binary_search(&number) {
                Ok(_) => return,
                Err(at) => state.unindexed.insert(at, number),
            }
        }
        self.ring_indexer();
    }
}

/// Truncates and indexes one ended segment.
fn finish(shared: &Shared, number: u32) -> Result<()> {
    let segments = Arc::clone(&shared.segments.read());
    let facts = segments.facts(shared, number)?;
    if facts.end.why == Ending::Sealed {
        let file = shared.disk.open(&names::segment(number), crate::disk::OpenMode::ReadWrite)?;
        if file.len()? > u64::from(facts.end.end) {
            file.set_len(u64::from(facts.end.end))?;
            file.sync_file()?;
        }
    }
    let mut index = segments.index(shared, number)?;
    if let Index::File(file) = index.as_ref()
        && file.verify().is_err()
    {
        index = segments.replace_index(shared, number)?;
    }
    if let Index::Table(table) = index.as_ref() {
        let (temp, name) = (names::index_temp(number), names::index(number));
        replace_with(shared.disk.as_ref(), &temp, &name, names::SEGMENTS, &mut |sink| {
            table.write_index(facts.end.end, facts.end.chain, facts.end.why, sink)
        })?;
        shared.counters.indexes_built.add(1);
    }
    segments.forget_index(number);
    shared.state().live.drop_table(number);
    Ok(())
}
