//! Reading events: single ones by their recorded offset, and runs of them in bounded memory.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::format::lsn::Binding;
use crate::format::meta::EventMeta;
use crate::format::{Lsn, Meta, RecordFault, names, payload, record};
use crate::mutation::{self, Mutation};

use super::places::{Piece, lost_event};
use super::shared::Shared;
use super::types::SessionEntry;

/// First and largest read; a reader that goes on sequentially doubles up to the largest.
const FIRST_READ: usize = 4 << 10;
const LARGEST_READ: usize = 256 << 10;
/// Enough to learn a record's length.
const LEAST_READ: usize = 16;
/// Offsets fetched from an index at a time.
const OFFSETS: u32 = 512;

/// A piece of one segment file.
#[derive(Default)]
pub(crate) struct ReadBuffer {
    segment: u32,
    start: u32,
    bytes: Vec<u8>,
    step: usize,
    terms: Option<Terms>,
}

/// How the records of a segment below a place are read: kept, so that the log's lock is taken once for many of them.
#[derive(Clone, Copy)]
struct Terms {
    segment: u32,
    binding: Binding,
    /// Everything below is in the file.
    written: Lsn,
}

impl ReadBuffer {
    fn slice(&self, at: Lsn) -> Option<&[u8]> {
        if at.segment() != self.segment || self.bytes.is_empty() {
            return None;
        }
        let skip = usize::try_from(at.offset().checked_sub(self.start)?).ok()?;
        self.bytes.get(skip..).filter(|rest| !rest.is_empty())
    }
}

impl Shared {
    /// Loads at least `need` bytes from `at`, unless the file ends before.
    fn load(&self, buffer: &mut ReadBuffer, at: Lsn, need: usize) -> Result<()> {
        Self::unlocked();
        let end = buffer.start.saturating_add(u32::try_from(buffer.bytes.len()).unwrap_or(u32::MAX));
        let near = at.segment() == buffer.segment
            && at.offset() >= buffer.start
            && at.offset() <= end.saturating_add(64 << 10);
        buffer.step = if near { (buffer.step * 2).clamp(FIRST_READ, LARGEST_READ) } else { FIRST_READ };
        let size = need.max(buffer.step);
        let file = self.files.readable(at.segment())?;
        buffer.segment = at.segment();
        buffer.start = at.offset();
        buffer.bytes.resize(size, 0);
        let mut read = file.read_at(&mut buffer.bytes, u64::from(at.offset()));
        let least = need.max(LEAST_READ);
        if read.is_err() && least < size {
            // What cannot be read may lie behind the record: a bad sector costs what is in it, not its neighbours (G3).
            buffer.bytes.truncate(least);
            read = file.read_at(&mut buffer.bytes, u64::from(at.offset()));
        }
        if read.is_err() {
            buffer.bytes.clear();
        }
        let read = read?;
        buffer.bytes.truncate(read);
        self.counters.reads.add(1);
        self.counters.bytes_read.add(read as u64);
        Ok(())
    }

    /// How the record at `at` is read, and its bytes where they may not be in the file yet.
    fn terms(&self, buffer: &mut ReadBuffer, at: Lsn) -> Result<(Terms, Option<Vec<u8>>)> {
        if let Some(terms) = buffer.terms
            && terms.segment == at.segment()
            && at < terms.written
        {
            return Ok((terms, None));
        }
        let binding = self.binding(at.segment())?;
        let state = self.state();
        let written = state.commit.as_ref().map_or(Lsn(u64::MAX), |commit| commit.written());
        let copy = state.commit.as_ref().and_then(|commit| commit.unwritten(at)).map(<[u8]>::to_vec);
        let terms = Terms { segment: at.segment(), binding, written };
        buffer.terms = Some(terms);
        Ok((terms, copy))
    }

    /// Decodes the record at `at` and hands it to `take`.
    pub(crate) fn with_record<T>(
        &self,
        buffer: &mut ReadBuffer,
        at: Lsn,
        take: impl FnOnce(&record::RecordView<'_>) -> Result<T>,
    ) -> Result<T> {
        let (Terms { binding, .. }, copy) = self.terms(buffer, at)?;
        // The checksum is the expensive part: it is taken once, and decoding then believes the bytes.
        let sound = |bytes: &[u8]| record::check_crc(bytes, at, binding.epoch, binding.salt).map(|_| ());
        self.counters.decoded_records.add(1);
        if let Some(bytes) = copy {
            let view = record::decode(&bytes, at, binding.epoch, binding.salt)
                .map_err(|fault| damaged(at, fault))?;
            return take(&view);
        }
        let mut need = 0;
        let mut loaded = 0;
        loop {
            // A buffer may be older than what was written since, so its verdict counts only when freshly loaded.
            let verdict = buffer.slice(at).map(sound);
            match verdict {
                Some(Ok(())) => break,
                Some(Err(RecordFault::Truncated { need: more })) if loaded < 3 => need = more,
                Some(Err(fault)) if loaded > 0 => return Err(damaged(at, fault)),
                None if loaded > 0 => return Err(damaged(at, RecordFault::Truncated { need: 1 })),
                Some(Err(_)) | None => {}
            }
            self.load(buffer, at, need)?;
            loaded += 1;
        }
        let bytes = buffer.slice(at).unwrap_or(&[]);
        let view = record::decode_checked(bytes, at).map_err(|fault| damaged(at, fault))?;
        take(&view)
    }

    /// The event that the index says is at `at`.
    pub(crate) fn read_event(&self, buffer: &mut ReadBuffer, at: Lsn, dense: u64, seq: u64) -> Result<Event> {
        self.with_event(buffer, (at, dense, seq), payload::decode)
    }

    /// What `take` makes of the event that the index says is at a place, with its session number and seq.
    fn with_event<T>(
        &self,
        buffer: &mut ReadBuffer,
        (at, dense, seq): (Lsn, u64, u64),
        take: impl FnOnce(&EventMeta, &[u8]) -> std::result::Result<T, String>,
    ) -> Result<T> {
        self.with_record(buffer, at, |view| match &view.meta {
            Meta::Event(meta)
                if (meta.dense, meta.seq) == (dense, seq) || mutation::is_on(Mutation::AnyRecordCounts) =>
            {
                take(meta, view.payload).map_err(|why| damaged_text(at, &format!("seq {seq}: {why}")))
            }
            _ => Err(damaged_text(at, &format!("another record than seq {seq} of session number {dense}"))),
        })
    }

    /// One event, by its recorded offset.
    pub(crate) fn event(self: &Arc<Self>, entry: &SessionEntry, seq: u64) -> Result<Option<Event>> {
        if seq >= entry.next_seq {
            return Ok(None);
        }
        self.events(entry, seq, seq.saturating_add(1))?.next().transpose()
    }

    /// Single events, `seqs` ascending, at the cost of one look at the lineage: what a surface reads.
    ///
    /// # Errors
    /// The first event that is damaged, missing, or beyond the session's end.
    pub(crate) fn pick(self: &Arc<Self>, entry: &SessionEntry, seqs: &[u64]) -> Result<Vec<Event>> {
        let (Some(first), Some(last)) = (seqs.first(), seqs.last()) else { return Ok(Vec::new()) };
        let mut buffer = ReadBuffer::default();
        let mut events = Vec::with_capacity(seqs.len());
        let mut rest = seqs;
        for span in self.lineage(entry, *first, last.saturating_add(1))? {
            for piece in self.pieces(&span)? {
                let (Piece::Part { to, .. } | Piece::Hole { to, .. }) = &piece;
                let (here, behind) = rest.split_at(rest.partition_point(|seq| seq < to));
                rest = behind;
                match piece {
                    Piece::Part { segment, part, .. } => {
                        for seq in here {
                            let position = part.position(*seq);
                            let position = position.ok_or_else(|| lost_event(segment, part.dense, *seq))?;
                            let end = position.saturating_add(1);
                            let offset = self.offsets_in(segment, &part, position, end)?.first().copied();
                            let offset = offset.filter(|offset| *offset > 0);
                            let offset = offset.ok_or_else(|| lost_event(segment, part.dense, *seq))?;
                            let at = Lsn::new(segment, offset);
                            events.push(self.read_event(&mut buffer, at, part.dense, *seq)?);
                        }
                    }
                    Piece::Hole { error, .. } if !here.is_empty() => return Err(error),
                    Piece::Hole { .. } => {}
                }
            }
        }
        match rest.first() {
            None => Ok(events),
            Some(seq) => Err(Error::new(
                ErrorKind::NotFound,
                format!("there is no event {seq}; session {} has {} events", entry.id, entry.next_seq),
            )),
        }
    }

    /// The events `[from, to)` in seq order.
    pub(crate) fn events(self: &Arc<Self>, entry: &SessionEntry, from: u64, to: u64) -> Result<EventIter> {
        let mut pieces = VecDeque::new();
        for span in self.lineage(entry, from, to)? {
            pieces.extend(self.pieces(&span)?);
        }
        Ok(EventIter {
            shared: Arc::clone(self),
            pieces,
            batch: VecDeque::new(),
            buffer: ReadBuffer::default(),
        })
    }
}

fn damaged(at: Lsn, fault: RecordFault) -> Error {
    damaged_text(at, &fault.to_string())
}

fn damaged_text(at: Lsn, text: &str) -> Error {
    Error::corrupt(names::segment(at.segment()), u64::from(at.offset()), format!("damaged record: {text}"))
}

/// Events in seq order. A damaged or missing one is an error at its place; the next call goes on behind it.
pub(crate) struct EventIter {
    shared: Arc<Shared>,
    pieces: VecDeque<Piece>,
    batch: VecDeque<(Lsn, u64, u64)>,
    buffer: ReadBuffer,
}

impl EventIter {
    fn refill(&mut self) -> Result<bool> {
        while self.batch.is_empty() {
            let Some(piece) = self.pieces.pop_front() else { return Ok(false) };
            match piece {
                Piece::Hole { .. } if mutation::is_on(Mutation::HoleSkipped) => {}
                Piece::Hole { error, .. } => return Err(error),
                Piece::Part { segment, part, from, to } => {
                    let until = to.min(from.saturating_add(u64::from(OFFSETS)));
                    let (Some(first), Some(last)) =
                        (part.position(from), part.position(until.saturating_sub(1)))
                    else {
                        continue;
                    };
                    let dense = part.dense;
                    let offsets = self.shared.offsets_in(segment, &part, first, last.saturating_add(1))?;
                    if until < to {
                        self.pieces.push_front(Piece::Part { segment, part, from: until, to });
                    }
                    let places = (from..until).zip(offsets);
                    self.batch.extend(places.map(|(seq, offset)| (Lsn::new(segment, offset), dense, seq)));
                }
            }
        }
        Ok(true)
    }
}

impl EventIter {
    /// Appends the next event's line to `line`; an event that cannot be read leaves it as it is.
    pub(crate) fn next_line(&mut self, line: &mut String) -> Option<Result<()>> {
        self.next_with(|meta, payload| payload::render_line(meta, payload, line))
    }

    fn next_with<T>(
        &mut self,
        take: impl FnOnce(&EventMeta, &[u8]) -> std::result::Result<T, String>,
    ) -> Option<Result<T>> {
        match self.refill() {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => return Some(Err(error)),
        }
        let (at, dense, seq) = self.batch.pop_front()?;
        if at.offset() == 0 && mutation::is_on(Mutation::HoleSkipped) {
            return self.next_with(take);
        }
        if at.offset() == 0 {
            return Some(Err(lost_event(at.segment(), dense, seq)));
        }
        Some(self.shared.with_event(&mut self.buffer, (at, dense, seq), take))
    }
}

impl Iterator for EventIter {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_with(payload::decode)
    }
}
