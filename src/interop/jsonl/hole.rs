//! A line that cannot be an event of its place (rule X1), and what it means for the file.

use std::fmt;

/// The first line of a file that is not the event of its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// The line, from 1; the header is line 1.
    pub line: u64,
    /// The byte offset of the line's first byte.
    pub offset: u64,
    /// The sequence number that belongs there.
    pub seq: u64,
    /// Why it is none.
    pub reason: HoleReason,
}

/// Why a line is a hole.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoleReason {
    /// The last line has no LF: its writer may have died in it.
    Unterminated,
    /// The bytes are not UTF-8; the offset is the bad byte's, from the line's start.
    NotUtf8 {
        /// Of the first bad byte within the line.
        at: usize,
    },
    /// Nothing but white space.
    Blank,
    /// Not one JSON value; the text says why.
    NotJson(String),
    /// A JSON value, but no object.
    NotAnObject,
    /// The event says another place.
    Place {
        /// What its `seq` (or `seq0`) reads; `None` where it has none that is a number of a place.
        found: Option<String>,
    },
    /// A packed row of chunks that cannot be expanded; the text says why.
    PackedRow(String),
    /// More bytes than a line may have.
    TooLong {
        /// Bytes of the line.
        length: u64,
    },
}

impl HoleReason {
    /// A short name, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unterminated => "unterminated",
            Self::NotUtf8 { .. } => "not-utf8",
            Self::Blank => "blank",
            Self::NotJson(_) => "not-json",
            Self::NotAnObject => "not-an-object",
            Self::Place { .. } => "place",
            Self::PackedRow(_) => "packed-row",
            Self::TooLong { .. } => "too-long",
        }
    }
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} (byte {}): ", self.line, self.offset)?;
        match &self.reason {
            HoleReason::Unterminated => f.write_str("the line has no end; its writer may have died in it"),
            HoleReason::NotUtf8 { at } => write!(f, "not UTF-8 at byte {at} of the line"),
            HoleReason::Blank => f.write_str("a blank line"),
            HoleReason::NotJson(why) => write!(f, "not one JSON value: {why}"),
            HoleReason::NotAnObject => f.write_str("a JSON value, but no object"),
            HoleReason::Place { found: Some(found) } => {
                write!(f, "its seq is {found}, its place is {}", self.seq)
            }
            HoleReason::Place { found: None } => {
                write!(f, "no seq that is a whole number; its place is {}", self.seq)
            }
            HoleReason::PackedRow(why) => write!(f, "a packed row that cannot be expanded: {why}"),
            HoleReason::TooLong { length } => {
                write!(f, "the line has {length} bytes; at most {} are read", super::MAX_LINE_BYTES)
            }
        }
    }
}
