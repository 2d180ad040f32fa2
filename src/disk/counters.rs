//! How often the disk was called: for reports and tests. No decision depends on these numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// Calls since the disk was opened, over all its files. Failed calls count as well.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Files opened or created.
    pub opens: u64,
    /// Files mapped.
    pub maps: u64,
    /// Reads.
    pub reads: u64,
    /// Bytes that reads returned.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes handed to writes.
    pub written_bytes: u64,
    /// Syncs of files.
    pub syncs: u64,
    /// Syncs of directories.
    pub dir_syncs: u64,
}

/// The counters as they are counted, shared by a disk and its files.
#[derive(Debug, Default)]
pub(crate) struct CounterCells {
    opens: AtomicU64,
    maps: AtomicU64,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    syncs: AtomicU64,
    dir_syncs: AtomicU64,
}

impl CounterCells {
    pub(crate) fn opened(&self) {
        self.opens.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn mapped(&self) {
        self.maps.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn wrote(&self, bytes: u64) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn synced(&self) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn dir_synced(&self) {
        self.dir_syncs.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> DiskCounters {
        let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        DiskCounters {
            opens: get(&self.opens),
            maps: get(&self.maps),
            reads: get(&self.reads),
            read_bytes: get(&self.read_bytes),
            writes: get(&self.writes),
            written_bytes: get(&self.written_bytes),
            syncs: get(&self.syncs),
            dir_syncs: get(&self.dir_syncs),
        }
    }
}
