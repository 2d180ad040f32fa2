//! Replay: what an ended segment changed in the sessions, from its index and its control records.
//!
//! Opening replays the segments behind the newest directory run, and a checkpoint is a replay written down; both
//! use this one fold. Reads a segment's control records, never its events.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::index::SessionPart;
use crate::format::lsn::Lsn;

use super::live::new_entry;
use super::notes::note_of;
use super::reader::ReadBuffer;
use super::segments::Index;
use super::shared::Shared;
use super::types::{Note, SessionEntry};

/// Applies segment `number` to `entries`; sessions that are not in it yet come from `base`. Gives back the first read
/// of a control record that failed for a reason other than damage: it was passed over as if it were damaged.
///
/// # Errors
/// The segment's index or `base` cannot be read. A control record that is damaged is passed over: what it created is
/// shown under a name of its own.
pub(crate) fn replay(
    shared: &Shared,
    number: u32,
    index: &Index,
    entries: &mut BTreeMap<u64, SessionEntry>,
    base: &dyn Fn(u64) -> Result<Option<SessionEntry>>,
) -> Result<Option<Error>> {
    // Whatever may fail comes first: the caller tries again with a rebuilt index.
    let (controls, parts) = (index.controls()?, index.parts()?);
    let mut late = Vec::new();
    let mut unread = None;
    let mut buffer = ReadBuffer::default();
    for offset in controls {
        let at = Lsn::new(number, offset);
        let note = shared.with_record(&mut buffer, at, |view| Ok(note_of(view).ok().flatten()));
        match note {
            Ok(Some(Note::Create { dense, id, header, staged })) => {
                entries.insert(dense, new_entry(dense, &id, &header, staged, None));
            }
            Ok(Some(Note::Fork { dense, id, header, fork, staged })) => {
                entries.insert(dense, new_entry(dense, &id, &header, staged, Some(fork)));
            }
            Ok(Some(note)) => late.push((at, note)),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "a control record is damaged");
                if !error.is_corruption() {
                    unread.get_or_insert(error);
                }
            }
        }
    }
    for part in parts {
        let entry = find(entries, part.dense, base)?;
        apply_part(entry, &part, number);
    }
    for (at, note) in late {
        match note {
            Note::Delete { dense } => find(entries, dense, base)?.deleted = true,
            Note::Publish { dense } => find(entries, dense, base)?.staged = false,
            Note::AcceptLoss { dense, next_seq } => {
                let entry = find(entries, dense, base)?;
                entry.next_seq = entry.next_seq.max(next_seq);
                entry.accepted = at;
            }
            Note::Event { .. } | Note::Create { .. } | Note::Fork { .. } => {}
        }
    }
    Ok(unread)
}

fn find<'a>(
    entries: &'a mut BTreeMap<u64, SessionEntry>,
    dense: u64,
    base: &dyn Fn(u64) -> Result<Option<SessionEntry>>,
) -> Result<&'a mut SessionEntry> {
    match entries.entry(dense) {
        Slot::Occupied(slot) => Ok(slot.into_mut()),
        Slot::Vacant(slot) => Ok(slot.insert(base(dense)?.unwrap_or_else(|| orphan(dense)))),
    }
}

/// A session whose create record is lost: its events stay readable under this name.
pub(crate) fn orphan(dense: u64) -> SessionEntry {
    let id: Arc<str> = Arc::from(format!("lost:{dense}"));
    let header: Arc<str> =
        Arc::from(format!(r#"{{"type":"session","version":0,"id":"lost:{dense}","createdAt":0}}"#));
    new_entry(dense, &id, &header, false, None)
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
