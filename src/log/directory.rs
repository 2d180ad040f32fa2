//! The chain of directory runs: the state of all sessions up to an LSN, immutable and mapped (D2).
//!
//! It is derived. A run that is missing or damaged ends the chain before it, and what lies behind is replayed from
//! the segments; it never decides truth. A session that nobody asks for costs no heap.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::format::blocks::FileFault;
use crate::format::directory::{
    DirEntry, ForkRef, RunFile, RunKey, RunRange, choose_chain, entry_flag, id_hash,
};
use crate::format::{Lsn, names};

use super::segments::{Bytes, open_immutable};
use super::shared::Shared;
use super::types::{Fork, Listed, SessionEntry};

/// How often the folder is listed again because a writer merged runs in between.
const LISTINGS: usize = 3;

/// An open run of the chain.
pub(crate) struct Run {
    pub range: RunRange,
    pub file: RunFile<Bytes>,
    /// Length of the file.
    pub bytes: u64,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("range", &self.range).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// A run whose bytes do not hold. Whoever meets it takes it out of the chain and asks again.
#[derive(Debug)]
pub(crate) struct BrokenRun {
    range: RunRange,
    fault: FileFault,
}

impl fmt::Display for BrokenRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", names::run(self.range.from, self.range.to), self.fault)
    }
}

impl std::error::Error for BrokenRun {}

/// The run that an error is about, if it is about one.
pub(crate) fn broken_run(error: &Error) -> Option<RunRange> {
    std::error::Error::source(error)?.downcast_ref::<BrokenRun>().map(|broken| broken.range)
}

impl Run {
    fn checked<T>(&self, answer: Result<T, FileFault>) -> Result<T> {
        let broken = |fault| Error::typed(ErrorKind::Corrupt, BrokenRun { range: self.range, fault });
        answer.map_err(broken)
    }

    /// Checks all of it.
    ///
    /// # Errors
    /// It does not hold.
    pub(crate) fn verify(&self) -> Result<()> {
        self.checked(self.file.verify())
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// The chain covers the log up to here: the end of an ended segment.
    pub to: Lsn,
    /// Oldest first.
    pub runs: Vec<Arc<Run>>,
    /// Runs in the folder that are not of the chain.
    pub strays: Vec<RunRange>,
}

impl Directory {
    /// # Errors
    /// A run of the chain is broken; so for all below.
    pub(crate) fn session(&self, dense: u64) -> Result<Option<SessionEntry>> {
        for run in self.runs.iter().rev() {
            if let Some(entry) = run.checked(run.file.entry(dense))? {
                return Ok(Some(session_entry(entry)));
            }
        }
        Ok(None)
    }

    /// Dense ids that carry `id`, ascending; deleted ones too.
    pub(crate) fn by_id(&self, id: &str) -> Result<Vec<u64>> {
        let hash = id_hash(id);
        let mut found = BTreeSet::new();
        for run in &self.runs {
            for dense in run.checked(run.file.lookup(&hash))? {
                // Ids of one hash may differ; the text decides.
                if run.checked(run.file.entry(dense))?.is_some_and(|entry| &*entry.id == id) {
                    found.insert(dense);
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Sessions whose fork named `parent`, ascending; deleted ones too.
    pub(crate) fn children(&self, parent: u64) -> Result<Vec<u64>> {
        let mut found = BTreeSet::new();
        for run in &self.runs {
            for child in run.checked(run.file.children(parent))? {
                let entry = run.checked(run.file.entry(child))?;
                if entry.and_then(|entry| entry.fork).is_some_and(|fork| fork.parent == parent) {
                    found.insert(child);
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Calls `each` with every session, ascending. Reads ids and flags only.
    pub(crate) fn all(&self, each: &mut dyn FnMut(Listed)) -> Result<()> {
        let mut cursors = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            cursors.push((run, 0u64, run.checked(run.file.flags_at(0))?));
        }
        while let Some(lowest) = cursors.iter().filter_map(|(_, _, next)| next.map(|(dense, _)| dense)).min()
        {
            let mut newest = 0;
            for (run, at, next) in &mut cursors {
                if let Some((dense, flags)) = *next
                    && dense == lowest
                {
                    newest = flags;
                    *at = at.saturating_add(1);
                    *next = run.checked(run.file.flags_at(*at))?;
                }
            }
            let is_visible = newest & (entry_flag::DELETED | entry_flag::STAGED) == 0;
            each(Listed { dense: lowest, is_visible, is_fork: newest & entry_flag::FORK != 0 });
        }
        Ok(())
    }

    /// Above every dense id that the chain knows.
    pub(crate) fn next_dense(&self) -> u64 {
        self.runs.iter().map(|run| run.file.info().next_dense).max().unwrap_or(1).max(1)
    }

    /// The chain without `range` and what follows it.
    pub(crate) fn before(&self, range: RunRange) -> Self {
        let keep = self.runs.iter().take_while(|run| run.range.to <= range.from);
        let runs: Vec<_> = keep.cloned().collect();
        let mut strays = self.strays.clone();
        strays.extend(self.runs.iter().skip(runs.len()).map(|run| run.range));
        Self { to: runs.last().map_or(Lsn::NONE, |run| run.range.to), runs, strays }
    }

    /// The chain with the runs `at` replaced by one over their range; with an empty `at` at its end, one more.
    pub(crate) fn with(&self, at: std::ops::Range<usize>, run: Run) -> Self {
        let mut runs = self.runs.clone();
        let end = at.end.min(runs.len());
        runs.splice(at.start.min(end)..end, [Arc::new(run)]);
        let to = runs.last().map_or(Lsn::NONE, |run| run.range.to);
        let in_chain = |range: &RunRange| runs.iter().any(|run| run.range == *range);
        let mut strays: Vec<_> = self.strays.iter().copied().filter(|range| !in_chain(range)).collect();
        strays.extend(self.runs.iter().map(|run| run.range).filter(|range| !in_chain(range)));
        Self { to, runs, strays }
    }
}

/// Opens the usable chain of runs that end before segment `newest`.
///
/// # Errors
/// None: what cannot be read is left out.
pub(crate) fn open_chain(shared: &Shared, newest: u32) -> Arc<Directory> {
    for _ in 1..LISTINGS {
        let (chain, vanished) = open_listed(shared, newest);
        if !vanished {
            return Arc::new(chain);
        }
    }
    Arc::new(open_listed(shared, newest).0)
}

/// Also whether a run of the list was gone when it was to be opened.
fn open_listed(shared: &Shared, newest: u32) -> (Directory, bool) {
    Shared::unlocked();
    let listed = shared.disk.list(names::DIRECTORY).unwrap_or_else(|error| {
        tracing::warn!(%error, "the directory cannot be listed; the segments are replayed");
        Vec::new()
    });
    let ranges: BTreeSet<RunRange> = listed.iter().filter_map(|name| RunRange::of_name(name)).collect();
    let mut usable = ranges.clone();
    let mut runs: Vec<Arc<Run>> = Vec::new();
    let mut vanished = false;
    'choose: loop {
        let chain = choose_chain(usable.iter().copied());
        for (at, range) in chain.iter().enumerate() {
            if runs.get(at).is_some_and(|run| run.range == *range) {
                continue;
            }
            runs.truncate(at);
            let last = at.saturating_add(1) == chain.len();
            match open_run(shared, *range, newest, last) {
                Ok(run) => runs.push(Arc::new(run)),
                Err(error) => {
                    vanished |= error.is_not_found();
                    tracing::warn!(%error, "a directory run is left out; the segments are replayed");
                    usable.remove(range);
                    continue 'choose;
                }
            }
        }
        runs.truncate(chain.len());
        break;
    }
    let to = runs.last().map_or(Lsn::NONE, |run| run.range.to);
    let strays = ranges.into_iter().filter(|range| !runs.iter().any(|run| run.range == *range)).collect();
    (Directory { to, runs, strays }, vanished)
}

/// Opens one run. It has to end before segment `newest`, and the `last` one of a chain where its segment does.
///
/// # Errors
/// It is missing, does not hold, or is of another state of the log.
pub(crate) fn open_run(shared: &Shared, range: RunRange, newest: u32, last: bool) -> Result<Run> {
    let name = names::run(range.from, range.to);
    if range.to.segment() >= newest || last && !ends_there(shared, range.to) {
        return Err(Error::corrupt(&name, 0, "it belongs to another state of the log"));
    }
    let bytes = open_immutable(shared, &name)?;
    let length = bytes.len() as u64;
    let key = RunKey { store: shared.live_set().store, from: range.from, to: range.to };
    let file = RunFile::open(bytes, &key).map_err(|fault| Error::corrupt(&name, fault.offset(), fault))?;
    Ok(Run { range, file, bytes: length })
}

/// A segment that is lost has no other end than the run's: what the run knows of it is all there is.
fn ends_there(shared: &Shared, to: Lsn) -> bool {
    let segments = Arc::clone(&shared.segments.read());
    segments.facts(shared, to.segment()).map_or(true, |facts| facts.end.end == to.offset())
}

fn session_entry(entry: DirEntry) -> SessionEntry {
    SessionEntry {
        dense: entry.dense,
        id: entry.id,
        header: entry.header_json,
        own_first: entry.own_first,
        next_seq: entry.next_seq,
        bytes: entry.bytes,
        first_time: entry.first_time,
        last_time: entry.last_time,
        open_turn: entry.open_turn,
        fork: entry.fork.map(|fork| Fork { parent: fork.parent, ancestor: fork.ancestor, cut: fork.cut }),
        staged: entry.staged,
        deleted: entry.deleted,
        last_segment: entry.last_segment,
        accepted: Lsn(entry.accepted),
    }
}

/// A session as a run records it. Doubt about it is not recorded: it follows from the damage that LIVE lists.
pub(crate) fn dir_entry(entry: &SessionEntry) -> DirEntry {
    DirEntry {
        dense: entry.dense,
        id: Arc::clone(&entry.id),
        header_json: Arc::clone(&entry.header),
        deleted: entry.deleted,
        staged: entry.staged,
        open_turn: entry.open_turn,
        damaged: false,
        last_segment: entry.last_segment,
        own_first: entry.own_first,
        next_seq: entry.next_seq,
        bytes: entry.bytes,
        first_time: entry.first_time,
        last_time: entry.last_time,
        fork: entry.fork.map(|fork| ForkRef { parent: fork.parent, ancestor: fork.ancestor, cut: fork.cut }),
        damage_from: 0,
        accepted: entry.accepted.0,
    }
}
