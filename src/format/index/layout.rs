//! Where the fields of an index file stand: its header, its session entries and its structure entries.

use super::{INDEX_MAGIC, SessionPart, StructureEntry, op_code, session_flag};
use crate::event::{Class, SurfaceOp};
use crate::format::blocks::Layout;

/// The header sector.
pub(crate) mod header {
    crate::format::layout::layout! { 512;
        MAGIC 0 8 "magic";
        VERSION 8 2 "version";
        HEADER_LEN 10 2 "header length";
        REQUIRED 12 4 "required features";
        STORE 16 16 "store id";
        SEGMENT 32 4 "segment number";
        END 36 4 "end of the segment";
        SALT 40 8 "salt";
        CHAIN 48 4 "chain";
        WHY_ENDED 52 1 "ending";
        ZERO_A 53 3 "zero";
        SESSION_COUNT 56 4 "sessions";
        CONTROL_COUNT 60 4 "controls";
        DAMAGE_COUNT 64 4 "damaged ranges";
        ZERO_B 68 4 "zero";
        EVENT_COUNT 72 8 "events";
        STRUCTURE_COUNT 80 8 "structure entries";
        SESSIONS 88 8 "sessions at";
        EVENTS 96 8 "events at";
        STRUCTURE 104 8 "structure at";
        CONTROLS 112 8 "controls at";
        DAMAGE 120 8 "damage at";
        BLOCK_CRCS 128 8 "block CRCs at";
        FILE_LEN 136 8 "file length";
        BLOCK_CRCS_CRC 144 4 "CRC of the block CRCs";
        ZERO_C 148 360 "zero";
        CRC 508 4 "header CRC";
    }
}

/// One entry of the section `sessions`.
pub(crate) mod session {
    crate::format::layout::layout! { 80;
        DENSE 0 8 "dense id";
        FIRST_SEQ 8 8 "first seq";
        BYTES 16 8 "bytes";
        FIRST_TIME 24 8 "first time";
        LAST_TIME 32 8 "last time";
        EVENTS_AT 40 8 "events at";
        STRUCTURE_AT 48 8 "structure at";
        COUNT 56 4 "count";
        STRUCTURE_COUNT 60 4 "structure count";
        PREV_SEGMENT 64 4 "previous segment";
        FLAGS 68 4 "flags";
        ZERO 72 8 "zero";
    }
}

/// One entry of the section `structure`.
pub(crate) mod structure {
    crate::format::layout::layout! { 32;
        SEQ 0 8 "seq";
        START 8 8 "start";
        END 16 8 "end";
        OFFSET 24 4 "offset";
        CLASS 28 1 "class";
        OP 29 1 "operation";
        ZERO 30 2 "zero";
    }
}

pub(crate) const SESSION_LEN: usize = 80;
pub(crate) const STRUCTURE_LEN: usize = 32;

/// What an index file has in common with a directory run.
pub(super) const BLOCKS: Layout = Layout {
    magic: INDEX_MAGIC,
    crcs: header::BLOCK_CRCS,
    length: header::FILE_LEN,
    crcs_crc: header::BLOCK_CRCS_CRC,
    zeros: &[header::ZERO_A, header::ZERO_B, header::ZERO_C],
};

pub(super) fn encode_session(part: &SessionPart) -> [u8; SESSION_LEN] {
    let mut buf = [0; SESSION_LEN];
    session::DENSE.put(&mut buf, &part.dense.to_le_bytes());
    session::FIRST_SEQ.put(&mut buf, &part.first_seq.to_le_bytes());
    session::BYTES.put(&mut buf, &part.bytes.to_le_bytes());
    session::FIRST_TIME.put(&mut buf, &part.first_time.to_le_bytes());
    session::LAST_TIME.put(&mut buf, &part.last_time.to_le_bytes());
    session::EVENTS_AT.put(&mut buf, &part.events_at.to_le_bytes());
    session::STRUCTURE_AT.put(&mut buf, &part.structure_at.to_le_bytes());
    session::COUNT.put(&mut buf, &part.count.to_le_bytes());
    session::STRUCTURE_COUNT.put(&mut buf, &part.structure_count.to_le_bytes());
    session::PREV_SEGMENT.put(&mut buf, &part.prev_segment.to_le_bytes());
    session::FLAGS.put(&mut buf, &part.flags().to_le_bytes());
    buf
}

/// `buf` is [`SESSION_LEN`] long. None for flags that version 1 does not have.
pub(super) fn decode_session(buf: &[u8]) -> Option<SessionPart> {
    let flags = session::FLAGS.u32(buf);
    if flags & !session_flag::KNOWN != 0 || !session::ZERO.is_zero(buf) {
        return None;
    }
    Some(SessionPart {
        dense: session::DENSE.u64(buf),
        first_seq: session::FIRST_SEQ.u64(buf),
        count: session::COUNT.u32(buf),
        bytes: session::BYTES.u64(buf),
        first_time: session::FIRST_TIME.u64(buf).cast_signed(),
        last_time: session::LAST_TIME.u64(buf).cast_signed(),
        structure_count: session::STRUCTURE_COUNT.u32(buf),
        prev_segment: session::PREV_SEGMENT.u32(buf),
        open_turn: flags & session_flag::OPEN_TURN != 0,
        has_turn_boundary: flags & session_flag::TURN_BOUNDARY != 0,
        has_holes: flags & session_flag::HOLES != 0,
        events_at: session::EVENTS_AT.u64(buf),
        structure_at: session::STRUCTURE_AT.u64(buf),
    })
}

pub(super) fn encode_structure(entry: &StructureEntry) -> [u8; STRUCTURE_LEN] {
    let (start, end, op) = match entry.op {
        None => (0, 0, op_code::NONE),
        Some(SurfaceOp::Append) => (0, 0, op_code::APPEND),
        Some(SurfaceOp::Replace { start, end }) => (start, end, op_code::REPLACE),
    };
    let mut buf = [0; STRUCTURE_LEN];
    structure::SEQ.put(&mut buf, &entry.seq.to_le_bytes());
    structure::START.put(&mut buf, &start.to_le_bytes());
    structure::END.put(&mut buf, &end.to_le_bytes());
    structure::OFFSET.put(&mut buf, &entry.offset.to_le_bytes());
    structure::CLASS.put(&mut buf, &[entry.class as u8]);
    structure::OP.put(&mut buf, &[op]);
    buf
}

/// `buf` is [`STRUCTURE_LEN`] long. None for what no writer of version 1 makes.
pub(super) fn decode_structure(buf: &[u8]) -> Option<StructureEntry> {
    let class = Class::from_u8(structure::CLASS.u8(buf)).filter(|&c| c != Class::Chunk)?;
    let (start, end) = (structure::START.u64(buf), structure::END.u64(buf));
    let op = match structure::OP.u8(buf) {
        op_code::NONE if (start, end) == (0, 0) => None,
        op_code::APPEND if (start, end) == (0, 0) => Some(SurfaceOp::Append),
        op_code::REPLACE => Some(SurfaceOp::Replace { start, end }),
        _ => return None,
    };
    if !structure::ZERO.is_zero(buf) {
        return None;
    }
    Some(StructureEntry { seq: structure::SEQ.u64(buf), offset: structure::OFFSET.u32(buf), class, op })
}
