//! Sessions whose create record is lost: each a small row, for a damaged log may have as many of them as it has records,
//! and a forged one has as many as its bytes can name (G7). They are shown under a name of their own, which is not kept
//! but made from their number when one is asked for; one that is opened becomes a session like any other.

use std::sync::Arc;

use crate::format::Lsn;

use super::live::new_entry;
use super::types::SessionEntry;

/// What is known of such a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Orphan {
    dense: u64,
    next_seq: u64,
    bytes: u64,
    first_time: i64,
    last_time: i64,
    accepted: Lsn,
    /// Newest record that changed it.
    changed: Lsn,
    last_segment: u32,
    has_times: bool,
    open_turn: bool,
    deleted: bool,
}

const _: () = assert!(size_of::<Orphan>() == 64);

impl Orphan {
    /// What of an entry is not made from its number.
    fn of(entry: &SessionEntry, changed: Lsn) -> Self {
        Self {
            dense: entry.dense,
            next_seq: entry.next_seq,
            bytes: entry.bytes,
            first_time: entry.first_time.unwrap_or(0),
            last_time: entry.last_time.unwrap_or(0),
            accepted: entry.accepted,
            changed,
            last_segment: entry.last_segment,
            has_times: entry.last_time.is_some(),
            open_turn: entry.open_turn,
            deleted: entry.deleted,
        }
    }

    fn entry(&self) -> SessionEntry {
        SessionEntry {
            next_seq: self.next_seq,
            bytes: self.bytes,
            first_time: self.has_times.then_some(self.first_time),
            last_time: self.has_times.then_some(self.last_time),
            open_turn: self.open_turn,
            deleted: self.deleted,
            last_segment: self.last_segment,
            accepted: self.accepted,
            ..unknown(self.dense)
        }
    }
}

/// The name in front of a number.
const NAME: &str = "lost:";

/// A session of which nothing but its number is known: its events stay readable under this name.
pub(super) fn unknown(dense: u64) -> SessionEntry {
    let id: Arc<str> = Arc::from(format!("{NAME}{dense}"));
    let header: Arc<str> =
        Arc::from(format!(r#"{{"type":"session","version":0,"id":"{NAME}{dense}","createdAt":0}}"#));
    new_entry(dense, &id, &header, false, None)
}

/// Rows of a piece.
const PIECE: usize = 512;
/// Rows for which a piece that was divided gets room at a time.
const ROOM: usize = 32;

/// See the module. Ascending by number; a row costs its bytes and a little room, whatever order they come in.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    /// None is empty.
    pieces: Vec<Vec<Orphan>>,
}

impl Orphans {
    /// The piece that a number belongs to: the last that does not start behind it.
    fn piece_of(&self, dense: u64) -> usize {
        let starts_before = |piece: &Vec<Orphan>| piece.first().is_some_and(|row| row.dense <= dense);
        self.pieces.partition_point(starts_before).saturating_sub(1)
    }

    fn row(&self, dense: u64) -> Option<&Orphan> {
        let piece = self.pieces.get(self.piece_of(dense))?;
        piece.get(piece.binary_search_by_key(&dense, |row| row.dense).ok()?)
    }

    pub(crate) fn len(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The highest number.
    pub(crate) fn last(&self) -> Option<u64> {
        self.pieces.last()?.last().map(|row| row.dense)
    }

    pub(crate) fn contains(&self, dense: u64) -> bool {
        self.row(dense).is_some()
    }

    /// The session of that number, as any other.
    pub(crate) fn get(&self, dense: u64) -> Option<SessionEntry> {
        self.row(dense).map(Orphan::entry)
    }

    /// The number of the session that is shown under `id`.
    pub(crate) fn by_id(&self, id: &str) -> Option<u64> {
        let number = id.strip_prefix(NAME)?;
        let dense = number.parse().ok()?;
        (self.contains(dense) && *unknown(dense).id == *id).then_some(dense)
    }

    /// Every session, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = SessionEntry> {
        self.rows().map(Orphan::entry)
    }

    /// Number, whether it was deleted, and the newest record that changed it, ascending.
    pub(crate) fn marks(&self) -> impl Iterator<Item = (u64, bool, Lsn)> {
        self.rows().map(|row| (row.dense, row.deleted, row.changed))
    }

    /// The newest record that changed the session.
    pub(crate) fn changed(&self, dense: u64) -> Option<Lsn> {
        self.row(dense).map(|row| row.changed)
    }

    fn rows(&self) -> impl Iterator<Item = &Orphan> {
        self.pieces.iter().flatten()
    }

    /// Changes a session by a record at `place`, one that is not here yet too.
    pub(crate) fn change(&mut self, dense: u64, place: Lsn, change: impl FnOnce(&mut SessionEntry)) {
        let at = self.piece_of(dense);
        if let Some(piece) = self.pieces.get_mut(at)
            && let Ok(at) = piece.binary_search_by_key(&dense, |row| row.dense)
            && let Some(row) = piece.get_mut(at)
        {
            let mut entry = row.entry();
            change(&mut entry);
            *row = Orphan::of(&entry, row.changed.max(place));
            return;
        }
        let mut entry = unknown(dense);
        change(&mut entry);
        self.insert(Orphan::of(&entry, place));
    }

    /// Brings in those of `other` that are not here; those that are here are at least as new, and no run from before
    /// counts for them any more.
    pub(crate) fn restore(&mut self, other: Self, knows: impl Fn(u64) -> bool) {
        if self.is_empty() {
            *self = other;
            for piece in &mut self.pieces {
                piece.retain(|row| !knows(row.dense));
            }
            self.pieces.retain(|piece| !piece.is_empty());
            return;
        }
        for row in other.pieces.into_iter().flatten().filter(|row| !knows(row.dense)) {
            if self.contains(row.dense) {
                self.change(row.dense, row.changed, |_| {});
            } else {
                self.insert(row);
            }
        }
    }

    /// Adds a row whose number is not here.
    fn insert(&mut self, row: Orphan) {
        let at = self.piece_of(row.dense);
        let last = at.saturating_add(1) >= self.pieces.len();
        let Some(piece) = self.pieces.get_mut(at) else {
            // The first piece of all grows as it likes: most stores have few of these or none.
            self.pieces.push(vec![row]);
            return;
        };
        let place = piece.partition_point(|other| other.dense < row.dense);
        if piece.len() < PIECE {
            if piece.len() == piece.capacity() {
                piece.reserve_exact(ROOM);
            }
            piece.insert(place, row);
        } else if last && place == piece.len() {
            // Numbers mostly ascend: full pieces stay full.
            let mut next = Vec::with_capacity(PIECE);
            next.push(row);
            self.pieces.push(next);
        } else {
            let behind = piece.split_off(PIECE / 2);
            piece.shrink_to_fit();
            self.pieces.insert(at.saturating_add(1), behind);
            self.insert(row);
        }
    }

    /// Takes a session out, with the newest record that changed it.
    pub(crate) fn remove(&mut self, dense: u64) -> Option<(SessionEntry, Lsn)> {
        let at = self.piece_of(dense);
        let piece = self.pieces.get_mut(at)?;
        let row = piece.remove(piece.binary_search_by_key(&dense, |row| row.dense).ok()?);
        if piece.is_empty() {
            self.pieces.remove(at);
        }
        Some((row.entry(), row.changed))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_found_in_whatever_order_they_came(
            start in 1u64..5000,
            step in prop::sample::select(vec![1i64, -1, 3, -3, 1009]),
            count in 1u64..3000,
            gone in prop::collection::vec(any::<prop::sample::Index>(), 0..600),
        ) {
            let mut orphans = Orphans::default();
            let mut model = BTreeMap::new();
            let mut dense = start;
            for number in 0..count {
                orphans.change(dense, Lsn::new(1, 1), |entry| entry.next_seq = number);
                model.insert(dense, number);
                dense = dense.wrapping_add_signed(step).rem_euclid(5000) + 1;
            }
            for index in gone {
                let dense = *index.get(&model.keys().copied().collect::<Vec<_>>());
                prop_assert_eq!(orphans.remove(dense).map(|(entry, _)| Some(entry.next_seq)), model.remove(&dense).map(Some));
                if model.is_empty() {
                    break;
                }
            }
            let found: Vec<_> = orphans.iter().map(|entry| (entry.dense, entry.next_seq)).collect();
            prop_assert_eq!(orphans.len(), found.len());
            prop_assert!(found.iter().all(|(dense, _)| orphans.contains(*dense)));
            prop_assert_eq!(found, model.into_iter().collect::<Vec<_>>());
            prop_assert!(orphans.pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= PIECE));
        }
    }

    #[test]
    fn a_row_keeps_what_a_session_without_its_create_record_has() {
        let mut orphans = Orphans::default();
        let full = SessionEntry {
            next_seq: 9,
            bytes: 80,
            first_time: Some(-1),
            last_time: Some(5),
            open_turn: true,
            deleted: true,
            last_segment: 3,
            accepted: Lsn::new(2, 600),
            ..unknown(7)
        };
        orphans.change(7, Lsn::new(3, 700), |entry| *entry = full.clone());
        assert_eq!(orphans.get(7), Some(full.clone()));
        assert_eq!(
            (orphans.by_id("lost:7"), orphans.by_id("lost:07"), orphans.by_id("lost:8")),
            (Some(7), None, None)
        );
        assert_eq!(orphans.remove(7), Some((full, Lsn::new(3, 700))));
        assert!(orphans.is_empty() && orphans.get(7).is_none());
    }

    #[test]
    fn what_is_here_is_newer_than_what_is_restored() {
        let place = |at| Lsn::new(at, 1);
        let one = |dense, next_seq, at| {
            let mut orphans = Orphans::default();
            orphans.change(dense, place(at), |entry| entry.next_seq = next_seq);
            orphans
        };
        let mut here = one(5, 50, 4);
        here.restore(one(5, 10, 9), |_| false);
        here.restore(one(6, 60, 2), |_| false);
        here.restore(one(8, 80, 2), |dense| dense == 8);
        let seqs: Vec<_> = here.iter().map(|entry| entry.next_seq).collect();
        assert_eq!(seqs, [50, 60]);
        assert_eq!(here.marks().collect::<Vec<_>>(), [(5, false, place(9)), (6, false, place(2))]);
        let mut empty = Orphans::default();
        empty.restore(one(8, 80, 2), |dense| dense == 8);
        assert!(empty.is_empty());
    }
}
