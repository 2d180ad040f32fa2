//! What reading somebody's session came to (rule X1).

use super::hole::Hole;

/// What a session on offer is, beyond its events.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Events before the first hole.
    pub events: u64,
    /// Bytes of the header and of those events: of their lines in a file, of their values in a database.
    pub kept_bytes: u64,
    /// Bytes of all there is.
    pub total_bytes: u64,
    /// Lines or rows behind the kept ones.
    pub lost_entries: u64,
    /// How the events end.
    pub ending: Ending,
    /// Packed rows that were expanded.
    pub packed_rows: u64,
    /// Events that came out of them.
    pub packed_events: u64,
}

impl Verdict {
    /// Bytes behind the kept ones.
    #[must_use]
    pub fn lost_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.kept_bytes)
    }
}

/// How the events of a session on offer end.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// With the last line or row.
    Whole,
    /// In a torn tail: no later line or row ends a turn, so a writer died there.
    Torn(Hole),
    /// In damage: a later line or row ends a turn, so what is missing had been there.
    Damaged(Hole),
}
