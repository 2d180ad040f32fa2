//! The index of one segment in memory, growing with it.
//!
//! Adding an event costs a hash look-up and a push. A seq that is skipped becomes a hole, but never more holes than the
//! bytes before the event could have held, so that no seq on disk makes the table large. What was added since
//! [`SegmentTable::mark`] is known apart: it is what the next index frame carries.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use super::part::{self, PartFault};
use super::session::{Rows, TableSession};
use super::{HOLE, SegmentKey, encode};
use crate::error::Error;
use crate::event::{Class, SurfaceOp};
use crate::format::blocks::{Sink, in_memory};
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

/// The index of one segment in memory.
#[derive(Debug, Clone)]
pub(crate) struct SegmentTable {
    key: SegmentKey,
    rows: Rows,
    /// The row of each session.
    places: HashMap<u64, u32, BuildHasherDefault<DenseHasher>>,
    controls: Vec<u32>,
    damage: Vec<Damaged>,
    /// Offsets of all sessions, holes included.
    events: u64,
    /// Rows of the sessions with events since the mark.
    touched: Vec<u32>,
    marked_controls: usize,
}

impl SegmentTable {
    /// The table of a segment without records.
    pub(crate) fn new(key: SegmentKey) -> Self {
        Self {
            key,
            rows: Rows::default(),
            places: HashMap::default(),
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
        if let Some(&row) = self.places.get(&event.dense)
            && let Some(session) = self.rows.get_mut(row)
        {
            let skipped = session.skipped(event)?;
            if skipped > 0 {
                fill(session, skipped, event, self.events)?;
                self.events += skipped;
            }
            if !session.touched {
                self.touched.push(row);
            }
            session.push(event);
            self.events += 1;
            return Ok(false);
        }
        let mut session = TableSession::new(event);
        session.push(event);
        self.add_row(session);
        self.events += 1;
        Ok(true)
    }

    /// A session that is not here yet, touched. No segment has bytes for more sessions than there are row numbers.
    fn add_row(&mut self, session: TableSession) {
        let dense = session.dense;
        if let Some(row) = self.rows.push(session) {
            self.places.insert(dense, row);
            self.touched.push(row);
        }
    }

    /// The segment before this one that holds the session.
    pub(crate) fn set_prev(&mut self, dense: u64, segment: u32) {
        if let Some(&row) = self.places.get(&dense)
            && let Some(session) = self.rows.get_mut(row)
        {
            session.prev_segment = segment;
        }
    }

    /// The same segment before this one for every session.
    pub(crate) fn set_all_prev(&mut self, segment: u32) {
        self.rows.iter_mut().for_each(|session| session.prev_segment = segment);
    }

    /// A record at `offset` that is neither an event nor an index part.
    pub(crate) fn add_control(&mut self, offset: u32) {
        self.controls.push(offset);
    }

    /// A range that cannot be read, behind those before.
    pub(crate) fn add_damage(&mut self, damaged: Damaged) {
        match self.damage.last_mut() {
            Some(last) if last.to == damaged.from => last.to = damaged.to,
            _ => self.damage.push(damaged),
        }
    }

    /// What it holds of a session.
    pub(crate) fn session(&self, dense: u64) -> Option<&TableSession> {
        self.rows.get(*self.places.get(&dense)?)
    }

    /// Every session, in no order.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &TableSession> {
        self.rows.iter()
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
        let mut touched: Vec<_> = self.touched.iter().filter_map(|row| self.rows.get(*row)).collect();
        touched.sort_unstable_by_key(|s| s.dense);
        let controls = self.controls.get(self.marked_controls..).unwrap_or_default();
        part::encode(&touched, controls)
    }

    /// From here on, a part starts behind what was added so far. Called when the frame of
    /// [`encode_part`](Self::encode_part) has its place in the log.
    pub(crate) fn mark(&mut self) {
        for row in self.touched.drain(..) {
            if let Some(session) = self.rows.get_mut(row) {
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
        let controls = part::decode_each(payload, at, room, &mut |session| self.apply_session(&session))?;
        self.controls.extend_from_slice(&controls);
        self.mark();
        Ok(())
    }

    fn apply_session(&mut self, part: &part::PartSession) -> Result<(), PartFault> {
        let dense = part.head.dense;
        if let Some(&row) = self.places.get(&dense)
            && let Some(session) = self.rows.get_mut(row)
        {
            apply(session, part)?;
            if !std::mem::replace(&mut session.touched, true) {
                self.touched.push(row);
            }
        } else {
            let mut session = TableSession::of_part(&part.head);
            apply(&mut session, part)?;
            self.add_row(session);
        }
        self.events = self.events.saturating_add(u64::from(part.head.count));
        Ok(())
    }

    /// The bytes of the segment's index file, see [`write_index`](Self::write_index).
    pub(crate) fn to_index(&self, end: u32, chain: u32, why_ended: Ending) -> Vec<u8> {
        in_memory(|sink| self.write_index(end, chain, why_ended, sink))
    }

    /// Writes the segment's index file, piece by piece. `end` is where the segment ends, `chain` the checksum of its
    /// last frame, `why_ended` as the next segment's header says it.
    ///
    /// # Errors
    /// What `sink` returns.
    pub(crate) fn write_index(
        &self,
        end: u32,
        chain: u32,
        why_ended: Ending,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        let mut sessions: Vec<_> = Vec::with_capacity(self.places.len());
        sessions.extend(self.rows.iter());
        sessions.sort_unstable_by_key(|s| s.dense);
        let closing = encode::Closing { end, chain, why_ended };
        encode::index_file(&self.key, &closing, &sessions, &self.controls, &self.damage, sink)
    }
}

/// Adds a part to the session that it is about.
fn apply(session: &mut TableSession, part: &part::PartSession) -> Result<(), PartFault> {
    let head = &part.head;
    let first = part.offsets.iter().copied().find(|&o| o != HOLE);
    if session.end_seq() != head.first_seq
        || first.is_some_and(|o| o <= session.last_offset)
        || session.prev_segment != head.prev_segment
    {
        return Err(PartFault::Sequence { dense: head.dense });
    }
    session.push_offsets(&part.offsets);
    session.push_entries(&part.structure);
    session.bytes = session.bytes.saturating_add(head.bytes);
    session.last_time = head.last_time;
    session.open_turn = head.open_turn;
    session.has_turn_boundary |= head.has_turn_boundary;
    session.has_holes |= head.has_holes;
    Ok(())
}

/// Holes for the seqs before `event`; refused when all events up to here could not lie before it.
#[cold]
fn fill(session: &mut TableSession, skipped: u64, event: &TableEvent, events: u64) -> Result<(), TableFault> {
    let possible = u64::from(event.offset / MIN_EVENT_BYTES);
    let (dense, expected, found) = (event.dense, session.end_seq(), event.seq);
    let fault = TableFault::Gap { dense, expected, found };
    let fits = events.checked_add(skipped).is_some_and(|all| all <= possible);
    let holes = u32::try_from(skipped).ok().filter(|_| fits).ok_or(fault)?;
    session.push_holes(holes);
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
