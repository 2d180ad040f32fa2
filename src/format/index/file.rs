//! Reading the index file of an ended segment, mapped or owned.
//!
//! Opening checks header, lengths and bindings; every later answer comes from blocks whose CRC was checked. Whatever
//! does not hold is a fault and never a wrong place: the reader then rebuilds the index from the segment.

use std::ops::{Deref, Range};

use super::layout::{
    self, BLOCKS, SESSION_LEN, STRUCTURE_LEN, decode_session, decode_structure, header, session,
};
use super::table::Damaged;
use super::{HOLE, SegmentKey, SessionPart, StructureEntry};
use crate::format::blocks::{BlockFile, FileFault, HEADER_LEN, Section};
use crate::format::constants::FIRST_FRAME;
use crate::format::lsn::StoreId;
use crate::format::segment_header::Ending;

/// What the header says about the segment's end and about the sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexInfo {
    /// Where the segment ends.
    pub(crate) end: u32,
    /// Checksum of its last frame.
    pub(crate) chain: u32,
    pub(crate) why_ended: Ending,
    pub(crate) sessions: u32,
    pub(crate) events: u64,
    pub(crate) structure: u64,
}

/// An open index file.
#[derive(Debug)]
pub(crate) struct IndexFile<B> {
    file: BlockFile<B>,
    info: IndexInfo,
    sessions: Section,
    events: Section,
    structure: Section,
    controls: Section,
    damage: Section,
}

/// Store, segment number and salt that an index file's header names, if that sector is whole: what is left to tell
/// them when the segment's own header is lost.
pub(crate) fn index_binding(bytes: &[u8]) -> Option<(StoreId, u32, u64)> {
    let file = BlockFile::open(bytes, &BLOCKS).ok()?;
    let h = file.header();
    Some((StoreId(header::STORE.array(h)), header::SEGMENT.u32(h), header::SALT.u64(h)))
}

impl<B: Deref<Target = [u8]>> IndexFile<B> {
    /// Opens the index of the segment `key`.
    ///
    /// # Errors
    /// When header, lengths or the list of block CRCs do not hold, or it belongs to another segment.
    pub(crate) fn open(bytes: B, key: &SegmentKey) -> Result<Self, FileFault> {
        let file = BlockFile::open(bytes, &BLOCKS)?;
        let h = file.header();
        check_binding(h, key)?;
        let why_ended = Ending::from_u8(header::WHY_ENDED.u8(h))
            .ok_or(FileFault::Field { offset: header::WHY_ENDED.at as u64, what: "an unknown ending" })?;
        let info = IndexInfo {
            end: header::END.u32(h),
            chain: header::CHAIN.u32(h),
            why_ended,
            sessions: header::SESSION_COUNT.u32(h),
            events: header::EVENT_COUNT.u64(h),
            structure: header::STRUCTURE_COUNT.u64(h),
        };
        let (controls, damage) = (header::CONTROL_COUNT.u32(h), header::DAMAGE_COUNT.u32(h));
        let end = |s: Section| s.at + s.len;
        let sessions = file.section(header::SESSIONS, u64::from(info.sessions), SESSION_LEN, HEADER_LEN)?;
        let events = file.section(header::EVENTS, info.events, 4, end(sessions))?;
        let structure = file.section(header::STRUCTURE, info.structure, STRUCTURE_LEN, end(events))?;
        let controls = file.section(header::CONTROLS, u64::from(controls), 4, end(structure))?;
        let damage = file.section(header::DAMAGE, u64::from(damage), 8, end(controls))?;
        if end(damage).next_multiple_of(8) != file.blocks_end() {
            let offset = header::BLOCK_CRCS.at as u64;
            return Err(FileFault::Field { offset, what: "block checksums away from the last section" });
        }
        Ok(Self { file, info, sessions, events, structure, controls, damage })
    }

    /// What the header says.
    pub(crate) fn info(&self) -> IndexInfo {
        self.info
    }

    /// What the segment holds of session `dense`. O(log sessions).
    pub(crate) fn session(&self, dense: u64) -> Result<Option<SessionPart>, FileFault> {
        let (mut low, mut high) = (0, self.info.sessions);
        while low < high {
            let middle = low + (high - low) / 2;
            let entry = self.file.entry(self.sessions, u64::from(middle), SESSION_LEN)?;
            match session::DENSE.u64(entry).cmp(&dense) {
                std::cmp::Ordering::Equal => return self.session_at(middle).map(Some),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }

    /// Session number `at` in the order of dense ids.
    pub(crate) fn session_at(&self, at: u32) -> Result<SessionPart, FileFault> {
        let part = decode_session(self.file.entry(self.sessions, u64::from(at), SESSION_LEN)?)
            .ok_or(self.bad_session(at, "flags or zeros that no writer makes"))?;
        let ends =
            |from: u64, count: u32, all: u64| from.checked_add(count.into()).is_some_and(|end| end <= all);
        let fits = ends(part.events_at, part.count, self.info.events)
            && ends(part.structure_at, part.structure_count, self.info.structure)
            && part.first_seq.checked_add(part.count.into()).is_some();
        if fits { Ok(part) } else { Err(self.bad_session(at, "its entries lie outside their sections")) }
    }

    /// Every session, ascending by dense id.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = Result<SessionPart, FileFault>> {
        (0..self.info.sessions).map(|at| self.session_at(at))
    }

    /// Where event number `at` of the session lies in the segment; none for a hole.
    pub(crate) fn event_offset(&self, part: &SessionPart, at: u32) -> Result<Option<u32>, FileFault> {
        let next = at.checked_add(1).ok_or(self.beyond(part))?;
        let bytes = self.offset_bytes(part, at..next)?;
        Ok(u32s(bytes).next().filter(|&o| o != HOLE))
    }

    /// The offsets of a range of the session's events, [`HOLE`] where damage took one.
    pub(crate) fn offsets(
        &self,
        part: &SessionPart,
        range: Range<u32>,
    ) -> Result<impl Iterator<Item = u32>, FileFault> {
        Ok(u32s(self.offset_bytes(part, range)?))
    }

    fn offset_bytes(&self, part: &SessionPart, range: Range<u32>) -> Result<&[u8], FileFault> {
        if range.start > range.end || range.end > part.count {
            return Err(self.beyond(part));
        }
        let count = u64::from(range.end - range.start);
        let first = part.events_at.saturating_add(range.start.into());
        self.file.entries(self.events, first, count, 4)
    }

    /// The session's events that are no chunks, in seq order.
    pub(crate) fn structure(
        &self,
        part: &SessionPart,
    ) -> Result<impl DoubleEndedIterator<Item = Result<StructureEntry, FileFault>>, FileFault> {
        let count = u64::from(part.structure_count);
        let bytes = self.file.entries(self.structure, part.structure_at, count, STRUCTURE_LEN)?;
        let offset = self.structure.at as u64;
        let fault = move || FileFault::Field { offset, what: "a structure entry that no writer makes" };
        Ok(bytes.chunks_exact(STRUCTURE_LEN).map(move |entry| decode_structure(entry).ok_or_else(fault)))
    }

    /// Offsets of the records that are neither events nor index parts, ascending.
    pub(crate) fn controls(&self) -> Result<impl Iterator<Item = u32>, FileFault> {
        Ok(u32s(self.file.get(self.controls, 0..self.controls.len)?))
    }

    /// The ranges of the segment that cannot be read.
    pub(crate) fn damage(&self) -> Result<impl Iterator<Item = Damaged>, FileFault> {
        let bytes = self.file.get(self.damage, 0..self.damage.len)?;
        let both = |entry: &[u8]| {
            let mut ends = u32s(entry);
            Damaged { from: ends.next().unwrap_or(0), to: ends.next().unwrap_or(0) }
        };
        Ok(bytes.chunks_exact(8).map(both))
    }

    /// Checks every block, and that all entries agree with each other.
    pub(crate) fn verify(&self) -> Result<(), FileFault> {
        self.file.check_all()?;
        let (mut dense, mut events, mut structure) = (0, 0u64, 0u64);
        for at in 0..self.info.sessions {
            let part = self.session_at(at)?;
            if part.dense <= dense || part.events_at != events || part.structure_at != structure {
                return Err(self.bad_session(at, "sessions do not follow each other"));
            }
            dense = part.dense;
            events += u64::from(part.count);
            structure += u64::from(part.structure_count);
            self.verify_session(at, &part)?;
        }
        if (events, structure) != (self.info.events, self.info.structure) {
            return Err(FileFault::Field { offset: 72, what: "entries that no session has" });
        }
        let mut last = HOLE;
        let ascend = |o: u32| std::mem::replace(&mut last, o) < o;
        if !self.controls()?.all(ascend) {
            return Err(FileFault::Field { offset: self.controls.at as u64, what: "controls do not ascend" });
        }
        Ok(())
    }

    fn verify_session(&self, at: u32, part: &SessionPart) -> Result<(), FileFault> {
        if part.count == 0 || (part.open_turn && !part.has_turn_boundary) {
            return Err(self.bad_session(at, "no event, or an open turn that does not start here"));
        }
        let offsets: Vec<u32> = self.offsets(part, 0..part.count)?.collect();
        let places: Vec<u32> = offsets.iter().copied().filter(|&o| o != HOLE).collect();
        let inside = |o: &u32| (FIRST_FRAME..self.info.end).contains(o);
        if !places.iter().all(inside) || !places.is_sorted_by(|a, b| a < b) {
            return Err(self.bad_session(at, "offsets do not ascend inside the segment"));
        }
        if part.has_holes != offsets.contains(&HOLE) {
            return Err(self.bad_session(at, "holes that its flags do not tell"));
        }
        let mut next = part.first_seq;
        for entry in self.structure(part)? {
            let entry = entry?;
            let place = part.position(entry.seq).and_then(|p| offsets.get(p as usize));
            if entry.seq < next || place != Some(&entry.offset) {
                return Err(self.bad_session(at, "structure entries do not match its events"));
            }
            next = entry.seq + 1;
        }
        Ok(())
    }

    fn bad_session(&self, at: u32, what: &'static str) -> FileFault {
        FileFault::Field { offset: self.sessions.at as u64 + u64::from(at) * SESSION_LEN as u64, what }
    }

    fn beyond(&self, part: &SessionPart) -> FileFault {
        let offset = self.events.at as u64 + part.events_at.saturating_mul(4);
        FileFault::Field { offset, what: "an event that the session does not have here" }
    }
}

fn check_binding(h: &[u8], key: &SegmentKey) -> Result<(), FileFault> {
    if layout::header::STORE.get(h) != key.store.0 {
        return Err(FileFault::Foreign("store"));
    }
    if header::SEGMENT.u32(h) != key.segment || header::SALT.u64(h) != key.salt {
        return Err(FileFault::Foreign("segment"));
    }
    Ok(())
}

fn u32s(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks::<4>().0.iter().map(|&b| u32::from_le_bytes(b))
}
