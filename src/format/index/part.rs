//! The payload of an index frame's record: what the segment got since its previous index frame, in varints.
//!
//! A decoder checks every count against the bytes that are left before it allocates, and that seqs and offsets ascend:
//! what it returns can be added to a table without more checks than that it follows.

use std::fmt;

use super::session::TableSession;
use super::{HOLE, SessionPart, StructureEntry, op_code, session_flag};
use crate::event::{Class, SurfaceOp};
use crate::format::varint::{self, Cursor, Fault};

/// A session of a part. Its structure entries' offsets are those of its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartSession {
    pub(crate) head: SessionPart,
    pub(crate) offsets: Vec<u32>,
    pub(crate) structure: Vec<StructureEntry>,
}

/// A decoded part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct IndexPart {
    /// Ascending by dense id.
    pub(crate) sessions: Vec<PartSession>,
    pub(crate) controls: Vec<u32>,
}

/// Why a part is not used; the segment is scanned instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartFault {
    /// Malformed varints, or counts beyond the bytes.
    Bytes(Fault),
    /// A field that no writer makes.
    Field(&'static str),
    /// It does not follow the parts before it.
    Sequence { dense: u64 },
}

impl fmt::Display for PartFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(fault) => write!(f, "index part: {fault}"),
            Self::Field(what) => write!(f, "index part: {what}"),
            Self::Sequence { dense } => {
                write!(f, "index part: session {dense} does not follow what came before")
            }
        }
    }
}

impl From<Fault> for PartFault {
    fn from(fault: Fault) -> Self {
        Self::Bytes(fault)
    }
}

/// A session takes at least: dense, first seq, count, bytes, two times, flags, previous segment, one offset, the number
/// of structure entries.
const MIN_SESSION: usize = 10;
/// A control record takes at least: 1 length, 4 CRC, 3 metadata, 1 its length. So a part names no more of them than the
/// segment can hold.
const MIN_CONTROL: u32 = 9;
/// A structure entry takes at least: seq, class, op.
const MIN_STRUCTURE: usize = 3;

/// Encodes what `touched`, ascending by dense id, got since the mark.
pub(super) fn encode(touched: &[&TableSession], controls: &[u32]) -> Vec<u8> {
    let offsets: usize = touched.iter().map(|s| s.offsets().len().saturating_sub(s.since().events)).sum();
    let mut out = Vec::with_capacity(offsets * 2 + touched.len() * 32 + controls.len() * 3 + 16);
    varint::put(&mut out, touched.len() as u64);
    let mut previous = 0;
    for session in touched {
        varint::put(&mut out, session.dense.wrapping_sub(previous));
        previous = session.dense;
        encode_session(&mut out, session);
    }
    varint::put(&mut out, controls.len() as u64);
    put_deltas(&mut out, controls);
    out
}

fn encode_session(out: &mut Vec<u8>, session: &TableSession) {
    let (head, since) = (session.part(), session.since());
    let offsets = session.offsets().get(since.events..).unwrap_or_default();
    let first_seq = head.first_seq.saturating_add(since.events as u64);
    let has_holes = offsets.contains(&HOLE);
    let flags = SessionPart { has_turn_boundary: since.turn_boundary, has_holes, ..head }.flags();
    varint::put(out, first_seq);
    varint::put(out, offsets.len() as u64);
    varint::put(out, head.bytes.saturating_sub(since.bytes));
    varint::put(out, varint::zigzag(since.first_time));
    varint::put(out, varint::zigzag(head.last_time));
    varint::put(out, u64::from(flags));
    varint::put(out, u64::from(head.prev_segment));
    put_deltas(out, offsets);
    let structure = session.structure().get(since.structure..).unwrap_or_default();
    varint::put(out, structure.len() as u64);
    let mut seq = first_seq;
    for entry in structure {
        varint::put(out, entry.seq.wrapping_sub(seq));
        seq = entry.seq;
        out.push(entry.class as u8);
        match entry.op {
            None => out.push(op_code::NONE),
            Some(SurfaceOp::Append) => out.push(op_code::APPEND),
            Some(SurfaceOp::Replace { start, end }) => {
                out.push(op_code::REPLACE);
                varint::put(out, start);
                varint::put(out, end);
            }
        }
    }
}

/// Each offset as the difference to the one before (the first to 0); a hole as 0, which no difference is.
fn put_deltas(out: &mut Vec<u8>, offsets: &[u32]) {
    let mut last = 0;
    for &offset in offsets {
        if offset == HOLE {
            out.push(0);
        } else {
            varint::put(out, u64::from(offset.wrapping_sub(last)));
            last = offset;
        }
    }
}

/// Decodes a payload, all of it, wherever it comes from.
pub(crate) fn decode(payload: &[u8]) -> Result<IndexPart, PartFault> {
    let mut sessions = Vec::new();
    let controls = decode_each(payload, u32::MAX, u64::MAX, &mut |session| {
        sessions.push(session);
        Ok(())
    })?;
    Ok(IndexPart { sessions, controls })
}

/// Decodes the payload of the index frame at `at`, session by session, ascending by dense id; gives the controls.
/// `room` is how many events the segment can hold before it beyond those of earlier parts.
pub(super) fn decode_each(
    payload: &[u8],
    at: u32,
    room: u64,
    take: &mut dyn FnMut(PartSession) -> Result<(), PartFault>,
) -> Result<Vec<u32>, PartFault> {
    let mut cursor = Cursor::new(payload);
    let count = cursor.count(MIN_SESSION)?;
    let (mut dense, mut events) = (0u64, 0u64);
    for _ in 0..count {
        let delta = cursor.varint()?;
        if delta == 0 {
            return Err(PartFault::Field("dense ids do not ascend from 1"));
        }
        dense = dense.checked_add(delta).ok_or(PartFault::Field("a dense id beyond 64 bits"))?;
        let session = decode_session(&mut cursor, dense)?;
        events = events.saturating_add(u64::from(session.head.count));
        if events > room || session.offsets.last().is_some_and(|last| *last >= at) {
            return Err(PartFault::Field("more than lies before it"));
        }
        take(session)?;
    }
    let count = cursor.count(1)?;
    let controls = take_deltas(&mut cursor, count)?;
    if controls.last().is_some_and(|last| *last >= at) {
        return Err(PartFault::Field("a control record that does not lie before it"));
    }
    if controls.contains(&HOLE) {
        return Err(PartFault::Field("a control record without a place"));
    }
    if !controls.is_sorted_by(|a, b| b.saturating_sub(*a) >= MIN_CONTROL) {
        return Err(PartFault::Field("control records closer than any are long"));
    }
    if !cursor.is_empty() {
        return Err(PartFault::Field("bytes behind its end"));
    }
    Ok(controls)
}

fn decode_session(cursor: &mut Cursor<'_>, dense: u64) -> Result<PartSession, PartFault> {
    let first_seq = cursor.varint()?;
    let count = cursor.count(1)?;
    let bytes = cursor.varint()?;
    let (first_time, last_time) = (cursor.zigzag()?, cursor.zigzag()?);
    let flags = cursor.varint_u32()?;
    if flags & !session_flag::KNOWN != 0 {
        return Err(PartFault::Field("unknown session flags"));
    }
    let prev_segment = cursor.varint_u32()?;
    if count == 0 || first_seq.checked_add(count as u64).is_none() {
        return Err(PartFault::Field("a session without events, or seqs beyond 64 bits"));
    }
    let offsets = take_deltas(cursor, count)?;
    let has_holes = flags & session_flag::HOLES != 0;
    if has_holes != offsets.contains(&HOLE) || offsets.last() == Some(&HOLE) {
        return Err(PartFault::Field("holes that its flags do not tell, or at its end"));
    }
    let structure = decode_structure(cursor, first_seq, &offsets)?;
    let head = SessionPart {
        dense,
        first_seq,
        count: u32::try_from(count).map_err(|_| Fault::Count(count as u64))?,
        bytes,
        first_time,
        last_time,
        structure_count: u32::try_from(structure.len()).map_err(|_| Fault::Count(structure.len() as u64))?,
        prev_segment,
        open_turn: flags & session_flag::OPEN_TURN != 0,
        has_turn_boundary: flags & session_flag::TURN_BOUNDARY != 0,
        has_holes,
        events_at: 0,
        structure_at: 0,
    };
    Ok(PartSession { head, offsets, structure })
}

fn take_deltas(cursor: &mut Cursor<'_>, count: usize) -> Result<Vec<u32>, PartFault> {
    let mut offsets = Vec::with_capacity(count);
    let mut last = 0u32;
    for _ in 0..count {
        match cursor.varint_u32()? {
            0 => offsets.push(HOLE),
            delta => {
                last = last.checked_add(delta).ok_or(PartFault::Field("an offset beyond 32 bits"))?;
                offsets.push(last);
            }
        }
    }
    Ok(offsets)
}

fn decode_structure(
    cursor: &mut Cursor<'_>,
    first_seq: u64,
    offsets: &[u32],
) -> Result<Vec<StructureEntry>, PartFault> {
    let count = cursor.count(MIN_STRUCTURE)?;
    let mut structure = Vec::with_capacity(count);
    let mut seq = first_seq;
    for i in 0..count {
        let delta = cursor.varint()?;
        if delta == 0 && i > 0 {
            return Err(PartFault::Field("structure entries do not ascend"));
        }
        seq = seq.checked_add(delta).ok_or(PartFault::Field("a structure entry beyond 64 bits"))?;
        let place = usize::try_from(seq - first_seq).ok();
        let offset = place.and_then(|p| offsets.get(p)).copied().filter(|&o| o != HOLE);
        let offset = offset.ok_or(PartFault::Field("a structure entry without its event"))?;
        let class = Class::from_u8(cursor.u8()?).filter(|&c| c != Class::Chunk);
        let class = class.ok_or(PartFault::Field("an unknown class"))?;
        let op = match cursor.u8()? {
            op_code::NONE => None,
            op_code::APPEND => Some(SurfaceOp::Append),
            op_code::REPLACE => Some(SurfaceOp::Replace { start: cursor.varint()?, end: cursor.varint()? }),
            _ => return Err(PartFault::Field("an unknown surface operation")),
        };
        structure.push(StructureEntry { seq, offset, class, op });
    }
    Ok(structure)
}
