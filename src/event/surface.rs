//! The surface: the linked list of the events that make LLM messages, as a fold over seqs alone (S1-S5).
//!
//! What always holds: slots are in seq order, one for each surface event ever folded, shadowed ones included. A
//! node's *position* is the slot of the leftmost event that it stands for: an append takes its own slot, which is
//! behind every other, and a replacement inherits its first shadowed node's. Positions therefore never change, are
//! unique on the surface, and comparing two costs nothing: no walk, no relabelling. Finding a node by seq is a
//! binary search over the slots; it visits no node.
//!
//! It never reads an event, never looks at chunks, and an operation that fails changes nothing.

mod error;
mod provenance;
mod slot;
mod sources;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

pub use error::{ReplaceError, SurfaceError};
pub use provenance::Shadows;
use slot::{Slot, SlotId};
pub(crate) use sources::Sources;

use crate::event::SurfaceOp;

/// A node of the surface (S2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SurfaceNode {
    /// The event's sequence number.
    pub seq: u64,
    /// The node before it, if it is not the first.
    pub prev: Option<u64>,
    /// The node behind it, if it is not the last.
    pub next: Option<u64>,
}

/// The surface of one session.
///
/// Appending costs O(1). A replace costs O(nodes it shadows), also when it is refused. Memory: 32 bytes for each
/// surface event, none for any other event.
///
/// ```
/// use sessionlog::event::{ReplaceError, Surface, SurfaceOp};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut surface = Surface::new();
/// for seq in [1, 2, 4, 5] {
///     surface.apply(seq, &SurfaceOp::Append)?;
/// }
/// surface.check_replace(1, 4, &[1, 2, 4], 7)?;
/// surface.apply(7, &SurfaceOp::Replace { start: 1, end: 4 })?;
///
/// assert_eq!(surface.nodes().map(|node| node.seq).collect::<Vec<_>>(), [7, 5]);
/// assert_eq!(surface.shadowed_by(2), Some(7));
/// // Ends are compared by position: 7 stands before 5.
/// assert!(surface.check_replace(7, 5, &[5, 7], 8).is_ok());
/// assert_eq!(
///     surface.check_replace(2, 5, &[], 8),
///     Err(ReplaceError::AlreadyShadowed { seq: 2, by: 7 })
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Surface {
    slots: Vec<Slot>,
    head: Option<SlotId>,
    tail: Option<SlotId>,
    len: usize,
    visited: AtomicU64,
}

/// A state of a [`Surface`] to go back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(usize);

/// What [`Surface::bounds`] found: both ends are on the surface and in order.
struct Bounds {
    first: SlotId,
    last: SlotId,
}

impl Surface {
    /// An empty surface.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of nodes on the surface.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no node is on the surface.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The seq of the first node.
    #[must_use]
    pub fn head(&self) -> Option<u64> {
        self.head.and_then(|id| self.slot(id)).map(|slot| slot.seq)
    }

    /// The seq of the last node.
    #[must_use]
    pub fn tail(&self) -> Option<u64> {
        self.tail.and_then(|id| self.slot(id)).map(|slot| slot.seq)
    }

    /// The nodes from head to tail.
    pub fn nodes(&self) -> impl Iterator<Item = SurfaceNode> + '_ {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let slot = self.slot(at?)?;
            at = slot.next;
            Some(self.node_of(slot))
        })
    }

    /// The node of `seq`, if it is on the surface now.
    #[must_use]
    pub fn node(&self, seq: u64) -> Option<SurfaceNode> {
        let slot = self.slot(self.find(seq)?)?;
        slot.by.is_none().then(|| self.node_of(slot))
    }

    /// Whether `seq` is on the surface now.
    #[must_use]
    pub fn contains(&self, seq: u64) -> bool {
        self.node(seq).is_some()
    }

    /// How many nodes replaces have visited since this value was made: each checked or applied replace adds the
    /// number of nodes it shadows, a refused one at most one more than it has sources.
    #[must_use]
    pub fn visited(&self) -> u64 {
        self.visited.load(Ordering::Relaxed)
    }

    /// Whether the event that comes next, with seq `next_seq` and these `sources`, may replace `start..=end` (A5).
    ///
    /// # Errors
    /// The first of the five [`ReplaceError`]s that applies, in their order.
    pub fn check_replace(
        &self,
        start: u64,
        end: u64,
        sources: &[u64],
        next_seq: u64,
    ) -> Result<(), ReplaceError> {
        let bounds = self.bounds(start, end, next_seq)?;
        let sources = Sources::new(sources);
        let mut visited = 0;
        let mut at = Some(bounds.first);
        let mut uncovered = None;
        while let Some((id, slot)) = at.and_then(|id| Some((id, self.slot(id)?))) {
            visited += 1;
            if !sources.contains(slot.seq) {
                uncovered = Some(slot.seq);
                break;
            }
            at = if id == bounds.last { None } else { slot.next };
        }
        self.visited.fetch_add(visited, Ordering::Relaxed);
        uncovered.map_or(Ok(()), |seq| Err(ReplaceError::Uncovered { seq }))
    }

    /// Folds the event `seq` in. Sources are not looked at: they were checked when the event was accepted, and a
    /// session that is opened again reads its surface entries alone (S3).
    ///
    /// # Errors
    /// A `seq` that is not behind every folded one, an endpoint that is not on the surface, or reversed ends.
    /// Nothing has changed then (S5).
    pub fn apply(&mut self, seq: u64, op: &SurfaceOp) -> Result<(), SurfaceError> {
        if let Some(last) = self.slots.last().filter(|last| last.seq >= seq) {
            return Err(SurfaceError::OutOfOrder { seq, last: last.seq });
        }
        let id = SlotId::new(self.slots.len()).ok_or(SurfaceError::TooMany { seq })?;
        match *op {
            SurfaceOp::Append => self.push(id, seq),
            SurfaceOp::Replace { start, end } => {
                let bounds = self.bounds(start, end, seq)?;
                self.replace(id, seq, &bounds);
            }
        }
        Ok(())
    }

    /// Where the surface is now, for [`roll_back`](Self::roll_back).
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.slots.len())
    }

    /// Undoes every event that was folded after `mark`, the last one first. It costs what folding them did.
    pub(crate) fn roll_back(&mut self, mark: Mark) {
        while self.slots.len() > mark.0 {
            let Some(slot) = self.slots.pop() else { return };
            let (first, last) = match slot.shadows {
                Some(first) => (Some(first), self.uncover(first, self.slots.len())),
                None => (None, None),
            };
            // An append had no node behind it: what was before it is the tail again.
            self.set_next(slot.prev, first.or(slot.next));
            self.set_prev(slot.next, last.or(slot.prev));
            if slot.shadows.is_none() {
                self.len = self.len.saturating_sub(1);
            }
        }
    }

    fn push(&mut self, id: SlotId, seq: u64) {
        let slot = Slot { seq, prev: self.tail, next: None, position: id, shadows: None, by: None };
        self.slots.push(slot);
        self.set_next(slot.prev, Some(id));
        self.tail = Some(id);
        self.len += 1;
    }

    fn replace(&mut self, id: SlotId, seq: u64, bounds: &Bounds) {
        let mut visited = 0;
        let mut at = Some(bounds.first);
        while let Some(here) = at {
            let Some(slot) = self.slot_mut(here) else { break };
            slot.by = Some(id);
            // The links inside the shadowed range, and those of its ends, stay: they list what the new node shadows,
            // and an undo puts them back by clearing `by`.
            at = if here == bounds.last { None } else { slot.next };
            visited += 1;
        }
        let prev = self.slot(bounds.first).and_then(|slot| slot.prev);
        let next = self.slot(bounds.last).and_then(|slot| slot.next);
        let position = self.slot(bounds.first).map_or(id, |slot| slot.position);
        self.slots.push(Slot { seq, prev, next, position, shadows: Some(bounds.first), by: None });
        self.set_next(prev, Some(id));
        self.set_prev(next, Some(id));
        let shadowed = usize::try_from(visited).unwrap_or(usize::MAX);
        self.len = self.len.saturating_sub(shadowed) + 1;
        *self.visited.get_mut() += visited;
    }

    /// Puts the range that starts at `first` and was shadowed by the slot `by` back on the surface; its last slot.
    fn uncover(&mut self, first: SlotId, by: usize) -> Option<SlotId> {
        let mut last = None;
        let mut at = Some(first);
        while let Some(here) = at {
            let Some(slot) = self.slot_mut(here).filter(|slot| slot.by.is_some_and(|b| b.index() == by))
            else {
                break;
            };
            slot.by = None;
            last = Some(here);
            at = slot.next;
            self.len += 1;
        }
        self.len = self.len.saturating_sub(1);
        last
    }

    /// The first three tests of A5 for each end, then the fourth: positions in order.
    fn bounds(&self, start: u64, end: u64, next_seq: u64) -> Result<Bounds, ReplaceError> {
        for seq in [start, end] {
            if seq >= next_seq {
                return Err(ReplaceError::UnknownSeq { seq });
            }
        }
        let find = |seq| self.find(seq).and_then(|id| Some((id, self.slot(id)?)));
        let first = find(start).ok_or(ReplaceError::NotSurface { seq: start })?;
        let last = find(end).ok_or(ReplaceError::NotSurface { seq: end })?;
        for (_, slot) in [first, last] {
            if let Some(by) = slot.by.and_then(|id| self.slot(id)) {
                return Err(ReplaceError::AlreadyShadowed { seq: slot.seq, by: by.seq });
            }
        }
        if first.1.position > last.1.position {
            return Err(ReplaceError::Reversed { start, end });
        }
        Ok(Bounds { first: first.0, last: last.0 })
    }

    fn find(&self, seq: u64) -> Option<SlotId> {
        self.slots.binary_search_by_key(&seq, |slot| slot.seq).ok().and_then(SlotId::new)
    }

    fn slot(&self, id: SlotId) -> Option<&Slot> {
        self.slots.get(id.index())
    }

    fn slot_mut(&mut self, id: SlotId) -> Option<&mut Slot> {
        self.slots.get_mut(id.index())
    }

    fn node_of(&self, slot: &Slot) -> SurfaceNode {
        let seq_of = |id: Option<SlotId>| id.and_then(|id| self.slot(id)).map(|slot| slot.seq);
        SurfaceNode { seq: slot.seq, prev: seq_of(slot.prev), next: seq_of(slot.next) }
    }

    /// Makes `next` follow `at`, or makes it the head where `at` is nothing.
    fn set_next(&mut self, at: Option<SlotId>, next: Option<SlotId>) {
        match at.and_then(|id| self.slots.get_mut(id.index())) {
            Some(slot) => slot.next = next,
            None => self.head = next,
        }
    }

    /// Makes `prev` precede `at`, or makes it the tail where `at` is nothing.
    fn set_prev(&mut self, at: Option<SlotId>, prev: Option<SlotId>) {
        match at.and_then(|id| self.slots.get_mut(id.index())) {
            Some(slot) => slot.prev = prev,
            None => self.tail = prev,
        }
    }
}

impl Clone for Surface {
    fn clone(&self) -> Self {
        Self {
            slots: self.slots.clone(),
            head: self.head,
            tail: self.tail,
            len: self.len,
            visited: AtomicU64::new(self.visited()),
        }
    }
}
