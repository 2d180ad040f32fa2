//! The sources of one event as a set.
//!
//! Recorded lists are nearly always ascending and are then searched where they lie; any other is sorted once.

use std::borrow::Cow;

/// A list of source seqs, in ascending order.
pub(crate) struct Sources<'a>(Cow<'a, [u64]>);

impl<'a> Sources<'a> {
    pub(crate) fn new(list: &'a [u64]) -> Self {
        if list.is_sorted() {
            return Self(Cow::Borrowed(list));
        }
        let mut sorted = list.to_vec();
        sorted.sort_unstable();
        Self(Cow::Owned(sorted))
    }

    pub(crate) fn contains(&self, seq: u64) -> bool {
        self.0.binary_search(&seq).is_ok()
    }

    /// A seq that is listed twice.
    pub(crate) fn duplicate(&self) -> Option<u64> {
        self.0.windows(2).find_map(|pair| match pair {
            [a, b] if a == b => Some(*a),
            _ => None,
        })
    }

    /// The highest seq.
    pub(crate) fn last(&self) -> Option<u64> {
        self.0.last().copied()
    }
}
