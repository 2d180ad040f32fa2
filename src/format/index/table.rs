//! The index of one segment in memory, growing with it.
//!
//! Adding an event costs a hash look-up and a push. A seq that is skipped becomes a hole, but never more holes than the
//! bytes before the event could have held, so that no seq on disk makes the table large. What was added since
//! [`SegmentTable::mark`] is known apart: it is what the next index frame carries.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use super::part::{self, PartFault};
use super::{HOLE, SegmentKey, SessionPart, StructureEntry, encode};
use crate::event::{Class, SurfaceOp};
use crate::format::segment_header::Ending;

/// No stored event takes fewer bytes: 1 length, 4 CRC, 11 metadata, 1 its length.
pub(crate) const MIN_EVENT_BYTES: u32 = 17;

/// An event as the table needs to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableEvent {
    pub(crate) dense: u64,
    pub(crate) seq: u64,
    /// Where its record starts in the segment.
    pub(crate) offset: u32,
    pub(crate) class: Class,
    pub(crate) op: Option<SurfaceOp>,
    /// Milliseconds; rounded where the event's time is no integer.
    pub(crate) time_ms: i64,
    /// What it adds to the session's byte count.
    pub(crate) bytes: u64,
}

/// A range of the segment that cannot be read: from its first byte to the one behind its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damaged {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// Why an event does not fit behind the ones before it. The table is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableFault {
    /// The seq was there already.
    Stale { dense: u64, expected: u64, found: u64 },
    /// More seqs are missing than the bytes before the event can have held.
    Gap { dense: u64, expected: u64, found: u64 },
    /// The offset is not behind the session's last one.
    Order { dense: u64, last: u32, found: u32 },
}

impl fmt::Display for TableFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Stale { dense, expected, found } => {
                write!(f, "session {dense}: seq {found} comes again, expected {expected}")
            }
            Self::Gap { dense, expected, found } => {
                write!(f, "session {dense}: seq {found} where {expected} is next, more than can be lost here")
            }
            Self::Order { dense, last, found } => {
                write!(f, "session {dense}: a record at {found}, which is not behind the one at {last}")
            }
        }
    }
}

/// What a table holds of one session.
#[derive(Debug, Clone)]
pub(crate) struct TableSession {
    pub(super) head: SessionPart,
    pub(super) offsets: Vec<u32>,
    pub(super) structure: Vec<StructureEntry>,
    last_offset: u32,
    pub(super) since: Since,
}

/// What a session had at the last mark, and what is not a difference of counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Since {
    pub(super) events: usize,
    pub(super) structure: usize,
    pub(super) bytes: u64,
    pub(super) first_time: i64,
    pub(super) turn_boundary: bool,
    /// It has events since then.
    touched: bool,
}

impl TableSession {
    fn new(event: &TableEvent) -> Self {
        let head = SessionPart {
            dense: event.dense,
            first_seq: event.seq,
            count: 0,
            bytes: 0,
            first_time: event.time_ms,
            last_time: event.time_ms,
            structure_count: 0,
            prev_segment: 0,
            open_turn: false,
            has_turn_boundary: false,
            has_holes: false,
            events_at: 0,
            structure_at: 0,
        };
        Self { head, offsets: Vec::new(), structure: Vec::new(), last_offset: 0, since: Since::default() }
    }

    /// Counts, times and state.
    pub(crate) fn part(&self) -> SessionPart {
        self.head
    }

    /// The offset of each event from the first seq on; [`HOLE`] where damage took it.
    pub(crate) fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// The events that are no chunks.
    pub(crate) fn structure(&self) -> &[StructureEntry] {
        &self.structure
    }

    /// How many seqs are skipped before `event`, when it fits at all.
    fn skipped(&self, event: &TableEvent) -> Result<u64, TableFault> {
        let (dense, expected, found) = (event.dense, self.head.end_seq(), event.seq);
        let skipped = found.checked_sub(expected).ok_or(TableFault::Stale { dense, expected, found })?;
        if event.offset <= self.last_offset {
            return Err(TableFault::Order { dense, last: self.last_offset, found: event.offset });
        }
        Ok(skipped)
    }

    fn push(&mut self, event: &TableEvent) {
        if !self.since.touched {
            self.since.touched = true;
            self.since.first_time = event.time_ms;
        }
        self.offsets.push(event.offset);
        self.last_offset = event.offset;
        self.head.count = self.head.count.saturating_add(1);
        self.head.bytes = self.head.bytes.saturating_add(event.bytes);
        self.head.last_time = event.time_ms;
        if event.class != Class::Chunk {
            self.push_structure(event);
        }
    }

    fn push_structure(&mut self, event: &TableEvent) {
        if matches!(event.class, Class::TurnStart | Class::TurnEnd) {
            self.head.open_turn = event.class == Class::TurnStart;
            self.head.has_turn_boundary = true;
            self.since.turn_boundary = true;
        }
        let TableEvent { seq, offset, class, op, .. } = *event;
        self.structure.push(StructureEntry { seq, offset, class, op });
        self.head.structure_count = self.head.structure_count.saturating_add(1);
    }

    fn mark(&mut self) {
        self.since = Since {
            events: self.offsets.len(),
            structure: self.structure.len(),
            bytes: self.head.bytes,
            ..Since::default()
        };
    }
}

/// The index of one segment in memory.
#[derive(Debug, Clone)]
pub(crate) struct SegmentTable {
    key: SegmentKey,
    sessions: HashMap<u64, TableSession, BuildHasherDefault<DenseHasher>>,
    controls: Vec<u32>,
    damage: Vec<Damaged>,
    /// Offsets of all sessions, holes included.
    events: u64,
    /// Sessions with events since the mark.
    touched: Vec<u64>,
    marked_controls: usize,
}

impl SegmentTable {
    /// The table of a segment without records.
    pub(crate) fn new(key: SegmentKey) -> Self {
        Self {
            key,
            sessions: HashMap::default(),
            controls: Vec::new(),
            damage: Vec::new(),
            events: 0,
            touched: Vec::new(),
            marked_controls: 0,
        }
    }

    /// The segment.
    pub(crate) fn key(&self) -> SegmentKey {
        self.key
    }

    /// Adds an event. Says whether it is the session's first one here: then [`set_prev`](Self::set_prev) is due.
    ///
    /// # Errors
    /// When it does not fit behind what is there; nothing was added.
    #[inline]
    pub(crate) fn add_event(&mut self, event: &TableEvent) -> Result<bool, TableFault> {
        if let Some(session) = self.sessions.get_mut(&event.dense) {
            let skipped = session.skipped(event)?;
            if skipped > 0 {
                fill(session, skipped, event, self.events)?;
                self.events += skipped;
            }
            if !session.since.touched {
                self.touched.push(event.dense);
            }
            session.push(event);
            self.events += 1;
            return Ok(false);
        }
        let mut session = TableSession::new(event);
        session.push(event);
        self.sessions.insert(event.dense, session);
        self.touched.push(event.dense);
        self.events += 1;
        Ok(true)
    }

    /// The segment before this one that holds the session.
    pub(crate) fn set_prev(&mut self, dense: u64, segment: u32) {
        if let Some(session) = self.sessions.get_mut(&dense) {
            session.head.prev_segment = segment;
        }
    }

    /// A record at `offset` that is neither an event nor an index part.
    pub(crate) fn add_control(&mut self, offset: u32) {
        self.controls.push(offset);
    }

    /// A range that cannot be read.
    pub(crate) fn add_damage(&mut self, damaged: Damaged) {
        self.damage.push(damaged);
    }

    /// What it holds of a session.
    pub(crate) fn session(&self, dense: u64) -> Option<&TableSession> {
        self.sessions.get(&dense)
    }

    /// Every session, in no order.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &TableSession> {
        self.sessions.values()
    }

    /// Offsets of the records that are neither events nor index parts, ascending.
    pub(crate) fn controls(&self) -> &[u32] {
        &self.controls
    }

    /// Events of all sessions, holes included.
    pub(crate) fn event_count(&self) -> u64 {
        self.events
    }

    /// Nothing was added since the mark: an index frame would be empty.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.touched.is_empty() && self.marked_controls == self.controls.len()
    }

    /// The payload of an index frame's record: everything since the mark.
    pub(crate) fn encode_part(&self) -> Vec<u8> {
        let mut touched: Vec<_> = self.touched.iter().filter_map(|d| self.sessions.get(d)).collect();
        touched.sort_unstable_by_key(|s| s.head.dense);
        let controls = self.controls.get(self.marked_controls..).unwrap_or_default();
        part::encode(&touched, controls)
    }

    /// From here on, a part starts behind what was added so far. Called when the frame of
    /// [`encode_part`](Self::encode_part) has its place in the log.
    pub(crate) fn mark(&mut self) {
        for dense in self.touched.drain(..) {
            if let Some(session) = self.sessions.get_mut(&dense) {
                session.mark();
            }
        }
        self.marked_controls = self.controls.len();
    }

    /// Adds what the index frame at `at` of this segment carries, then marks. Parts are applied in the order of the log.
    /// What a part names lies before it: so a part costs no more than the records that it stands for.
    ///
    /// # Errors
    /// When the payload is malformed or does not follow what is there. The table may then hold a part of it and is to
    /// be thrown away: the segment is scanned instead.
    pub(crate) fn apply_part(&mut self, payload: &[u8], at: u32) -> Result<(), PartFault> {
        let room = u64::from(at / MIN_EVENT_BYTES).saturating_sub(self.events);
        let part = part::decode_at(payload, at, room)?;
        for session in &part.sessions {
            self.apply_session(session)?;
        }
        self.controls.extend_from_slice(&part.controls);
        self.mark();
        Ok(())
    }

    fn apply_session(&mut self, part: &part::PartSession) -> Result<(), PartFault> {
        let head = &part.head;
        let at_place = |s: &TableSession| s.head.end_seq() == head.first_seq;
        if self.sessions.get(&head.dense).is_some_and(|s| !at_place(s)) {
            return Err(PartFault::Sequence { dense: head.dense });
        }
        let session = self.sessions.entry(head.dense).or_insert_with(|| TableSession {
            head: SessionPart { count: 0, bytes: 0, structure_count: 0, ..*head },
            offsets: Vec::new(),
            structure: Vec::new(),
            last_offset: 0,
            since: Since::default(),
        });
        let first = part.offsets.iter().copied().find(|&o| o != HOLE);
        if first.is_some_and(|o| o <= session.last_offset) || session.head.prev_segment != head.prev_segment {
            return Err(PartFault::Sequence { dense: head.dense });
        }
        session.offsets.extend_from_slice(&part.offsets);
        session.structure.extend_from_slice(&part.structure);
        let last = part.offsets.iter().rev().copied().find(|&o| o != HOLE);
        session.last_offset = last.unwrap_or(session.last_offset);
        session.head.count = session.head.count.saturating_add(head.count);
        session.head.structure_count = session.head.structure_count.saturating_add(head.structure_count);
        session.head.bytes = session.head.bytes.saturating_add(head.bytes);
        session.head.last_time = head.last_time;
        session.head.open_turn = head.open_turn;
        session.head.has_turn_boundary |= head.has_turn_boundary;
        session.head.has_holes |= head.has_holes;
        self.events = self.events.saturating_add(u64::from(head.count));
        self.touched.push(head.dense);
        Ok(())
    }

    /// The bytes of the segment's index file. `end` is where the segment ends, `chain` the checksum of its last frame,
    /// `why_ended` as the next segment's header says it.
    pub(crate) fn to_index(&self, end: u32, chain: u32, why_ended: Ending) -> Vec<u8> {
        let mut sessions: Vec<_> = self.sessions.values().collect();
        sessions.sort_unstable_by_key(|s| s.head.dense);
        let closing = encode::Closing { end, chain, why_ended };
        encode::index_file(&self.key, &closing, &sessions, &self.controls, &self.damage)
    }
}

/// Holes for the seqs before `event`; refused when all events up to here could not lie before it.
#[cold]
fn fill(session: &mut TableSession, skipped: u64, event: &TableEvent, events: u64) -> Result<(), TableFault> {
    let possible = u64::from(event.offset / MIN_EVENT_BYTES);
    let (dense, expected, found) = (event.dense, session.head.end_seq(), event.seq);
    let fault = TableFault::Gap { dense, expected, found };
    let fits = events.checked_add(skipped).is_some_and(|all| all <= possible);
    let holes = u32::try_from(skipped).ok().filter(|_| fits).ok_or(fault)?;
    session.offsets.extend(std::iter::repeat_n(HOLE, holes as usize));
    session.head.count = session.head.count.saturating_add(holes);
    session.head.has_holes = true;
    Ok(())
}

/// Spreads dense ids, which are small and consecutive, over both ends of the hash.
#[derive(Debug, Default, Clone, Copy)]
struct DenseHasher(u64);

impl Hasher for DenseHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        // 2^64 / golden ratio: neighbours land far apart in the high bits, which the table uses as tags.
        let product = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ (product >> 32);
    }
}
