//! What passes between the commit state machine and its drivers: disk operations, and what they changed.

use std::sync::Arc;

use crate::format::{ControlSlot, FrameBuilder, Lsn, SegmentHeader, StoreId};

use super::space::Space;

/// One disk operation for the driver.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// Write the bytes of a finished frame at its place.
    Write { at: Lsn, frame: Arc<FrameBuilder> },
    /// Write the header of a prepared segment, sync it, rename it and sync the directory.
    Start { header: SegmentHeader },
    /// Sync the data of a segment file.
    Sync { segment: u32 },
    /// Write a CONTROL slot.
    Control { slot: Box<ControlSlot> },
}

/// What a completed operation changed for those who wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Groups up to this one are written.
    pub written_group: u64,
    /// Groups up to this one are durable; set only when that moved.
    pub durable_group: Option<u64>,
    /// A segment that ended with this operation.
    pub ended: Option<u32>,
}

#[derive(Debug)]
pub(super) enum Item {
    Frame { group: u64, end: Lsn, frame: Arc<FrameBuilder> },
    Start { after: Lsn, header: SegmentHeader },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InFlight {
    Write { group: u64, end: Lsn },
    Start { number: u32 },
    Sync { covers: Lsn, group: u64 },
    Control { covers: Lsn, group: u64 },
}

/// What the machine starts from: the end that recovery left, durable.
#[derive(Debug)]
pub(crate) struct Origin {
    pub store: StoreId,
    pub epoch: u64,
    pub padded: bool,
    pub unflushed_bytes: usize,
    /// First free place of the active segment.
    pub tail: Lsn,
    pub chain: u32,
    pub space: Space,
    pub control: ControlSlot,
    /// The newest index frame of the active segment, 0 for none, and where the next one's records begin.
    pub index_at: u32,
    pub index_from: u32,
}
