//! Which sessions damage leaves in doubt (P2).
//!
//! Damage whose sessions are unknown may have taken the newest events of any session that was there. A later event
//! of the session proves that nothing before it is missing unnoticed, since seqs are contiguous.

use crate::error::{Error, ErrorKind, Result};
use crate::format::{LiveDamage, Lsn, names};
use crate::mutation::{self, Mutation};

use super::places::{Piece, Span};
use super::shared::Shared;
use super::types::SessionEntry;

/// No stored event takes fewer bytes.
const SMALLEST_EVENT: u64 = 17;

/// Why a session is not proven whole, and where it may go on once that is accepted.
pub(crate) struct Doubt {
    pub error: Error,
    pub next_seq: u64,
}

impl Shared {
    /// See the module. `None` = proven whole.
    pub(crate) fn doubt(&self, entry: &SessionEntry) -> Result<Option<Doubt>> {
        let damage = self.live_set().damage;
        if damage.is_empty() || mutation::is_on(Mutation::DoubtIgnored) {
            return Ok(None);
        }
        let last = self.last_place(entry)?;
        let mut lost = 0u64;
        let mut first = None;
        for spot in &damage {
            let at = Lsn::new(spot.segment, spot.from);
            if at < last || at < entry.accepted || self.created_after(entry, spot) {
                continue;
            }
            let bytes = u64::from(spot.to.saturating_sub(spot.from)).min(u64::from(u32::MAX));
            lost = lost.saturating_add(bytes / SMALLEST_EVENT).saturating_add(1);
            first.get_or_insert(*spot);
        }
        let Some(spot) = first else { return Ok(None) };
        let error = Error::new(
            ErrorKind::Corrupt,
            format!(
                "session {}: events from seq {} on may be lost to the damage in {} at byte {}; \
                 resume it accepting the loss, or restore the file",
                entry.id,
                entry.next_seq,
                names::segment(spot.segment),
                spot.from
            ),
        );
        if mutation::is_on(Mutation::SeqReusedAfterLoss) {
            lost = 0;
        }
        Ok(Some(Doubt { error, next_seq: entry.next_seq.saturating_add(lost) }))
    }

    /// Place of the newest event that is readable.
    fn last_place(&self, entry: &SessionEntry) -> Result<Lsn> {
        if entry.last_segment == 0 {
            return Ok(Lsn::NONE);
        }
        let part = match self.part_in(entry.last_segment, entry.dense) {
            Ok(part) => part,
            // Gone as a whole, the index as well: what a run of the directory knows of the session is all there is.
            Err(error) if error.is_corruption() || error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        let Some(part) = part else { return Ok(Lsn::new(entry.last_segment, 0)) };
        let offsets = self.offsets_in(entry.last_segment, &part, part.count.saturating_sub(1), part.count)?;
        Ok(Lsn::new(entry.last_segment, offsets.first().copied().unwrap_or(0)))
    }

    /// Whether damage stands behind the session's beginning, so that it may have taken its publish record. What was
    /// appended since does not matter: of a staged session nothing tells whether it was appended after it was published.
    pub(crate) fn may_have_been_published(&self, entry: &SessionEntry) -> Result<bool> {
        let damage = self.live_set().damage;
        if damage.is_empty() {
            return Ok(false);
        }
        let first = self.first_place(entry)?;
        Ok(damage.iter().any(|spot| {
            Lsn::new(spot.segment, spot.to.max(spot.from)) > first && !self.created_after(entry, spot)
        }))
    }

    /// Place of the oldest event that it holds itself and that is readable.
    fn first_place(&self, entry: &SessionEntry) -> Result<Lsn> {
        let own = Span { entry: entry.clone(), from: entry.own_first, to: entry.next_seq };
        for piece in self.pieces(&own)? {
            if let Piece::Part { segment, part, .. } = piece {
                let offsets = self.offsets_in(segment, &part, 0, 1)?;
                return Ok(Lsn::new(segment, offsets.first().copied().unwrap_or(0)));
            }
        }
        Ok(Lsn::NONE)
    }

    /// The session came into being behind the damage: the next segment's header tells which ids were handed out.
    fn created_after(&self, entry: &SessionEntry, spot: &LiveDamage) -> bool {
        let after = self.segments.read().next_of(spot.segment);
        super::segments::read_header(self, after).is_ok_and(|(header, _)| entry.dense >= header.next_dense)
    }
}
