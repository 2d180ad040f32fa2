//! What schema 4 has no place for.
//!
//! What always holds: whatever is named here is kept in a line beside the row, or the session is refused. What is never
//! done: dropping it without a word.

use std::fmt;

/// Why an event or a header does not fit into its row.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// A field that has no column.
    UnknownField,
    /// A time that is not a whole number of milliseconds, spelled so, of at most 53 bits. The column has the nearest.
    Time,
    /// A NUL or a lone surrogate in an id, a type or a path. The column has U+FFFD in its place.
    Text,
    /// A header field of another type or beyond 53 bits. The column has NULL or the nearest.
    HeaderField,
    /// The same values, spelled or ordered otherwise than a row is rendered.
    Spelling,
}

impl Misfit {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::UnknownField, Self::Time, Self::Text, Self::HeaderField, Self::Spelling];

    /// A short name, for programs.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::UnknownField => "unknown-field",
            Self::Time => "time",
            Self::Text => "text",
            Self::HeaderField => "header-field",
            Self::Spelling => "spelling",
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownField => "a field that has no column",
            Self::Time => "a time that is no plain whole number of milliseconds",
            Self::Text => "a NUL or a lone surrogate in a text",
            Self::HeaderField => "an odd value of a header field",
            Self::Spelling => "another spelling or order of the same values",
        })
    }
}

/// What does not fit into one row: the reason and the field it is about.
pub(super) type Misfits = Vec<(Misfit, String)>;

/// Lines that were kept beside their rows for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The reason.
    pub misfit: Misfit,
    /// How many lines have it; a line can have several.
    pub count: u64,
    /// The first event that has it; `None` when it is the header.
    pub first: Option<u64>,
    /// The field it was in there.
    pub field: String,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = if self.count == 1 { "line" } else { "lines" };
        write!(f, "{} {lines} kept beside the row: {} (first in ", self.count, self.misfit)?;
        match self.first {
            None => write!(f, "the header, {})", self.field),
            Some(seq) => write!(f, "event {seq}, {})", self.field),
        }
    }
}

/// Counts `misfits` of the line at `seq` (`None`: the header's).
pub(super) fn count(kept: &mut Vec<Kept>, seq: Option<u64>, misfits: Misfits) {
    for (misfit, field) in misfits {
        match kept.iter_mut().find(|kept| kept.misfit == misfit) {
            Some(known) => known.count += 1,
            None => kept.push(Kept { misfit, count: 1, first: seq, field }),
        }
    }
}
