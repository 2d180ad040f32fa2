//! The index of one segment: which sessions it holds, where each event lies, and the surface entries apart (D1).
//!
//! [`SegmentTable`] is the index in memory of the active segment, fed by appends or by the scanner; [`part`] is what an
//! index frame carries of it, every few MiB; [`IndexFile`] is the immutable file beside an ended segment. All three say
//! the same about a session: a run of seqs without a gap, in which an event that damage took is a hole.
//! An index never decides truth: it is checked, and rebuilt from the segment when it does not hold.

mod encode;
mod file;
pub(crate) mod layout;
pub(crate) mod part;
mod session;
mod table;
#[cfg(test)]
pub(crate) mod tests;

use crate::event::{Class, SurfaceOp};
use crate::format::lsn::StoreId;

pub(crate) use file::{IndexFile, index_binding};
pub(crate) use table::{Damaged, SegmentTable, TableEvent};

/// An offset that stands for an event which damage took. No record lies at 0, where the segment header is.
pub(crate) const HOLE: u32 = 0;

/// Magic of an index file.
pub(crate) const INDEX_MAGIC: [u8; 8] = *b"\xFFSLIDX\r\n";

/// A session's flags, in an index file and in an index part.
pub(crate) mod session_flag {
    /// A turn is open after the session's last event here.
    pub(crate) const OPEN_TURN: u32 = 1;
    /// A turn starts or ends somewhere here; without one, the segment before says whether a turn is open.
    pub(crate) const TURN_BOUNDARY: u32 = 2;
    /// Some offsets are holes.
    pub(crate) const HOLES: u32 = 4;
    /// All of version 1.
    pub(crate) const KNOWN: u32 = OPEN_TURN | TURN_BOUNDARY | HOLES;
}

/// How a structure entry says what the event does to the surface.
pub(crate) mod op_code {
    /// Nothing.
    pub(crate) const NONE: u8 = 0;
    /// It appends its node.
    pub(crate) const APPEND: u8 = 1;
    /// It replaces the nodes from start to end.
    pub(crate) const REPLACE: u8 = 2;
}

/// The segment that an index belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentKey {
    pub(crate) store: StoreId,
    pub(crate) segment: u32,
    pub(crate) salt: u64,
}

/// An event that is not a chunk: what repair, surface and turn state are folded from, without reading payloads (S3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StructureEntry {
    pub(crate) seq: u64,
    pub(crate) offset: u32,
    pub(crate) class: Class,
    pub(crate) op: Option<SurfaceOp>,
}

/// What one segment holds of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionPart {
    pub(crate) dense: u64,
    pub(crate) first_seq: u64,
    /// Events from `first_seq` on, holes included.
    pub(crate) count: u32,
    /// Sum of what the log counts as an event's bytes.
    pub(crate) bytes: u64,
    /// Milliseconds of the first and the last event here, in the order of the log.
    pub(crate) first_time: i64,
    pub(crate) last_time: i64,
    pub(crate) structure_count: u32,
    /// The segment before this one that holds the session; 0 = none.
    pub(crate) prev_segment: u32,
    pub(crate) open_turn: bool,
    pub(crate) has_turn_boundary: bool,
    pub(crate) has_holes: bool,
    /// Where its offsets and structure entries start in an index file, as entry numbers; 0 in a table.
    pub(crate) events_at: u64,
    pub(crate) structure_at: u64,
}

impl SessionPart {
    /// The seq behind its last event here.
    pub(crate) fn end_seq(&self) -> u64 {
        self.first_seq.saturating_add(u64::from(self.count))
    }

    /// The place of `seq` among its events here.
    pub(crate) fn position(&self, seq: u64) -> Option<u32> {
        let at = u32::try_from(seq.checked_sub(self.first_seq)?).ok()?;
        (at < self.count).then_some(at)
    }

    fn flags(&self) -> u32 {
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        flag(self.open_turn, session_flag::OPEN_TURN)
            | flag(self.has_turn_boundary, session_flag::TURN_BOUNDARY)
            | flag(self.has_holes, session_flag::HOLES)
    }
}
