//! Makes the checksums of damaged bytes right, as an adversary would or as a bug in a writer might: the decoders behind
//! the checksums must bear any bytes (G7).
//!
//! Everything is bound to one store, salt and epoch, so that pieces of different origin fit together.

use crate::format::blocks::{self, common};
use crate::format::checksum::{RecordsCrc, crc, frame_header_crc, record_mix, table_crc};
use crate::format::constants::{
    FRAME_CRC_AT, FRAME_HEADER_LEN, FRAME_MAGIC, PAD_BYTE, RECORD_CRC_LEN, SECTOR, SEGMENT_MAGIC,
};
use crate::format::frame::fields;
use crate::format::layout::Field;
use crate::format::lsn::{Binding, Lsn, StoreId};
use crate::format::{FIRST_FRAME, SegmentHeader, directory, index, segment_header, varint};

/// The segment that loose frames and records stand in.
pub(super) const SEGMENT: u32 = 1;
/// What they are bound to.
pub(super) const BINDING: Binding =
    Binding { store: StoreId([0x5A; 16]), salt: 0x0123_4567_89AB_CDEF, epoch: 3 };

/// Which checksums are made right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mend(pub(super) u8);

impl Mend {
    fn file_header(self) -> bool {
        self.0 & 1 != 0
    }

    fn frames(self) -> bool {
        self.0 & 2 != 0
    }

    fn records(self) -> bool {
        self.0 & 4 != 0
    }

    fn tables(self) -> bool {
        self.0 & 8 != 0
    }
}

/// Mends a segment file: its header and the frames that follow each other from its front.
pub(super) fn segment(bytes: &mut [u8], mend: Mend) {
    if mend.file_header() && bytes.len() >= SECTOR {
        segment_header::fields::MAGIC.put(bytes, &SEGMENT_MAGIC);
        let sum = crc(bytes.get(..segment_header::fields::CRC.at).unwrap_or_default());
        segment_header::fields::CRC.put(bytes, &sum.to_le_bytes());
    }
    let Ok((header, mut chain)) = SegmentHeader::decode(bytes) else { return };
    let (mut at, mut epoch) = (FIRST_FRAME as usize, header.epoch);
    while let Some(rest) = bytes.get_mut(at..) {
        let Some(lsn) = Lsn::new(header.number, 0).advance(at) else { return };
        let Some(next) = frame(rest, lsn, &header.binding(), (chain, epoch), mend) else { return };
        (at, chain, epoch) = (at + next.len, next.crc, next.epoch);
    }
}

/// A frame that was walked over.
pub(super) struct Walked {
    pub(super) len: usize,
    pub(super) crc: u32,
    pub(super) epoch: u64,
}

/// Mends the frame at the front of `bytes`, which follows one with `(chain, epoch)`. `None` where no frame fits.
pub(super) fn frame(
    bytes: &mut [u8],
    at: Lsn,
    binding: &Binding,
    (chain, epoch): (u32, u64),
    mend: Mend,
) -> Option<Walked> {
    let front = bytes.get(..FRAME_HEADER_LEN)?;
    if fields::MAGIC.get(front) != FRAME_MAGIC {
        return None;
    }
    let header_len = usize::from(fields::HEADER_LEN.u8(front)) * 8;
    let number = |field: Field| usize::try_from(field.u32(front)).ok();
    let (body, table) = (number(fields::BODY_LEN)?, number(fields::TABLE_LEN)?);
    let records_end = header_len.checked_add(body.checked_sub(table)?)?;
    let table_end = header_len.checked_add(body)?;
    let len = table_end.checked_add(usize::from(fields::PAD_LEN.u16(front)))?;
    if header_len < FRAME_HEADER_LEN || len > bytes.len() {
        return None;
    }
    let whole = bytes.get_mut(..len)?;
    if mend.records() {
        let sum = records(whole, header_len, records_end, table_end, at, binding);
        fields::RECORDS_CRC.put(whole, &sum.to_le_bytes());
    }
    if mend.tables() {
        whole.get_mut(table_end..)?.fill(PAD_BYTE);
        let sum = table_crc(whole.get(records_end..)?, &[], binding.salt, at);
        fields::TABLE_CRC.put(whole, &sum.to_le_bytes());
    }
    if mend.frames() {
        fields::LSN.put(whole, &at.0.to_le_bytes());
        fields::CHAIN.put(whole, &chain.to_le_bytes());
        let own = fields::EPOCH.u64(whole).max(epoch);
        fields::EPOCH.put(whole, &own.to_le_bytes());
        let sum =
            frame_header_crc(whole.get(..FRAME_CRC_AT)?, whole.get(FRAME_HEADER_LEN..header_len)?, binding);
        fields::CRC.put(whole, &sum.to_le_bytes());
    }
    Some(Walked { len, crc: fields::CRC.u32(whole), epoch: fields::EPOCH.u64(whole) })
}

/// Mends the records of a frame, found by its table; gives what covers their checksums.
fn records(frame: &mut [u8], from: usize, to: usize, table_end: usize, at: Lsn, binding: &Binding) -> u32 {
    let (mut entry, mut place, mut sum) = (to, from, RecordsCrc::default());
    while let Ok((len, used)) = varint::get(frame.get(entry..table_end).unwrap_or_default()) {
        entry += used;
        let end = usize::try_from(len).ok().and_then(|len| place.checked_add(len)).filter(|end| *end <= to);
        let Some((end, lsn)) = end.zip(at.advance(place)) else { break };
        let Some(bytes) = frame.get_mut(place..end) else { break };
        if let Some(stored) = record(bytes, lsn, binding) {
            sum.add(stored);
        }
        place = end;
    }
    sum.finish()
}

/// Mends the record that is all of `bytes`: its length field, where there is room for the right one, and its checksum.
pub(super) fn record(bytes: &mut [u8], lsn: Lsn, binding: &Binding) -> Option<[u8; RECORD_CRC_LEN]> {
    let prefix = (1..=4usize).find(|prefix| {
        bytes.len().checked_sub(prefix + RECORD_CRC_LEN).is_some_and(|len| varint::len(len as u64) == *prefix)
    })?;
    let len = bytes.len().checked_sub(prefix + RECORD_CRC_LEN)?;
    let mut spelled = Vec::new();
    varint::put(&mut spelled, len as u64);
    bytes.get_mut(..prefix)?.copy_from_slice(&spelled);
    let mut covered = bytes.get(prefix + RECORD_CRC_LEN..)?.to_vec();
    covered.extend_from_slice(&u32::try_from(len).ok()?.to_le_bytes());
    let stored = (crc(&covered) ^ record_mix(lsn, binding.epoch, binding.salt)).to_le_bytes();
    bytes.get_mut(prefix..prefix + RECORD_CRC_LEN)?.copy_from_slice(&stored);
    Some(stored)
}

/// A section of an index or a run: the fields of its count and of its place, and what an entry takes.
struct SectionRule {
    count: Field,
    at: Field,
    each: u64,
}

/// What [`block_file`] must know of a kind of file.
pub(super) struct BlockRules {
    magic: [u8; 8],
    sections: &'static [SectionRule],
    crcs: Field,
    length: Field,
    crcs_crc: Field,
}

macro_rules! sections {
    ($header:path; $($count:ident $at:ident $each:expr;)+) => {{
        use $header as header;
        &[$(SectionRule { count: header::$count, at: header::$at, each: $each as u64 }),+]
    }};
}

/// Index files.
pub(super) const INDEX: BlockRules = BlockRules {
    magic: index::INDEX_MAGIC,
    sections: sections! { index::layout::header;
        SESSION_COUNT SESSIONS index::layout::SESSION_LEN;
        EVENT_COUNT EVENTS 4;
        STRUCTURE_COUNT STRUCTURE index::layout::STRUCTURE_LEN;
        CONTROL_COUNT CONTROLS 4;
        DAMAGE_COUNT DAMAGE 8;
    },
    crcs: index::layout::header::BLOCK_CRCS,
    length: index::layout::header::FILE_LEN,
    crcs_crc: index::layout::header::BLOCK_CRCS_CRC,
};

/// Directory runs.
pub(super) const RUN: BlockRules = BlockRules {
    magic: directory::RUN_MAGIC,
    sections: sections! { directory::layout::header;
        ENTRY_COUNT BY_HASH directory::layout::HASH_LEN;
        ENTRY_COUNT BY_DENSE directory::layout::ENTRY_LEN;
        CHILD_COUNT CHILDREN directory::layout::CHILD_LEN;
        HEAP_LEN HEAP 1;
    },
    crcs: directory::layout::header::BLOCK_CRCS,
    length: directory::layout::header::FILE_LEN,
    crcs_crc: directory::layout::header::BLOCK_CRCS_CRC,
};

/// Mends an index file or a run: places of the sections (as its counts give them), lengths, and every checksum. The
/// file gets as long as its counts say, within `longest`; what is missing is zero.
pub(super) fn block_file(bytes: &mut Vec<u8>, rules: &BlockRules, longest: usize) {
    if bytes.len() < SECTOR {
        bytes.resize(SECTOR, 0);
    }
    common::MAGIC.put(bytes, &rules.magic);
    common::VERSION.put(bytes, &blocks::VERSION.to_le_bytes());
    let mut end = SECTOR as u64;
    for rule in rules.sections {
        end = end.next_multiple_of(8);
        rule.at.put(bytes, &end.to_le_bytes());
        let count = rule.count.get(bytes).iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
        end = end.saturating_add(count.saturating_mul(rule.each)).min(longest.max(SECTOR) as u64);
    }
    let at = usize::try_from(end.next_multiple_of(8)).unwrap_or(SECTOR);
    bytes.resize(at, 0);
    rules.crcs.put(bytes, &(at as u64).to_le_bytes());
    let list: Vec<u8> = bytes
        .get(SECTOR..)
        .unwrap_or_default()
        .chunks(blocks::BLOCK)
        .flat_map(|block| crc(block).to_le_bytes())
        .collect();
    bytes.extend_from_slice(&list);
    let len = bytes.len() as u64;
    rules.length.put(bytes, &len.to_le_bytes());
    rules.crcs_crc.put(bytes, &crc(&list).to_le_bytes());
    sector(bytes);
}

/// Mends the checksum at the end of the first sector: of a segment header, a CONTROL slot, an index or a run.
pub(super) fn sector(bytes: &mut [u8]) {
    let Some(covered) = bytes.get(..common::CRC.at) else { return };
    let sum = crc(covered).to_le_bytes();
    if let Some(field) = bytes.get_mut(common::CRC.at..SECTOR) {
        field.copy_from_slice(&sum);
    }
}

/// Mends the checksum in the last four bytes: of LIVE.
pub(super) fn tail(bytes: &mut [u8]) {
    let Some(at) = bytes.len().checked_sub(4) else { return };
    let Some((covered, field)) = bytes.split_at_mut_checked(at) else { return };
    field.copy_from_slice(&crc(covered).to_le_bytes());
}
