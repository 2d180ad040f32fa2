//! The commit state machine (T1): group building, rotation, draining, preparation and poisoning, without I/O.
//!
//! A driver asks [`CommitState::next_work`] for the one disk operation that is due, carries it out without any
//! lock, and reports back with [`CommitState::done`]. Exactly one operation is in flight (COMMIT: K = 1), so the
//! order on disk is write, sync, control, publish. Nothing here blocks, reads a clock or touches a file.
//!
//! Always holds: `durable <= synced <= written <= tail`; everything not yet synced lies in one segment; a group
//! never moves to another segment; after a fault nothing is written, synced or acknowledged any more (G5).

mod marks;
mod room;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::format::{Binding, ControlSlot, FIRST_FRAME, FrameBuilder, Lsn, StoreId, frame_kind};
use crate::mutation::{self, Mutation};

use super::space::{Prepare, Space};
use super::types::Entry;
use super::work::{InFlight, Item, Origin, Progress, Work};

/// Largest group buffer that is kept for the next group.
const KEPT_BUFFER: usize = 2 << 20;

/// This share of the bytes that may be unflushed makes an appender one of bulk.
const BULK_SHARE: usize = 8;

/// See the module.
#[derive(Debug)]
pub(crate) struct CommitState {
    epoch: u64,
    store: StoreId,
    padded: bool,
    unflushed_bytes: usize,
    space: Space,
    control: ControlSlot,
    open: FrameBuilder,
    spare: Option<FrameBuilder>,
    queue: VecDeque<Item>,
    in_flight: Option<InFlight>,
    writing: Option<Arc<FrameBuilder>>,
    chain: u32,
    queued_bytes: usize,
    /// The largest append that was refused for the bound since the last write.
    refused_bytes: usize,
    open_group: u64,
    written_group: u64,
    synced_group: u64,
    durable_group: u64,
    written: Lsn,
    synced: Lsn,
    durable: Lsn,
    /// End of the last frame that carries records: what a witness frame still has to promise.
    last_data_end: Lsn,
    promised: Lsn,
    want_written: Lsn,
    want_durable: Lsn,
    control_due: bool,
    /// Flushes that wait for the open group, and how many waited for the last one: what a leader gathers by.
    joined: u32,
    joined_last: u32,
    fault: Option<Error>,
    closed: bool,
    index_at: u32,
    index_from: u32,
    /// Index frames that CONTROL does not name yet: they are not synced.
    index_frames: VecDeque<(Lsn, Lsn)>,
}

impl CommitState {
    pub(crate) fn new(origin: Origin) -> Self {
        let tail = origin.tail;
        let binding = Self::binding_of(origin.store, &origin.space);
        Self {
            epoch: origin.epoch,
            store: origin.store,
            padded: origin.padded,
            unflushed_bytes: origin.unflushed_bytes,
            space: origin.space,
            control: origin.control,
            open: FrameBuilder::new(tail, origin.epoch, binding, origin.padded),
            spare: None,
            queue: VecDeque::new(),
            in_flight: None,
            writing: None,
            chain: origin.chain,
            queued_bytes: 0,
            refused_bytes: 0,
            open_group: 1,
            written_group: 0,
            synced_group: 0,
            durable_group: 0,
            written: tail,
            synced: tail,
            durable: tail,
            last_data_end: tail,
            promised: tail,
            want_written: tail,
            want_durable: tail,
            control_due: false,
            joined: 0,
            joined_last: 0,
            fault: None,
            closed: false,
            index_at: origin.index_at,
            index_from: origin.index_from.max(FIRST_FRAME),
            index_frames: VecDeque::new(),
        }
    }

    fn binding_of(store: StoreId, space: &Space) -> Binding {
        Binding { store, salt: space.salt, epoch: space.segment_epoch }
    }

    /// Takes one atomic batch into the open group, or refuses it whole. `places` gets a record LSN per entry.
    pub(crate) fn append(
        &mut self,
        entries: &[Entry],
        privileged: bool,
        places: &mut Vec<Lsn>,
    ) -> Result<Lsn> {
        self.check_usable()?;
        let lens: Vec<usize>;
        let one: [usize; 1];
        let lens: &[usize] = match entries {
            [entry] => {
                one = [entry.record.stored_len()];
                &one
            }
            _ => {
                lens = entries.iter().map(|e| e.record.stored_len()).collect();
                &lens
            }
        };
        let bytes: usize = lens.iter().sum();
        let pending = self.pending_bytes();
        if pending > 0 && pending.saturating_add(bytes) > self.unflushed_bytes {
            self.want_written = self.tail();
            self.refused_bytes = self.refused_bytes.max(bytes);
            return Err(backpressure("the bound of unflushed bytes is reached"));
        }
        self.make_room(lens, privileged)?;
        for entry in entries {
            places.push(self.open.push(&entry.record));
        }
        self.last_data_end = self.tail();
        Ok(self.tail())
    }

    /// Finishes the open group as a frame of `kind` and opens the next one behind it. A data group without
    /// records is left alone; marks have none.
    fn seal_open(&mut self, kind: u8) -> Result<()> {
        if kind == frame_kind::DATA && self.open.is_empty() {
            return Ok(());
        }
        if kind == frame_kind::DATA {
            self.joined_last = std::mem::take(&mut self.joined);
        }
        let promise = if mutation::is_on(Mutation::NoPromiseInFrames) { Lsn::NONE } else { self.synced };
        let finished = self.open.finish(kind, promise, self.chain);
        self.chain = finished.crc;
        self.promised = promise;
        let binding = Self::binding_of(self.store, &self.space);
        let next = match self.spare.take() {
            Some(mut spare) => {
                spare.rebind(finished.end, self.epoch, binding, self.padded);
                spare
            }
            None => FrameBuilder::new(finished.end, self.epoch, binding, self.padded),
        };
        let frame = Arc::new(std::mem::replace(&mut self.open, next));
        self.queued_bytes = self.queued_bytes.saturating_add(frame.bytes().len());
        self.queue.push_back(Item::Frame { group: self.open_group, end: finished.end, frame });
        self.open_group = self.open_group.saturating_add(1);
        Ok(())
    }

    /// The operation that is due, if any; the caller must hold the writer token and report with [`Self::done`].
    pub(crate) fn next_work(&mut self) -> Option<Work> {
        let busy = self.in_flight.is_some() && !mutation::is_on(Mutation::TwoInFlight);
        if self.fault.is_some() || busy {
            return None;
        }
        if self.control_due || self.synced > self.durable {
            return Some(self.control_work());
        }
        loop {
            match self.queue.front() {
                Some(Item::Frame { group, end, frame }) => {
                    self.in_flight = Some(InFlight::Write { group: *group, end: *end });
                    let (at, frame) = (frame.start(), Arc::clone(frame));
                    self.writing = Some(Arc::clone(&frame));
                    return Some(Work::Write { at, frame });
                }
                Some(Item::Start { after, .. })
                    if self.synced < *after && !mutation::is_on(Mutation::StartBeforeSync) =>
                {
                    return Some(self.sync_work());
                }
                Some(Item::Start { header, .. }) => {
                    self.in_flight = Some(InFlight::Start { number: header.number });
                    return Some(Work::Start { header: *header });
                }
                None => {}
            }
            let wanted = self.want_written.max(self.want_durable);
            if wanted > self.written && !self.open.is_empty() {
                if let Err(error) = self.seal_open(frame_kind::DATA) {
                    self.fail(error);
                    return None;
                }
                continue;
            }
            if self.want_durable > self.synced && self.written > self.synced {
                return Some(self.sync_work());
            }
            return None;
        }
    }

    fn sync_work(&mut self) -> Work {
        self.in_flight = Some(InFlight::Sync { covers: self.written, group: self.written_group });
        Work::Sync { segment: self.written.segment() }
    }

    fn control_work(&mut self) -> Work {
        self.control_due = false;
        self.control.counter = self.control.counter.saturating_add(1);
        if !mutation::is_on(Mutation::NoWatermarkInControl) {
            self.control.durable = self.synced;
        }
        self.control.written = self.written;
        self.name_index_frames();
        let segment = if self.synced.segment() == self.space.number {
            (self.space.number, self.space.salt, self.space.segment_epoch)
        } else {
            (self.control.active, self.control.active_salt, self.control.active_epoch)
        };
        (self.control.active, self.control.active_salt, self.control.active_epoch) = segment;
        self.in_flight = Some(InFlight::Control { covers: self.synced, group: self.synced_group });
        Work::Control { slot: Box::new(self.control) }
    }

    /// Reports what became of the operation that [`Self::next_work`] handed out.
    pub(crate) fn done(&mut self, result: Result<()>) -> Progress {
        let Some(in_flight) = self.in_flight.take() else {
            return Progress::default();
        };
        if let Err(error) = result {
            let error = error.wrap(ErrorKind::Poisoned, "the writer stopped; reopen the store to go on");
            self.fail(error);
            return Progress { written_group: self.written_group, ..Progress::default() };
        }
        let mut progress = Progress::default();
        match in_flight {
            InFlight::Write { group, end } => {
                self.queue.pop_front();
                self.written = end;
                self.written_group = group;
                self.refused_bytes = 0;
                if mutation::is_on(Mutation::AckBeforeSync) {
                    (self.synced, self.synced_group) = (end, group);
                }
                if let Some(frame) = self.writing.take() {
                    self.queued_bytes = self.queued_bytes.saturating_sub(frame.bytes().len());
                    // One giant batch does not keep its buffer for ever.
                    self.spare =
                        Arc::try_unwrap(frame).ok().filter(|frame| frame.bytes().len() <= KEPT_BUFFER);
                }
            }
            InFlight::Start { number } => {
                self.queue.pop_front();
                progress.ended = Some(number.saturating_sub(1));
            }
            InFlight::Sync { covers, group } => {
                self.synced = covers;
                self.synced_group = group;
                if mutation::is_on(Mutation::PromiseAfterSync) {
                    (self.synced, self.synced_group) = (self.tail(), self.open_group);
                }
                if mutation::is_on(Mutation::ControlAfterWake) {
                    (self.durable, self.durable_group, self.control_due) = (covers, group, true);
                    progress.durable_group = Some(group);
                }
            }
            InFlight::Control { covers, group } => {
                self.durable = covers;
                self.durable_group = group;
                progress.durable_group = Some(group);
            }
        }
        progress.written_group = self.written_group;
        progress
    }

    /// Stops the writer for good: nothing is retried and then acknowledged (G5).
    pub(crate) fn fail(&mut self, error: Error) {
        self.in_flight = None;
        if self.fault.is_none() && !mutation::is_on(Mutation::GoOnAfterFailure) {
            self.fault = Some(error);
        }
    }

    /// Asks for everything accepted up to `upto` to be written, and synced if `sync`.
    pub(crate) fn want(&mut self, upto: Lsn, sync: bool) {
        if sync {
            self.want_durable = self.want_durable.max(upto);
        } else {
            self.want_written = self.want_written.max(upto);
        }
    }

    /// Has CONTROL written again although nothing new became durable.
    pub(crate) fn touch_control(&mut self, change: impl FnOnce(&mut ControlSlot)) {
        change(&mut self.control);
        self.control_due = true;
    }

    /// The stored bytes of a record that may not be in the file yet.
    pub(crate) fn unwritten(&self, at: Lsn) -> Option<&[u8]> {
        if at < self.written {
            return None;
        }
        for item in &self.queue {
            if let Item::Frame { end, frame, .. } = item
                && at < *end
                && at >= frame.start()
            {
                return frame.read_record(at);
            }
        }
        self.open.read_record(at)
    }

    pub(crate) fn check_usable(&self) -> Result<()> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        if self.closed {
            return Err(Error::new(ErrorKind::Closed, "the store is closed; open it again"));
        }
        Ok(())
    }

    /// Bytes accepted and not yet written.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.queued_bytes.saturating_add(self.open.records_len())
    }

    pub(crate) fn set_next_dense(&mut self, next_dense: u64) {
        self.control.next_dense = self.control.next_dense.max(next_dense);
    }

    /// Refuses appends from now on.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    pub(crate) fn fault(&self) -> Option<&Error> {
        self.fault.as_ref()
    }

    /// The group that a wait for `upto` has to watch.
    pub(crate) fn group_of(&self, upto: Lsn) -> u64 {
        for item in &self.queue {
            if let Item::Frame { group, end, .. } = item
                && upto <= *end
            {
                return *group;
            }
        }
        if upto <= self.open.start() { self.written_group } else { self.open_group }
    }

    /// A position past everything accepted: a flush up to here covers it.
    pub(crate) fn tail(&self) -> Lsn {
        if self.open.is_empty() {
            self.open.start()
        } else {
            self.open.start().advance(self.open.len_if(&[]) as usize).unwrap_or(Lsn(u64::MAX))
        }
    }

    pub(crate) fn written(&self) -> Lsn {
        self.written
    }

    pub(crate) fn durable(&self) -> Lsn {
        self.durable
    }

    pub(crate) fn has_open_records(&self) -> bool {
        !self.open.is_empty() || !self.queue.is_empty()
    }

    /// One more flush waits for `upto`; it counts if that lies in the open group.
    pub(crate) fn join(&mut self, upto: Lsn) {
        if upto > self.open.start() {
            self.joined = self.joined.saturating_add(1);
        }
    }

    /// A leader should let others join: fewer wait than last time, and the group is small.
    pub(crate) fn gathering(&self, most_bytes: usize) -> bool {
        self.joined_last > 1 && self.joined < self.joined_last && self.open.records_len() < most_bytes
    }

    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// The preparation of space that is due, if any; at most one at a time.
    pub(crate) fn prepare(&mut self) -> Option<Prepare> {
        let (tail, bulk) = (self.tail().offset(), self.is_bulk());
        self.space.prepare(tail, bulk)
    }

    /// Space should be prepared before anything else is written: who appends would have to wait for it.
    pub(crate) fn owes_space(&self) -> bool {
        self.space.plan(self.tail().offset(), self.is_bulk()).is_some()
    }

    /// Much more is appended than a flush now and then: the log is written in large pieces.
    fn is_bulk(&self) -> bool {
        self.pending_bytes() >= self.unflushed_bytes / BULK_SHARE
    }

    pub(crate) fn space_mut(&mut self) -> &mut Space {
        &mut self.space
    }

    pub(crate) fn control(&self) -> &ControlSlot {
        &self.control
    }

    /// The group whose followers should lead on, if there is anything to do.
    pub(crate) fn next_group(&self) -> Option<u64> {
        self.needs_work().then(|| self.group_of(self.tail()))
    }

    /// A flush waits for the open group.
    pub(crate) fn is_awaited(&self) -> bool {
        self.joined > 0
    }

    pub(crate) fn needs_work(&self) -> bool {
        self.fault.is_none()
            && (self.control_due
                || self.synced > self.durable
                || !self.queue.is_empty()
                || self.want_durable.max(self.want_written) > self.written && !self.open.is_empty()
                || self.want_durable > self.synced && self.written > self.synced)
    }
}

pub(crate) fn backpressure(why: &str) -> Error {
    Error::new(ErrorKind::Backpressure, format!("{why}; nothing was accepted, try again when there is room"))
}
