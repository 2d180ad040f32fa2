//! What the log and its callers exchange: options, entries, notes, and what is known of a session.

use std::sync::Arc;

use crate::event::{Class, SurfaceOp};
use crate::format::lsn::Lsn;
use crate::format::record::SealedRecord;
use crate::mutation::{self, Mutation};

/// How far an event has to have come before a flush returns. Each step includes the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Durability {
    /// In the memory of this process: lost when the process dies.
    Accepted,
    /// In the operating system's page cache: survives the death of the process, not that of the machine.
    Written,
    /// On the device, by a successful `fdatasync`: survives a power cut.
    #[default]
    Durable,
}

/// Bounds and switches of a log.
#[derive(Debug, Clone)]
pub(crate) struct LogOptions {
    /// Capacity of a segment in bytes.
    pub segment_bytes: u32,
    /// How many bytes may be accepted and not yet written, over all sessions.
    pub unflushed_bytes: usize,
    /// Pads every frame to 4096 bytes.
    pub padded: bool,
    /// Maps index and directory files instead of reading them.
    pub maps: bool,
    /// Lets a writer onto a network file system.
    pub allow_network: bool,
    /// How many segment files may be open at a time.
    pub open_files: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            unflushed_bytes: 8 << 20,
            padded: false,
            maps: true,
            allow_network: false,
            open_files: 16,
        }
    }
}

/// A fork's place: the session named in the call, the one that physically holds the event before the cut, and
/// how many events are inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fork {
    pub parent: u64,
    pub ancestor: u64,
    pub cut: u64,
}

/// One record to append, with what the in-memory index must know of it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub record: SealedRecord,
    pub note: Note,
}

/// What a record means to the index.
#[derive(Debug, Clone)]
pub(crate) enum Note {
    Event { dense: u64, seq: u64, class: Class, op: Option<SurfaceOp>, time_ms: i64 },
    Create { dense: u64, id: Arc<str>, header: Arc<str>, staged: bool },
    Fork { dense: u64, id: Arc<str>, header: Arc<str>, fork: Fork, staged: bool, turn_open: bool },
    Delete { dense: u64 },
    Publish { dense: u64 },
    AcceptLoss { dense: u64, next_seq: u64 },
}

impl Note {
    /// The session that the record is about.
    pub(crate) fn dense(&self) -> u64 {
        match self {
            Self::Event { dense, .. }
            | Self::Create { dense, .. }
            | Self::Fork { dense, .. }
            | Self::Delete { dense }
            | Self::Publish { dense }
            | Self::AcceptLoss { dense, .. } => *dense,
        }
    }
}

/// Where a batch went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Appended {
    /// LSN of the first record.
    pub first: Lsn,
    /// The batch is durable once the log is durable up to here.
    pub end: Lsn,
}

/// What the log knows of a session without reading an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionEntry {
    pub dense: u64,
    pub id: Arc<str>,
    /// The header as the JSON object that was stored.
    pub header: Arc<str>,
    /// First seq that the session holds itself: the cut of a fork, else 0.
    pub own_first: u64,
    pub next_seq: u64,
    /// Stored record bytes of its own events.
    pub bytes: u64,
    pub first_time: Option<i64>,
    pub last_time: Option<i64>,
    pub open_turn: bool,
    pub fork: Option<Fork>,
    pub staged: bool,
    pub deleted: bool,
    /// Newest segment that holds an event of it, 0 for none.
    pub last_segment: u32,
    /// LSN of the newest record that accepted a loss, 0 for none.
    pub accepted: Lsn,
}

impl SessionEntry {
    /// Where the events come from that it does not hold itself, if there are any.
    pub(crate) fn inherits(&self) -> Option<Fork> {
        self.fork.filter(|fork| fork.cut > 0)
    }

    /// Neither deleted nor waiting to be published.
    pub(crate) fn is_visible(&self) -> bool {
        !self.deleted && (!self.staged || mutation::is_on(Mutation::StagedVisible))
    }
}

/// What a list of all sessions has of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listed {
    pub dense: u64,
    pub is_visible: bool,
    pub is_fork: bool,
}

impl Listed {
    pub(crate) fn of(entry: &SessionEntry) -> Self {
        Self { dense: entry.dense, is_visible: entry.is_visible(), is_fork: entry.fork.is_some() }
    }
}

/// An event that is no chunk, as the index records it (S3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Structure {
    pub seq: u64,
    pub class: Class,
    pub op: Option<SurfaceOp>,
}
