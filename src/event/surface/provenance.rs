//! Who took whose place (S4).
//!
//! Answers come from the links that shadowed slots keep; nothing is stored for them alone.

use super::Surface;
use super::slot::SlotId;

impl Surface {
    /// The event that took the place of `seq`, if it was on the surface and is no more.
    #[must_use]
    pub fn shadowed_by(&self, seq: u64) -> Option<u64> {
        let slot = self.slot(self.find(seq)?)?;
        Some(self.slot(slot.by?)?.seq)
    }

    /// The nodes that `seq` took the place of, by position; none unless it is a replace. What those had replaced
    /// themselves is not among them.
    pub fn shadows(&self, seq: u64) -> Shadows<'_> {
        let by = self.find(seq);
        let at = by.and_then(|id| self.slot(id)).and_then(|slot| slot.shadows);
        Shadows { surface: self, by, at }
    }

    /// Whether `seq` ever was a surface event of this log, shadowed or not.
    #[must_use]
    pub fn is_surface_seq(&self, seq: u64) -> bool {
        self.find(seq).is_some()
    }
}

/// The nodes that an event took the place of.
#[derive(Debug, Clone)]
pub struct Shadows<'a> {
    surface: &'a Surface,
    by: Option<SlotId>,
    at: Option<SlotId>,
}

impl Iterator for Shadows<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let slot = self.surface.slot(self.at?)?;
        // The last shadowed slot still links to the neighbour it had, which another event shadows, or none.
        if slot.by != self.by {
            self.at = None;
            return None;
        }
        self.at = slot.next;
        Some(slot.seq)
    }
}
