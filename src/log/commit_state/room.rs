//! Room for records: in the open group, or behind a rotation to the prepared segment (C1, F3).

use crate::error::{Error, ErrorKind, Result};
use crate::format::{Binding, Ending, FIRST_FRAME, FrameBuilder, Lsn, SegmentHeader, frame_kind};

use super::CommitState;
use crate::log::space::NextSegment;
use crate::log::work::Item;

impl CommitState {
    /// Makes sure that the open group can take records of these lengths, rotating to the prepared segment when
    /// the active one has no room left.
    pub(super) fn make_room(&mut self, lens: &[usize], privileged: bool) -> Result<()> {
        if self.fits(lens, privileged)? { Ok(()) } else { self.rotate() }
    }

    /// True: into the open group. False: after rotating. Otherwise the refusal.
    fn fits(&mut self, lens: &[usize], privileged: bool) -> Result<bool> {
        let need = self.open.start().offset().saturating_add(self.open.len_if(lens));
        if self.space.takes(need, privileged) {
            return Ok(true);
        }
        if self.space.could_take(need) {
            return Err(self.space.refuse(need, "the active segment is being extended"));
        }
        let fresh = FrameBuilder::new(
            Lsn::new(self.space.number.saturating_add(1), FIRST_FRAME),
            0,
            Binding::default(),
            self.padded,
        );
        let need = FIRST_FRAME.saturating_add(fresh.len_if(lens));
        if !self.space.next_takes(need) {
            return Err(self.space.refuse_next(need, "the next segment is being prepared"));
        }
        Ok(false)
    }

    fn rotate(&mut self) -> Result<()> {
        self.seal_open(frame_kind::DATA)?;
        self.seal_open(frame_kind::SEAL)?;
        let end = self.open.start();
        let Some(next) = self.space.take_next() else {
            return Err(Error::new(ErrorKind::Internal, "rotation without a prepared segment"));
        };
        let NextSegment { number, salt, capacity, .. } = next;
        let header = SegmentHeader {
            store: self.store,
            number,
            previous: end.segment(),
            epoch: self.epoch,
            salt,
            previous_end: end.offset(),
            previous_chain: self.chain,
            previous_why: Ending::Sealed,
            next_dense: self.control.next_dense,
            capacity,
            padded: self.padded,
        };
        let (_, crc) = header.encode();
        self.queue.push_back(Item::Start { after: end, header });
        self.chain = crc;
        self.space.enter(next, self.epoch);
        (self.index_at, self.index_from) = (0, FIRST_FRAME);
        let binding = Self::binding_of(self.store, &self.space);
        self.open = FrameBuilder::new(Lsn::new(number, FIRST_FRAME), self.epoch, binding, self.padded);
        Ok(())
    }

    /// An append of `bytes` would go through now.
    ///
    /// # Errors
    /// `Full` when preparing space failed: it is tried again, and the next call tells.
    pub(crate) fn has_room(&mut self, bytes: usize) -> Result<bool> {
        let pending = self.pending_bytes();
        // Callers only know about how long their append is encoded. One that was refused is not told to try again
        // before anything was written.
        let bytes_at_least = bytes.max(self.refused_bytes);
        if pending > 0 && pending.saturating_add(bytes_at_least) > self.unflushed_bytes {
            return Ok(false);
        }
        if self.space.owes() {
            return Ok(false);
        }
        match self.fits(&[bytes], false) {
            Ok(_) => Ok(true),
            Err(error) if error.is_backpressure() => Ok(false),
            Err(error) => Err(error),
        }
    }
}
