//! What became of a session that was put into a database.

use super::misfit::Kept;

/// A session that is in the database now, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// What was done.
    pub outcome: Outcome,
    /// The lines that were kept beside the rows written now, one entry a reason.
    pub kept: Vec<Kept>,
}

/// What was done to put a session into a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is new there.
    Added {
        /// Its events.
        events: u64,
    },
    /// Its first events were there, and the same; the others were added.
    Extended {
        /// The first event that was added.
        from: u64,
        /// How many were.
        events: u64,
    },
    /// It was there, with the same events.
    Unchanged {
        /// Its events.
        events: u64,
    },
    /// It was there with all these events and more: the database is ahead.
    Ahead {
        /// The events that were put.
        events: u64,
    },
}

impl Outcome {
    /// A short name, for programs.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Added { .. } => "written",
            Self::Extended { .. } => "extended",
            Self::Unchanged { .. } => "unchanged",
            Self::Ahead { .. } => "ahead",
        }
    }
}
