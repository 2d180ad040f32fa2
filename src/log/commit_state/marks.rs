//! Marks: frames without records that close a segment's epoch or vouch for what is durable (E1).

use crate::error::Result;
use crate::format::{Lsn, frame_kind};

use super::{CommitState, backpressure};
use crate::log::space::MARKS_RESERVE;

impl CommitState {
    /// Queues a mark (close, continue or witness frame) behind everything accepted, if there is room for it.
    pub(crate) fn push_mark(&mut self, kind: u8) -> Result<Lsn> {
        self.seal_open(frame_kind::DATA)?;
        let need = self.open.start().offset().saturating_add(self.open.len_if(&[]));
        if !self.space.takes_mark(need) {
            return Err(backpressure("no prepared space for a mark"));
        }
        self.seal_open(kind)?;
        Ok(self.open.start())
    }

    /// A witness frame would tell something new: the last frame with records is durable, and no later header
    /// says so (E1).
    pub(crate) fn witness_due(&self) -> bool {
        self.fault.is_none()
            && self.queue.is_empty()
            && self.open.is_empty()
            && self.durable >= self.last_data_end
            && self.promised < self.last_data_end
            && self.space.takes(self.tail().offset().saturating_add(2 * MARKS_RESERVE), false)
    }
}
