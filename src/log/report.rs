//! What opening a store found and did.

use std::path::PathBuf;

/// Bytes that recovery cut from the end of the log because they were torn.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The segment file, relative to the store.
    pub file: PathBuf,
    /// First byte that was cut.
    pub offset: u64,
    /// How many bytes were cut.
    pub length: u64,
    /// Where they are kept, relative to the store; `None` where they were left in place for want of space or because
    /// they cannot be read, or where the store was opened for reading and nothing was cut.
    pub kept_in: Option<PathBuf>,
    /// The cut bytes begin with a whole frame header, so if the device lost whole sectors of the last group in a
    /// power cut they may have been acknowledged.
    pub may_have_been_acknowledged: bool,
}

/// Acknowledged bytes that are damaged or missing.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The file, relative to the store.
    pub file: PathBuf,
    /// First damaged byte.
    pub offset: u64,
    /// How many bytes are affected; 0 where unknown.
    pub length: u64,
    /// What is wrong with them.
    pub message: String,
}

impl Loss {
    /// Whether another one is the same damage further on.
    pub(crate) fn goes_on_in(&self, next: &Self) -> bool {
        self.length > 0
            && self.offset.checked_add(self.length) == Some(next.offset)
            && self.file == next.file
            && self.message == next.message
    }
}

/// What opening found, and what it did about it.
#[non_exhaustive]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The store was created by this call.
    pub created: bool,
    /// The last writer closed it, and nothing was out of order.
    pub clean: bool,
    /// Torn bytes at the end of the log.
    pub cut: Vec<Cut>,
    /// Damage, known before or found now.
    pub losses: Vec<Loss>,
    /// CONTROL was missing or damaged and was rebuilt.
    pub control_rebuilt: bool,
    /// Bytes of the log that were read to open it.
    pub scanned_bytes: u64,
    /// The writer's epoch; 0 for readers.
    pub epoch: u64,
    /// Other things worth a word, such as leftovers.
    pub notes: Vec<String>,
}

/// Something that verification found.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind: `damage`, `missing`, `leftover`, `torn-tail`, `quarantine`, `index`, `directory`, `control`, …
    pub kind: &'static str,
    /// A note does not make a store unsound; a finding does.
    pub note: bool,
    /// The file, relative to the store.
    pub file: Option<PathBuf>,
    /// Where in the file.
    pub offset: Option<u64>,
    /// How many bytes.
    pub length: Option<u64>,
    /// The session concerned, where it is known.
    pub session: Option<String>,
    /// First seq concerned.
    pub from_seq: Option<u64>,
    /// Last seq concerned.
    pub to_seq: Option<u64>,
    /// What is wrong, in words.
    pub message: String,
}

/// What verification read.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerifySummary {
    /// Segments read.
    pub segments: u64,
    /// Frames read.
    pub frames: u64,
    /// Events decoded.
    pub events: u64,
    /// Sessions checked.
    pub sessions: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Findings that are no notes.
    pub findings: u64,
}

/// What a backup copied.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// Files written.
    pub files: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// What a log has done since it was opened.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogCounters {
    /// Syncs that made something of the log durable since the store was created, by any process: the number in
    /// CONTROL. A store that is open for reading sees those of a live writer as of its last refresh.
    pub commits: u64,
    /// Calls of `fdatasync` for the log by this process.
    pub syncs: u64,
    /// Groups (frames) written.
    pub groups: u64,
    /// Records written.
    pub records: u64,
    /// Records of the largest group.
    pub largest_group: u64,
    /// Bytes of frames written.
    pub bytes_written: u64,
    /// Flushes that waited for another thread's commit.
    pub waits: u64,
    /// Appends refused for want of room.
    pub backpressure: u64,
    /// Records decoded.
    pub decoded_records: u64,
    /// Reads of segment files.
    pub reads: u64,
    /// Bytes read from segment files.
    pub bytes_read: u64,
    /// Indexes built.
    pub indexes_built: u64,
    /// Directory runs written.
    pub checkpoints: u64,
    /// Bytes that opening moved to quarantine.
    pub quarantined_bytes: u64,
    /// Used bytes of segment files: headers and frames, without prepared space.
    pub used_bytes: u64,
}
