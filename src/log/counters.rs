//! What the log has done since it was opened. Counters inform; none decides anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::OpenMode;
use crate::format::names;

use super::report::LogCounters;
use super::shared::Shared;

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

impl Shared {
    /// The counters, with what the files say.
    pub(crate) fn report_counters(&self) -> LogCounters {
        let counters = &self.counters;
        let control = self.state().commit.as_ref().map(|commit| commit.control().counter);
        LogCounters {
            commits: control.unwrap_or_else(|| self.control().counter),
            syncs: counters.syncs.get(),
            groups: counters.groups.get(),
            records: counters.records.get(),
            largest_group: counters.largest_group.get(),
            bytes_written: counters.bytes_written.get(),
            waits: counters.waits.get(),
            backpressure: counters.backpressure.get(),
            decoded_records: counters.decoded_records.get(),
            reads: counters.reads.get(),
            bytes_read: counters.bytes_read.get(),
            indexes_built: counters.indexes_built.get(),
            checkpoints: counters.checkpoints.get(),
            quarantined_bytes: self.quarantined_bytes(),
            used_bytes: self.used_bytes(),
        }
    }

    /// Bytes of segments up to their ends: headers and frames, without prepared space.
    fn used_bytes(&self) -> u64 {
        let segments = Arc::clone(&self.segments.read());
        let ended = segments.numbers().into_iter();
        let ended: u64 =
            ended.filter_map(|n| segments.facts(self, n).ok()).map(|facts| u64::from(facts.end.end)).sum();
        let newest = match self.state().commit.as_ref() {
            Some(commit) => commit.written().offset(),
            None => self.follow.lock().as_ref().map_or(0, |follow| follow.at),
        };
        ended.saturating_add(u64::from(newest))
    }

    fn quarantined_bytes(&self) -> u64 {
        let listed = self.disk.list(names::QUARANTINE).unwrap_or_default();
        let length = |name: &String| {
            let path = format!("{}/{name}", names::QUARANTINE);
            self.disk.open(&path, OpenMode::Read).and_then(|file| file.len()).unwrap_or(0)
        };
        listed.iter().map(length).sum()
    }
}
