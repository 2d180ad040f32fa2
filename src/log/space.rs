//! Prepared space: what of the active segment and of the next one is allocated, and zero-filled unless the log is written
//! in large pieces.
//!
//! Accepted means that a place is reserved, so an append only ever goes into prepared bytes (C1). Part of them
//! is held back: marks (seal, close, continue, witness) always fit, and a ballast lets tombstones and recovery
//! go on when the disk is full (G6).

use crate::error::{Error, ErrorKind, Result};
use crate::format::SegmentHeader;
use crate::mutation::{self, Mutation};

use super::commit_state::backpressure;

/// Kept free at the end of the prepared bytes for marks: four frames without records, each at most a sector.
pub(crate) const MARKS_RESERVE: u32 = 2048;
/// Kept free for records that must go through on a full disk.
const BALLAST: u32 = 64 << 10;
/// Preparation steps: the first, and the largest.
const FIRST_STEP: u32 = 1 << 20;
const LAST_STEP: u32 = 8 << 20;
/// The next segment is prepared once the active one has less than this left.
const NEXT_AHEAD: u32 = 16 << 20;

/// A prepared file that is not a segment yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NextSegment {
    pub number: u32,
    pub salt: u64,
    pub capacity: u32,
    pub prepared_end: u32,
}

/// One step of preparation for the background to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prepare {
    pub number: u32,
    pub from: u32,
    pub to: u32,
    /// The file is to be created under its prepared name, with this capacity.
    pub create: Option<u32>,
    /// It is for writing in large pieces: reserved is enough.
    pub bulk: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Space {
    pub number: u32,
    pub salt: u64,
    /// Epoch in the header of the active segment: record checksums are bound to it.
    pub segment_epoch: u64,
    capacity: u32,
    prepared_end: u32,
    next: Option<NextSegment>,
    segment_bytes: u32,
    /// Largest end that a refused append asked for, in the active and in the next segment.
    wanted: u32,
    wanted_next: u32,
    preparing: bool,
    failure: Option<Error>,
}

impl Space {
    pub(crate) fn new(header: &SegmentHeader, prepared_end: u32, segment_bytes: u32) -> Self {
        Self {
            number: header.number,
            salt: header.salt,
            segment_epoch: header.epoch,
            capacity: header.capacity,
            prepared_end: prepared_end.min(header.capacity),
            next: None,
            segment_bytes,
            wanted: 0,
            wanted_next: 0,
            preparing: false,
            failure: None,
        }
    }

    fn ballast(&self) -> u32 {
        BALLAST.min(self.segment_bytes / 8)
    }

    fn limit(&self, privileged: bool) -> u32 {
        let all = privileged || mutation::is_on(Mutation::NoBallast);
        let held = if all { 0 } else { self.ballast() };
        self.prepared_end.saturating_sub(MARKS_RESERVE).saturating_sub(held)
    }

    /// A frame ending at `end` fits into prepared space of the active segment.
    pub(crate) fn takes(&self, end: u32, privileged: bool) -> bool {
        let most = if mutation::is_on(Mutation::NoReservation) { u32::MAX } else { 0 };
        end <= self.limit(privileged).max(most)
    }

    /// The keeper should prepare more.
    pub(crate) fn is_tight(&self, tail: u32) -> bool {
        !self.preparing
            && (self.prepared_end.saturating_sub(tail) < FIRST_STEP / 2
                || self.capacity.saturating_sub(tail) < NEXT_AHEAD.min(self.segment_bytes / 2)
                    && self.next.is_none())
    }

    pub(crate) fn takes_mark(&self, end: u32) -> bool {
        end <= self.prepared_end
    }

    /// It would fit once the active segment is prepared to its capacity.
    pub(crate) fn could_take(&self, end: u32) -> bool {
        let most = self.capacity.saturating_sub(MARKS_RESERVE).saturating_sub(self.ballast());
        end <= most
    }

    pub(crate) fn next_takes(&self, end: u32) -> bool {
        let held = MARKS_RESERVE.saturating_add(self.ballast());
        self.next.as_ref().is_some_and(|next| end <= next.prepared_end.saturating_sub(held))
    }

    /// Records that `end` was asked for and says why it is not there.
    pub(crate) fn refuse(&mut self, end: u32, why: &str) -> Error {
        let held = MARKS_RESERVE.saturating_add(self.ballast());
        self.wanted = self.wanted.max(end.saturating_add(held));
        self.refusal(why)
    }

    pub(crate) fn refuse_next(&mut self, end: u32, why: &str) -> Error {
        let held = MARKS_RESERVE.saturating_add(self.ballast());
        self.wanted_next = self.wanted_next.max(end.saturating_add(held));
        self.refusal(why)
    }

    fn refusal(&mut self, why: &str) -> Error {
        // A failed preparation answers once; the next refusal means that it is being tried again.
        match self.failure.take() {
            Some(failure) => failure.wrap(
                ErrorKind::Full,
                "no space could be prepared; nothing was accepted, free some and try again",
            ),
            None => backpressure(why),
        }
    }

    /// An append was refused for space that is not prepared yet.
    pub(crate) fn owes(&self) -> bool {
        let next = self.next.as_ref().map_or(0, |next| next.prepared_end);
        self.failure.is_none() && (self.wanted > self.prepared_end || self.wanted_next > next)
    }

    pub(crate) fn take_next(&mut self) -> Option<NextSegment> {
        self.next.take()
    }

    /// The prepared segment becomes the active one.
    pub(crate) fn enter(&mut self, next: NextSegment, epoch: u64) {
        self.number = next.number;
        self.salt = next.salt;
        self.segment_epoch = epoch;
        self.capacity = next.capacity;
        self.prepared_end = next.prepared_end;
        self.wanted = 0;
        self.wanted_next = 0;
    }

    /// The preparation that is due with the log's end at `tail`, at most one at a time. `bulk`: it is written in large
    /// pieces.
    pub(crate) fn prepare(&mut self, tail: u32, bulk: bool) -> Option<Prepare> {
        let job = self.plan(tail, bulk)?;
        if job.create.is_some() {
            // What is zeroed anew must not be entered meanwhile.
            self.next = None;
        }
        self.preparing = true;
        Some(job)
    }

    /// What [`prepare`](Self::prepare) would have done.
    pub(crate) fn plan(&self, tail: u32, bulk: bool) -> Option<Prepare> {
        if self.preparing || self.failure.is_some() {
            return None;
        }
        let step = if tail < 4 * FIRST_STEP && !bulk { FIRST_STEP } else { LAST_STEP };
        let ahead = self.prepared_end.saturating_sub(tail);
        // Who writes in bulk takes as much as may be unflushed before it is looked at again.
        let least = if bulk { step } else { step / 2 };
        let short = ahead < least || self.prepared_end < self.wanted;
        let job = if short && self.prepared_end < self.capacity {
            let to = self.prepared_end.saturating_add(step).max(self.wanted).min(self.capacity);
            let to = page_up(to).min(self.capacity);
            Prepare { number: self.number, from: self.prepared_end, to, create: None, bulk }
        } else if self.capacity.saturating_sub(tail) < NEXT_AHEAD.min(self.segment_bytes / 2)
            || self.wanted_next > 0
        {
            self.prepare_next(step, bulk)?
        } else {
            return None;
        };
        Some(job)
    }

    fn prepare_next(&self, step: u32, bulk: bool) -> Option<Prepare> {
        let number = self.number.checked_add(1)?;
        let Some(next) = &self.next else {
            let capacity = self.segment_bytes.max(page_up(self.wanted_next));
            let first = if bulk { step } else { FIRST_STEP };
            let to = page_up(first.max(self.wanted_next).min(capacity)).min(capacity);
            return Some(Prepare { number, from: 0, to, create: Some(capacity), bulk });
        };
        if next.capacity < self.wanted_next {
            // Too small for what waits: prepared again, larger.
            let capacity = page_up(self.wanted_next);
            return Some(Prepare { number, from: 0, to: capacity, create: Some(capacity), bulk });
        }
        if next.prepared_end < self.wanted_next {
            let to = self.wanted_next.max(next.prepared_end.saturating_add(step)).min(next.capacity);
            let to = page_up(to).min(next.capacity);
            return Some(Prepare { number, from: next.prepared_end, to, create: None, bulk });
        }
        None
    }

    /// Reports a preparation; `salt` is the new segment's.
    pub(crate) fn prepared(&mut self, job: &Prepare, result: Result<()>, salt: u64) {
        self.preparing = false;
        if let Err(error) = result {
            self.failure = Some(error);
            return;
        }
        if let Some(capacity) = job.create {
            self.next = Some(NextSegment { number: job.number, salt, capacity, prepared_end: job.to });
        } else if job.number == self.number {
            self.prepared_end = self.prepared_end.max(job.to);
        } else if let Some(next) = &mut self.next
            && next.number == job.number
        {
            next.prepared_end = next.prepared_end.max(job.to);
        }
    }
}

fn page_up(value: u32) -> u32 {
    value.checked_next_multiple_of(4096).unwrap_or(!4095)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Ending, StoreId};

    fn header(capacity: u32) -> SegmentHeader {
        SegmentHeader {
            store: StoreId([1; 16]),
            number: 1,
            previous: 0,
            epoch: 1,
            salt: 7,
            previous_end: 0,
            previous_chain: 0,
            previous_why: Ending::Sealed,
            next_dense: 1,
            capacity,
            padded: false,
        }
    }

    #[test]
    fn a_next_segment_that_is_made_anew_cannot_be_entered_meanwhile() {
        let (capacity, tail) = (4 << 20, 3 << 20);
        let mut space = Space::new(&header(capacity), capacity, capacity);
        let first = space.prepare(tail, false).unwrap();
        space.prepared(&first, Ok(()), 8);
        assert!(space.next_takes(1000));
        space.refuse_next(8 << 20, "larger than that");
        let larger = space.prepare(tail, false).unwrap();
        assert!(larger.create.is_some_and(|capacity| capacity > 8 << 20), "{larger:?}");
        assert!(!space.next_takes(1000), "its file is being replaced");
        assert!(space.take_next().is_none());
        space.prepared(&larger, Ok(()), 9);
        assert!(space.next_takes(8 << 20));
    }
}
