//! Which of the runs that are there make up the directory.

use crate::format::lsn::Lsn;
use crate::format::names;

/// The range of a run: behind `from`, up to `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunRange {
    pub(crate) from: Lsn,
    pub(crate) to: Lsn,
}

impl RunRange {
    /// The range that a file of the folder `directory` is named after.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let (from, to) = names::parse_run(name)?;
        Some(Self { from, to })
    }
}

/// The usable runs, old to new: from the log's beginning on, at each end the run that reaches furthest. A run that does
/// not hold is left out of `ranges` by the caller; what lies behind the last one is replayed.
pub(crate) fn choose_chain(ranges: impl IntoIterator<Item = RunRange>) -> Vec<RunRange> {
    let mut sorted: Vec<RunRange> = ranges.into_iter().filter(|r| r.from < r.to).collect();
    sorted.sort_unstable();
    let mut chain: Vec<RunRange> = Vec::new();
    let mut end = Lsn::NONE;
    // Sorted by start, then end, and each step goes forward: one pass is enough.
    for group in sorted.chunk_by(|a, b| a.from == b.from) {
        if let Some(&longest) = group.last()
            && longest.from == end
        {
            end = longest.to;
            chain.push(longest);
        }
    }
    chain
}
