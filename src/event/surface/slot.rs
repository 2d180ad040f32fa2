//! One place in the surface's table, and its number.
//!
//! A number is never zero inside, so an optional one takes four bytes. It never names a slot of another surface:
//! numbers do not leave this module's parent.

use std::num::NonZeroU32;

/// The number of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlotId(NonZeroU32);

impl SlotId {
    /// The id of the slot at `index`; nothing beyond 2^32 - 2.
    pub(super) fn new(index: usize) -> Option<Self> {
        let number = u32::try_from(index).ok()?.checked_add(1)?;
        NonZeroU32::new(number).map(Self)
    }

    /// Where the slot lies in the table.
    pub(super) fn index(self) -> usize {
        self.0.get().saturating_sub(1) as usize
    }
}

/// A surface event: on the surface while `by` is nothing, shadowed by that slot otherwise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) seq: u64,
    /// The neighbours; of a shadowed slot, those it had when it was shadowed.
    pub(super) prev: Option<SlotId>,
    pub(super) next: Option<SlotId>,
    /// The slot of the leftmost event that this node stands for.
    pub(super) position: SlotId,
    /// The first of the nodes that this one took the place of.
    pub(super) shadows: Option<SlotId>,
    pub(super) by: Option<SlotId>,
}

const _: () = assert!(size_of::<Slot>() == 32, "Surface documents 32 bytes for each surface event");
