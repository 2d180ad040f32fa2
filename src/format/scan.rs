//! Reading frames in order, and looking ahead behind a bad spot (E2). Always: a frame is taken for what stands at its
//! place only after header CRC, place, epoch and chain agree; every record is checked once, by its own CRC. Never: the
//! verdict torn or damaged, which needs the witness; a jump by a length that no CRC vouches for.

use super::checksum::{RecordsCrc, table_crc};
use super::constants::{
    ALIGN, FRAME_HEADER_LEN, FRAME_MAGIC, MAX_FRAME_HEADER_LEN, MIN_RECORD_LEN, PAD_BYTE, SECTOR, frame_kind,
};
use super::frame::{FrameFault, FrameHeader, may_start_at};
use super::lsn::{Binding, Lsn};
use super::record::{self, RecordFault, RecordView};
use super::varint;
use crate::mutation::{self, Mutation};
use std::fmt;
use std::ops::Range;

/// What a frame must agree with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanContext {
    pub(crate) binding: Binding,
    /// Reading in order: the epoch of the frame before. Looking ahead: the lowest that the segment can hold.
    pub(crate) min_epoch: u64,
    /// The highest epoch that anything in the store names.
    pub(crate) max_epoch: u64,
    /// Header CRC of the frame before; `None` where it is not known.
    pub(crate) chain: Option<u32>,
    /// No frame passes this offset: the capacity, the recorded end, or the file's length.
    pub(crate) end_limit: u32,
}

/// What stands at a place where a frame may start.
#[derive(Debug)]
pub(crate) enum FrameStep<'a> {
    /// A frame that belongs here; whether all of it is whole, it says itself.
    Frame(FrameView<'a>),
    /// The window must hold this many bytes from the place on; never more than the limit allows.
    NeedMore(usize),
    /// As many zero bytes as a header is long. What follows them is for the caller to see.
    Zero,
    /// No frame fits before the limit, and what is left there is zero.
    End,
    /// Anything else.
    Bad(FrameFault),
}

/// Reads what stands at `at`, the place of the first byte of `window`.
pub(crate) fn read_frame<'a>(window: &'a [u8], at: Lsn, ctx: &ScanContext) -> FrameStep<'a> {
    let room = usize::try_from(ctx.end_limit.saturating_sub(at.offset())).unwrap_or(usize::MAX);
    if room < FRAME_HEADER_LEN {
        return match window.get(..room) {
            None => FrameStep::NeedMore(room),
            Some(left) if is_zero(left) => FrameStep::End,
            Some(_) => FrameStep::Bad(FrameFault::TooShort { need: FRAME_HEADER_LEN }),
        };
    }
    let Some(front) = window.get(..FRAME_HEADER_LEN) else { return FrameStep::NeedMore(FRAME_HEADER_LEN) };
    if is_zero(front) {
        return FrameStep::Zero;
    }
    let window = window.get(..room).unwrap_or(window);
    let (header, crc) = match FrameHeader::decode(window, &ctx.binding) {
        Ok(found) => found,
        Err(FrameFault::TooShort { need }) if need <= room => return FrameStep::NeedMore(need),
        Err(fault) => return FrameStep::Bad(fault),
    };
    if let Err(fault) = belongs(&header, at, ctx) {
        return FrameStep::Bad(fault);
    }
    let len = usize::try_from(header.frame_len()).unwrap_or(usize::MAX);
    match (window.get(..len), at.advance(len)) {
        (Some(bytes), Some(end)) => FrameStep::Frame(FrameView::check(header, crc, end, bytes, &ctx.binding)),
        _ => FrameStep::NeedMore(len),
    }
}

/// Whether a header whose CRC passed belongs at this place.
fn belongs(header: &FrameHeader, at: Lsn, ctx: &ScanContext) -> Result<(), FrameFault> {
    let found = header.epoch;
    if header.lsn != at && !mutation::is_on(Mutation::IgnoreFramePlace) {
        return Err(FrameFault::WrongPlace { found: header.lsn });
    }
    let any_epoch = mutation::is_on(Mutation::IgnoreEpoch);
    if found < ctx.min_epoch && !any_epoch {
        return Err(FrameFault::StaleEpoch { found });
    }
    if found > ctx.max_epoch && !any_epoch {
        return Err(FrameFault::UnknownEpoch { found });
    }
    if let Some(expected) = ctx.chain {
        if header.chain != expected && !mutation::is_on(Mutation::IgnoreChain) {
            return Err(FrameFault::Chain { expected, found: header.chain });
        }
        if (header.kind == frame_kind::CONTINUE) != (found > ctx.min_epoch) && !any_epoch {
            return Err(FrameFault::EpochMark { found });
        }
    }
    if header.end() > u64::from(ctx.end_limit) {
        return Err(FrameFault::PastEnd { end: header.end() });
    }
    Ok(())
}

/// A frame at its place, its records checked.
#[derive(Debug, Clone)]
pub(crate) struct FrameView<'a> {
    pub(crate) header: FrameHeader,
    /// Its header CRC: the chain field of the next frame.
    pub(crate) crc: u32,
    /// Where the next frame starts.
    pub(crate) end: Lsn,
    /// Table and pad passed their CRC and say what the header says.
    pub(crate) table_ok: bool,
    bytes: &'a [u8],
    spans: Vec<Span>,
}

/// Bytes of one record, or of all records behind a bad one that no table tells apart.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// From the frame's first byte.
    at: u32,
    len: u32,
    ok: bool,
}

/// A record, or several in a row, that cannot be handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordDamage {
    /// Index in the frame of the first record.
    pub(crate) index: u32,
    /// How many records are gone.
    pub(crate) count: u32,
    pub(crate) lsn: Lsn,
    pub(crate) len: u32,
    pub(crate) fault: RecordFault,
}

impl fmt::Display for RecordDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} record(s) of {} bytes at {}: {}", self.count, self.len, self.lsn, self.fault)
    }
}

impl<'a> FrameView<'a> {
    fn check(header: FrameHeader, crc: u32, end: Lsn, bytes: &'a [u8], binding: &Binding) -> Self {
        let records_end = usize::from(header.header_len) + header.records_len() as usize;
        let (front, tail) = bytes.split_at_checked(records_end).unwrap_or((bytes, &[]));
        let (table, pad) = tail.split_at_checked(header.table_len as usize).unwrap_or((tail, &[]));
        let lens = if table_crc(tail, &[], binding.salt, header.lsn) == header.table_crc
            && pad.iter().all(|byte| *byte == PAD_BYTE)
        {
            table_lengths(table, &header)
        } else {
            None
        };
        let table_ok = lens.is_some();
        let walk = Walk { front, header: &header, binding };
        let spans = match lens {
            Some(lens) => walk.by_table(&lens),
            None => walk.by_records(),
        };
        Self { header, crc, end, table_ok, bytes, spans }
    }

    /// Every byte is as it was written. A frame that is not intact is torn and dropped whole, or damaged: see E2.
    pub(crate) fn is_intact(&self) -> bool {
        self.table_ok && self.spans.iter().all(|span| span.ok)
    }

    /// The frame's bytes, header and pad included.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// F8: a sector of the frame was never written, as far as its bytes tell. A frame that is not intact and has none
    /// is damaged, whatever the witness says.
    pub(crate) fn has_zero_sector(&self) -> bool {
        has_zero_sector(self.bytes, self.header.lsn.offset())
    }

    /// The records in order; nothing for a kind that this build passes over.
    pub(crate) fn records(&self) -> impl Iterator<Item = Result<RecordView<'a>, RecordDamage>> + '_ {
        let spans = if self.header.is_known_kind() { self.spans.as_slice() } else { &[] };
        (0u32..).zip(spans).map(|(index, span)| self.record(index, *span))
    }

    /// The batches that lost a member, or may have: whether a bad record was the last of its batch is not known, so the
    /// batch is taken to go on with the next one.
    pub(crate) fn damaged_batches(&self) -> Vec<DamagedBatch> {
        let mut found = Vec::new();
        let mut next = 0u32;
        let mut batch = DamagedBatch { records: 0..0, certain: false };
        let (mut hurt, mut open) = (false, false);
        let mut close = |batch: &mut DamagedBatch, hurt: &mut bool, next: u32| {
            batch.records.end = next;
            let whole = std::mem::replace(batch, DamagedBatch { records: next..next, certain: false });
            if std::mem::take(hurt) {
                found.push(whole);
            }
        };
        for item in self.records() {
            match item {
                Ok(view) => {
                    next += 1;
                    open = view.meta.more();
                    if !open {
                        close(&mut batch, &mut hurt, next);
                    }
                }
                Err(damage) => {
                    batch.certain |= open;
                    (next, hurt) = (next.saturating_add(damage.count), true);
                    open = false;
                }
            }
        }
        close(&mut batch, &mut hurt, next);
        found
    }

    /// Offsets in the segment, first and behind the last, of the parts that are not whole.
    pub(crate) fn bad_ranges(&self) -> Vec<(u32, u32)> {
        let start = self.header.lsn.offset();
        let mut bad: Vec<_> = self
            .spans
            .iter()
            .filter(|span| !span.ok)
            .map(|span| {
                (start.saturating_add(span.at), start.saturating_add(span.at).saturating_add(span.len))
            })
            .collect();
        if !self.table_ok {
            let records_end = u32::from(self.header.header_len).saturating_add(self.header.records_len());
            bad.push((start.saturating_add(records_end), self.end.offset()));
        }
        bad
    }

    fn record(&self, index: u32, span: Span) -> Result<RecordView<'a>, RecordDamage> {
        let lsn = self.header.lsn.advance(span.at as usize).unwrap_or(self.header.lsn);
        // A span that is not ok and ends where the records end, without a table, stands for all that were to come.
        let last = span.at + span.len == self.header.records_len() + u32::from(self.header.header_len);
        let count = if !span.ok && last { self.header.record_count.saturating_sub(index) } else { 1 };
        let damage = |fault| RecordDamage { index, count, lsn, len: span.len, fault };
        let bytes = self.bytes.get(span.at as usize..).and_then(|rest| rest.get(..span.len as usize));
        match bytes {
            Some(bytes) if span.ok => record::decode_checked(bytes, lsn).map_err(damage),
            _ => Err(damage(RecordFault::BadCrc)),
        }
    }
}

/// A batch of a damaged frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DamagedBatch {
    /// Which of the frame's records it may have had.
    pub(crate) records: Range<u32>,
    /// A record before the bad one says that the batch goes on: it did lose a member. Otherwise the bad record may have
    /// stood alone.
    pub(crate) certain: bool,
}

/// The way through a frame's records.
struct Walk<'a> {
    /// Header and records.
    front: &'a [u8],
    header: &'a FrameHeader,
    binding: &'a Binding,
}

impl Walk<'_> {
    /// The lengths are vouched for: one bad record costs itself.
    fn by_table(&self, lens: &[u32]) -> Vec<Span> {
        let mut spans = Vec::with_capacity(lens.len());
        let mut sum = RecordsCrc::default();
        let mut at = u32::from(self.header.header_len);
        for len in lens {
            let bytes = self.front.get(at as usize..).and_then(|rest| rest.get(..*len as usize));
            let found = bytes.map(|bytes| self.check(bytes, at));
            let ok = match found {
                Some(Ok((total, stored))) if total == *len as usize => {
                    sum.add(stored);
                    true
                }
                _ => false,
            };
            spans.push(Span { at, len: *len, ok });
            at = at.saturating_add(*len);
        }
        self.agree(spans, &sum)
    }

    /// No lengths but the records' own, each believed only after its CRC: what follows a bad record is lost.
    fn by_records(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut sum = RecordsCrc::default();
        let mut at = u32::from(self.header.header_len);
        let end = u32::try_from(self.front.len()).unwrap_or(u32::MAX);
        while at < end && spans.len() < self.header.record_count as usize {
            let bytes = self.front.get(at as usize..).unwrap_or_default();
            let Ok((total, stored)) = self.check(bytes, at) else { break };
            let len = u32::try_from(total).unwrap_or(u32::MAX);
            sum.add(stored);
            spans.push(Span { at, len, ok: true });
            at = at.saturating_add(len);
        }
        if at < end {
            spans.push(Span { at, len: end - at, ok: false });
            return spans;
        }
        self.agree(spans, &sum)
    }

    fn check(&self, bytes: &[u8], at: u32) -> Result<(usize, [u8; 4]), RecordFault> {
        let lsn = self.header.lsn.advance(at as usize).ok_or(RecordFault::BadLength)?;
        record::check_crc(bytes, lsn, self.binding.epoch, self.binding.salt)
    }

    /// Records that are all whole are the ones the header speaks of, or none of them is to be trusted.
    fn agree(&self, mut spans: Vec<Span>, sum: &RecordsCrc) -> Vec<Span> {
        let complete = spans.iter().all(|span| span.ok);
        let counted = spans.len() == self.header.record_count as usize;
        if complete && !(counted && sum.finish() == self.header.records_crc) {
            spans.iter_mut().for_each(|span| span.ok = false);
        }
        spans
    }
}

/// The lengths in a table whose CRC passed, if they are what the header says.
fn table_lengths(mut table: &[u8], header: &FrameHeader) -> Option<Vec<u32>> {
    // The header's check bounds the count by the table's length.
    let mut lens = Vec::with_capacity(header.record_count as usize);
    let mut sum = 0u64;
    while !table.is_empty() {
        let (value, used) = varint::get(table).ok()?;
        table = table.get(used..)?;
        let len = u32::try_from(value).ok().filter(|len| *len as usize >= MIN_RECORD_LEN)?;
        sum += u64::from(len);
        lens.push(len);
    }
    let agrees = lens.len() == header.record_count as usize && sum == u64::from(header.records_len());
    agrees.then_some(lens)
}

/// Behind a bad spot: a header that was written for the place where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) lsn: Lsn,
    /// The header, or the fault that names the later format it is of: then the segment must be refused, not cut.
    pub(crate) header: Result<FrameHeader, FrameFault>,
}

/// Bytes that two windows of a look-ahead must share so that no header falls between them.
pub(crate) const LOOKAHEAD_OVERLAP: usize = MAX_FRAME_HEADER_LEN;

/// The first candidate in `window`, whose first byte stands at `base` (E2). The chain is not asked; epochs are. To go on,
/// call again from the end that the candidate's header gives, since nothing inside a frame is looked at.
pub(crate) fn find_candidate(window: &[u8], base: Lsn, ctx: &ScanContext) -> Option<Candidate> {
    let skew = (base.offset() as usize).next_multiple_of(ALIGN) - base.offset() as usize;
    let aligned = window.get(skew..)?;
    for (index, word) in aligned.as_chunks::<ALIGN>().0.iter().enumerate() {
        if !word.starts_with(&FRAME_MAGIC) {
            continue;
        }
        let at = skew + index * ALIGN;
        let lsn = base.advance(at)?;
        let bytes = window.get(at..).unwrap_or_default();
        if let Some(found) = candidate(bytes, lsn, ctx) {
            return Some(found);
        }
    }
    None
}

fn candidate(bytes: &[u8], lsn: Lsn, ctx: &ScanContext) -> Option<Candidate> {
    if lsn.offset() >= ctx.end_limit || !may_start_at(u64::from(lsn.offset())) {
        return None;
    }
    match FrameHeader::decode(bytes, &ctx.binding) {
        Ok((header, _)) => {
            let epochs = ctx.min_epoch..=ctx.max_epoch;
            let here = header.lsn == lsn || mutation::is_on(Mutation::IgnoreFramePlace);
            let here = here && (epochs.contains(&header.epoch) || mutation::is_on(Mutation::IgnoreEpoch));
            here.then_some(Candidate { lsn, header: Ok(header) })
        }
        Err(fault) if fault.is_unsupported() => Some(Candidate { lsn, header: Err(fault) }),
        Err(_) => None,
    }
}

/// Whether one of the sectors that `bytes`, standing at `offset`, reach into holds only zeros of them (F8).
pub(crate) fn has_zero_sector(bytes: &[u8], offset: u32) -> bool {
    let first = SECTOR - offset as usize % SECTOR;
    let (head, rest) = bytes.split_at_checked(first).unwrap_or((bytes, &[]));
    (!head.is_empty() && is_zero(head)) || rest.chunks(SECTOR).any(is_zero)
}

/// Whether all of `bytes` is zero.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<16>();
    words.iter().all(|word| u128::from_ne_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests;
