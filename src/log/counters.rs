//! What the log has done since it was opened. Counters inform; none decides anything.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only the log changes.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn swap(&self, value: u64) -> u64 {
        self.0.swap(value, Ordering::Relaxed)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub syncs: Counter,
    pub groups: Counter,
    pub records: Counter,
    pub bytes_written: Counter,
    pub largest_group: Counter,
    pub waits: Counter,
    pub backpressure: Counter,
    pub decoded_records: Counter,
    pub reads: Counter,
    pub bytes_read: Counter,
    pub indexes_built: Counter,
    pub checkpoints: Counter,
    pub durable_group: Counter,
}

impl Counters {
    pub(crate) fn wrote(&self, records: u32, bytes: usize) {
        let records = u64::from(records);
        self.groups.add(1);
        self.records.add(records);
        self.bytes_written.add(bytes as u64);
        self.largest_group.0.fetch_max(records, Ordering::Relaxed);
    }
}
