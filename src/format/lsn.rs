//! Places in the log and the identity of a store. Always: an [`Lsn`] grows along the log and none is used twice (F1).
//! Never: dense; two neighbours may be far apart.

use std::fmt;

/// A place in the log: segment number · 2^32 + offset in the segment. 0 stands for "none".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Lsn(pub(crate) u64);

impl Lsn {
    /// No place: before everything.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn new(segment: u32, offset: u32) -> Self {
        Self(((segment as u64) << 32) | offset as u64)
    }

    pub(crate) const fn segment(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    pub(crate) const fn offset(self) -> u32 {
        self.0 as u32
    }

    /// The place `len` bytes on in the same segment, `None` behind the last possible offset.
    pub(crate) fn advance(self, len: usize) -> Option<Self> {
        let offset = u64::from(self.offset()).checked_add(u64::try_from(len).ok()?)?;
        Some(Self::new(self.segment(), u32::try_from(offset).ok()?))
    }

    pub(crate) const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}:{}", self.segment(), self.offset())
    }
}

impl fmt::Debug for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lsn({self})")
    }
}

/// The random identity of a store, in every one of its files.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct StoreId(pub(crate) [u8; 16]);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreId({self})")
    }
}

/// What the checksums of a segment's frames are bound to, so that bytes of another store or segment never validate (F7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Binding {
    pub(crate) store: StoreId,
    pub(crate) salt: u64,
    /// Epoch in the segment header. Records are bound to it and not to the epoch of their frame, so that one can be read
    /// by its place alone; an LSN is never used twice (F1), so nothing is lost by that.
    pub(crate) epoch: u64,
}

#[cfg(test)]
mod tests {
    use super::Lsn;

    #[test]
    fn halves_and_order() {
        let lsn = Lsn::new(7, u32::MAX);
        assert_eq!((lsn.segment(), lsn.offset()), (7, u32::MAX));
        assert!(lsn < Lsn::new(8, 0) && Lsn::NONE < Lsn::new(1, 0));
        assert_eq!(lsn.0, 0x7_FFFF_FFFF);
        assert_eq!(lsn.to_string(), "00000007:4294967295");
    }

    #[test]
    fn advance_never_enters_the_next_segment() {
        assert_eq!(Lsn::new(1, 512).advance(64), Some(Lsn::new(1, 576)));
        assert_eq!(Lsn::new(1, u32::MAX).advance(1), None);
        assert_eq!(Lsn::new(1, 1).advance(usize::MAX), None);
    }
}
