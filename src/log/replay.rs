//! Replay: what an ended segment changed in the sessions, from its index and its control records.
//!
//! Opening replays the segments behind the newest directory run, and a checkpoint is a replay written down; both
//! use this one fold. Reads a segment's control records, never its events.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use crate::error::{Error, Result};
use crate::format::index::SessionPart;
use crate::format::lsn::Lsn;
use crate::mutation::{self, Mutation};

use super::directory::Directory;
use super::live::new_entry;
use super::notes::note_of;
use super::orphans::Orphans;
use super::reader::ReadBuffer;
use super::segments::Index;
use super::shared::Shared;
use super::types::{Note, SessionEntry};

/// A session as a replay leaves it.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub entry: SessionEntry,
    /// Newest segment that changed it.
    pub segment: u32,
}

/// What segments changed in the sessions of a directory.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub entries: BTreeMap<u64, Box<Replayed>>,
    pub orphans: Orphans,
}

impl Changes {
    pub(crate) fn get(&self, dense: u64) -> Option<SessionEntry> {
        match self.entries.get(&dense) {
            Some(replayed) => Some(replayed.entry.clone()),
            None => self.orphans.get(dense),
        }
    }

    fn create(&mut self, entry: SessionEntry, segment: u32) {
        self.orphans.remove(entry.dense);
        self.entries.insert(entry.dense, Box::new(Replayed { entry, segment }));
    }

    /// Changes a session by a record of `segment`. One that is nowhere has lost its create record.
    fn change(
        &mut self,
        dense: u64,
        segment: u32,
        base: &Directory,
        change: impl FnOnce(&mut SessionEntry),
    ) -> Result<()> {
        let known = !self.orphans.contains(dense);
        let replayed = match self.entries.entry(dense) {
            Slot::Occupied(slot) => slot.into_mut(),
            Slot::Vacant(slot) => match if known { base.session(dense)? } else { None } {
                Some(entry) => slot.insert(Box::new(Replayed { entry, segment })),
                None => {
                    self.orphans.change(dense, Lsn::new(segment, 1), change);
                    return Ok(());
                }
            },
        };
        replayed.segment = segment;
        change(&mut replayed.entry);
        Ok(())
    }
}

/// Applies segment `number` to `changes`; sessions that are not in them yet come from `base`. Gives back the first read
/// of a control record that failed for a reason other than damage: it was passed over as if it were damaged.
///
/// # Errors
/// The segment's index cannot be read: nothing was changed. Or `base` cannot be read: the changes are to be thrown
/// away. A control record that is damaged is passed over: what it created is shown under a name of its own.
pub(crate) fn replay(
    shared: &Shared,
    number: u32,
    index: &Index,
    changes: &mut Changes,
    base: &Directory,
) -> Result<Option<Error>> {
    // Whatever may fail comes first: the caller tries again with a rebuilt index.
    let controls = index.controls()?;
    index.each_part(&mut |_| Ok(()))?;
    let mut unread = None;
    let mut buffer = ReadBuffer::default();
    let mut read = |offset: u32| {
        let at = Lsn::new(number, offset);
        shared.with_record(&mut buffer, at, |view| Ok(note_of(view).ok().flatten())).unwrap_or_else(|error| {
            tracing::warn!(%error, "a control record is damaged");
            if !error.is_corruption() {
                unread.get_or_insert(error);
            }
            None
        })
    };
    let mut late = Vec::new();
    for offset in controls {
        match read(offset) {
            Some(Note::Create { dense, id, header, staged }) => {
                changes.create(new_entry(dense, &id, &header, staged, None), number);
            }
            Some(Note::Fork { dense, id, header, fork, staged, turn_open }) => {
                let entry = new_entry(dense, &id, &header, staged, Some(fork));
                changes.create(SessionEntry { open_turn: turn_open, ..entry }, number);
            }
            Some(_) => late.push(offset),
            None => {}
        }
    }
    index.each_part(&mut |part| {
        changes.change(part.dense, number, base, |entry| apply_part(entry, part, number))
    })?;
    for offset in late {
        match read(offset) {
            Some(Note::Delete { .. }) if mutation::is_on(Mutation::TombstoneNotReplayed) => {}
            Some(Note::Delete { dense }) => {
                changes.change(dense, number, base, |entry| entry.deleted = true)?
            }
            Some(Note::Publish { dense }) => {
                changes.change(dense, number, base, |entry| entry.staged = false)?
            }
            Some(Note::AcceptLoss { dense, next_seq }) => changes.change(dense, number, base, |entry| {
                entry.next_seq = entry.next_seq.max(next_seq);
                entry.accepted = Lsn::new(number, offset);
            })?,
            Some(Note::Event { .. } | Note::Create { .. } | Note::Fork { .. }) | None => {}
        }
    }
    Ok(unread)
}

fn apply_part(entry: &mut SessionEntry, part: &SessionPart, number: u32) {
    if part.count == 0 {
        return;
    }
    entry.next_seq = entry.next_seq.max(part.end_seq());
    entry.bytes = entry.bytes.saturating_add(part.bytes);
    entry.first_time = entry.first_time.or(Some(part.first_time));
    entry.last_time = Some(part.last_time);
    entry.last_segment = number;
    if part.has_turn_boundary {
        entry.open_turn = part.open_turn;
    }
}
