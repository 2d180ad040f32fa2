//! The indexer: the background task that turns an ended segment into its final form: truncated to its end, with an
//! index file, and taken into the directory.
//!
//! Its tables stay in memory until the index file is durable; a crash loses nothing, the next open does it again.

use std::sync::{Arc, Weak};

use crate::error::Result;
use crate::format::{Ending, names};
use crate::rt::{Step, Task};

use super::create::replace;
use super::segments::Index;
use super::shared::Shared;

/// See the module. Holds the log weakly: a dropped log ends it.
pub(crate) struct Indexer {
    pub shared: Weak<Shared>,
}

impl Task for Indexer {
    fn step(&mut self) -> Step {
        let Some(shared) = self.shared.upgrade() else { return Step::Done };
        let (next, stopping) = {
            let state = shared.state();
            (state.unindexed.first().copied(), state.stopping)
        };
        if stopping {
            return Step::Done;
        }
        let Some(number) = next else { return Step::Sleep(None) };
        if let Err(error) = finish(&shared, number) {
            tracing::warn!(%error, segment = number, "an ended segment could not be indexed; readers rebuild the index");
        }
        shared.state().unindexed.retain(|other| *other != number);
        Step::Again
    }
}

/// Truncates, indexes and checkpoints one ended segment.
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
    let index = segments.index(shared, number)?;
    if let Index::Table(table) = index.as_ref() {
        let bytes = table.to_index(facts.end.end, facts.end.chain, facts.end.why);
        replace(
            shared.disk.as_ref(),
            &names::index_temp(number),
            &names::index(number),
            names::SEGMENTS,
            &bytes,
        )?;
        shared.counters.indexes_built.add(1);
    }
    segments.forget_index(number);
    shared.state().live.drop_table(number);
    Ok(())
}
