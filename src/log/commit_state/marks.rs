//! Frames that the log writes for itself: marks, which close a segment's epoch or vouch for what is durable (E1), and
//! index frames, so that an open replays only what is behind the last one (D1).

use crate::error::Result;
use crate::format::meta::{IndexPartMeta, Meta};
use crate::format::{Lsn, RecordDraft, frame_kind};
use crate::mutation::{self, Mutation};

use super::{CommitState, backpressure};
use crate::log::space::MARKS_RESERVE;

/// An index frame is due after so many bytes of the segment.
pub(crate) const INDEX_EVERY: u32 = 4 << 20;
/// Where there was no room for one, it is tried again after so many.
const INDEX_RETRY: u32 = 256 << 10;

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
            && !mutation::is_on(Mutation::NoWitnessFrame)
            && self.queue.is_empty()
            && self.open.is_empty()
            && self.durable >= self.last_data_end
            && self.promised < self.last_data_end
            && self.space.takes(self.tail().offset().saturating_add(2 * MARKS_RESERVE), false)
    }

    /// A frame promises all that carries records.
    #[cfg(test)]
    pub(crate) fn is_witnessed(&self) -> bool {
        self.promised >= self.last_data_end
    }

    /// An index frame should follow what was accepted so far.
    pub(crate) fn index_due(&self) -> bool {
        self.fault.is_none() && self.tail().offset().saturating_sub(self.index_from) >= INDEX_EVERY
    }

    /// Queues an index frame that carries `part`: what the segment got since the one before. False where there is no
    /// room for it.
    pub(crate) fn push_index(&mut self, part: Vec<u8>) -> Result<bool> {
        self.seal_open(frame_kind::DATA)?;
        let meta = Meta::IndexPart(IndexPartMeta { previous: self.index_at });
        let record = RecordDraft::new(part).seal(&meta);
        let start = self.open.start();
        let need = start.offset().saturating_add(self.open.len_if(&[record.stored_len()]));
        if !self.space.takes(need, false) {
            self.index_from = self.index_from.saturating_add(INDEX_RETRY);
            return Ok(false);
        }
        self.open.push(&record);
        self.seal_open(frame_kind::INDEX)?;
        let end = self.open.start();
        (self.index_at, self.index_from) = (start.offset(), end.offset());
        self.index_frames.push_back((start, end));
        Ok(true)
    }

    /// CONTROL names the newest index frame that is durable as the slot is written.
    pub(super) fn name_index_frames(&mut self) {
        while let Some((start, end)) = self.index_frames.front()
            && *end <= self.synced
        {
            self.control.last_index = *start;
            self.index_frames.pop_front();
        }
    }
}
