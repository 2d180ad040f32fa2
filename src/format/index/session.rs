//! What a table holds of one session. A session with one event, which a crowd of them may have, takes one row and no
//! allocation but that of a structure entry (G7).

use super::table::{TableEvent, TableFault};
use super::{HOLE, SessionPart, StructureEntry};
use crate::event::Class;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct TableSession {
    pub(super) dense: u64,
    pub(super) first_seq: u64,
    pub(super) bytes: u64,
    first_time: i64,
    pub(super) last_time: i64,
    pub(super) last_offset: u32,
    /// Events from `first_seq` on, holes included.
    pub(super) count: u32,
    pub(super) prev_segment: u32,
    pub(super) open_turn: bool,
    pub(super) has_turn_boundary: bool,
    pub(super) has_holes: bool,
    /// It has events since the mark.
    pub(super) touched: bool,
    /// Empty as long as its only event is the one at `last_offset`.
    offsets: Vec<u32>,
    structure: Vec<StructureEntry>,
    since: Option<Box<Since>>,
}

/// What decides how many sessions a store of a given size may hold in memory.
const _: () = assert!(size_of::<TableSession>() == 112 && size_of::<StructureEntry>() == 40);

/// What a session had at the last mark, and what is not a difference of counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Since {
    pub(super) events: usize,
    pub(super) structure: usize,
    pub(super) bytes: u64,
    pub(super) first_time: i64,
    pub(super) turn_boundary: bool,
}

impl TableSession {
    /// A session without events; `first` is about to be its first.
    pub(super) fn new(first: &TableEvent) -> Self {
        Self::empty(first.dense, first.seq, first.time_ms)
    }

    /// A session that begins as `part` does, and has no event yet.
    pub(super) fn of_part(part: &SessionPart) -> Self {
        Self { prev_segment: part.prev_segment, ..Self::empty(part.dense, part.first_seq, part.first_time) }
    }

    fn empty(dense: u64, first_seq: u64, first_time: i64) -> Self {
        Self {
            dense,
            first_seq,
            bytes: 0,
            first_time,
            last_time: first_time,
            last_offset: 0,
            count: 0,
            prev_segment: 0,
            open_turn: false,
            has_turn_boundary: false,
            has_holes: false,
            touched: false,
            offsets: Vec::new(),
            structure: Vec::new(),
            since: None,
        }
    }

    /// Counts, times and state.
    pub(crate) fn part(&self) -> SessionPart {
        SessionPart {
            dense: self.dense,
            first_seq: self.first_seq,
            count: self.count,
            bytes: self.bytes,
            first_time: self.first_time,
            last_time: self.last_time,
            // Each entry belongs to another event.
            structure_count: u32::try_from(self.structure.len()).unwrap_or(u32::MAX),
            prev_segment: self.prev_segment,
            open_turn: self.open_turn,
            has_turn_boundary: self.has_turn_boundary,
            has_holes: self.has_holes,
            events_at: 0,
            structure_at: 0,
        }
    }

    /// The offset of each event from the first seq on; [`HOLE`] where damage took it.
    pub(crate) fn offsets(&self) -> &[u32] {
        match self.count {
            1 => std::slice::from_ref(&self.last_offset),
            _ => &self.offsets,
        }
    }

    /// The events that are no chunks.
    pub(crate) fn structure(&self) -> &[StructureEntry] {
        &self.structure
    }

    /// The seq behind its last event.
    pub(super) fn end_seq(&self) -> u64 {
        self.first_seq.saturating_add(u64::from(self.count))
    }

    pub(super) fn since(&self) -> Since {
        self.since.as_deref().copied().unwrap_or(Since {
            events: 0,
            structure: 0,
            bytes: 0,
            first_time: self.first_time,
            turn_boundary: self.has_turn_boundary,
        })
    }

    /// How many seqs are skipped before `event`, when it fits at all.
    pub(super) fn skipped(&self, event: &TableEvent) -> Result<u64, TableFault> {
        let (dense, expected, found) = (event.dense, self.end_seq(), event.seq);
        let skipped = found.checked_sub(expected).ok_or(TableFault::Stale { dense, expected, found })?;
        if event.offset <= self.last_offset {
            return Err(TableFault::Order { dense, last: self.last_offset, found: event.offset });
        }
        Ok(skipped)
    }

    pub(super) fn push(&mut self, event: &TableEvent) {
        if !self.touched {
            self.touched = true;
            if let Some(since) = &mut self.since {
                since.first_time = event.time_ms;
            }
        }
        self.push_offsets(&[event.offset]);
        self.bytes = self.bytes.saturating_add(event.bytes);
        self.last_time = event.time_ms;
        if event.class != Class::Chunk {
            self.push_structure(event);
        }
    }

    /// Holes for `count` events that damage took; another event follows.
    pub(super) fn push_holes(&mut self, count: u32) {
        self.spread();
        self.offsets.extend(std::iter::repeat_n(HOLE, count as usize));
        self.count = self.count.saturating_add(count);
        self.has_holes = true;
    }

    /// Events at `offsets`, the last of which is no hole.
    pub(super) fn push_offsets(&mut self, offsets: &[u32]) {
        let Some(&last) = offsets.last() else { return };
        if self.count > 0 || offsets.len() > 1 {
            self.spread();
            self.offsets.extend_from_slice(offsets);
        }
        self.last_offset = last;
        self.count = self.count.saturating_add(u32::try_from(offsets.len()).unwrap_or(u32::MAX));
    }

    /// The only event moves into the list, which more are about to follow.
    fn spread(&mut self) {
        if self.count == 1 {
            self.offsets.push(self.last_offset);
        }
    }

    fn push_structure(&mut self, event: &TableEvent) {
        if matches!(event.class, Class::TurnStart | Class::TurnEnd) {
            self.open_turn = event.class == Class::TurnStart;
            self.has_turn_boundary = true;
            if let Some(since) = &mut self.since {
                since.turn_boundary = true;
            }
        }
        let TableEvent { seq, offset, class, op, .. } = *event;
        self.push_entries(&[StructureEntry { seq, offset, class, op }]);
    }

    pub(super) fn push_entries(&mut self, entries: &[StructureEntry]) {
        if self.structure.capacity() == 0 {
            // Not the four that a vector begins with: a crowd has one each.
            self.structure.reserve_exact(entries.len());
        }
        self.structure.extend_from_slice(entries);
    }

    pub(super) fn mark(&mut self) {
        self.touched = false;
        let since = Since {
            events: self.count as usize,
            structure: self.structure.len(),
            bytes: self.bytes,
            first_time: 0,
            turn_boundary: false,
        };
        match &mut self.since {
            Some(old) => **old = since,
            None => self.since = Some(Box::new(since)),
        }
    }
}

/// Rows that stay where they are: no spare room but in the last piece, and no copying while it grows.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    pieces: Vec<Vec<TableSession>>,
}

/// Rows of a piece.
const PIECE: usize = 256;

impl Rows {
    /// Adds a row and says which number it has; none when there are more than any segment can hold.
    pub(super) fn push(&mut self, row: TableSession) -> Option<u32> {
        let full = self.pieces.last().is_none_or(|piece| piece.len() >= PIECE);
        if full {
            // A table of a few sessions is to stay small.
            let room = if self.pieces.is_empty() { 0 } else { PIECE };
            self.pieces.push(Vec::with_capacity(room));
        }
        let before = self.pieces.len().checked_sub(1)?.checked_mul(PIECE)?;
        let piece = self.pieces.last_mut()?;
        let number = u32::try_from(before.checked_add(piece.len())?).ok()?;
        piece.push(row);
        Some(number)
    }

    pub(super) fn get(&self, number: u32) -> Option<&TableSession> {
        let number = number as usize;
        self.pieces.get(number / PIECE)?.get(number % PIECE)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut TableSession> {
        let number = number as usize;
        self.pieces.get_mut(number / PIECE)?.get_mut(number % PIECE)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &TableSession> {
        self.pieces.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut TableSession> {
        self.pieces.iter_mut().flatten()
    }
}
