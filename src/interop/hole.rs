//! A line or row that cannot be an event of its place (rule X1).

use std::fmt;

/// The first line or row of a session that is not the event of its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// Where it stands.
    pub at: Place,
    /// The sequence number that belongs there.
    pub seq: u64,
    /// Why it is none.
    pub reason: HoleReason,
}

/// A place in somebody's file.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line of a JSONL file.
    Line {
        /// From 1; the header is line 1.
        number: u64,
        /// The byte offset of its first byte.
        offset: u64,
    },
    /// A row of a database's `events`.
    Row {
        /// Its `seq` as stored.
        seq: i64,
    },
}

impl Hole {
    /// The line and the byte offset of its first byte, in a file of lines.
    #[must_use]
    pub fn line(&self) -> Option<(u64, u64)> {
        match self.at {
            Place::Line { number, offset } => Some((number, offset)),
            Place::Row { .. } => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { number, offset } => write!(f, "line {number} (byte {offset})"),
            Self::Row { seq } => write!(f, "row {seq}"),
        }
    }
}

/// Why a line or row is a hole.
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
    /// A column of a row holds what no event has there.
    Column {
        /// The column's name.
        column: &'static str,
        /// What it holds.
        found: String,
    },
    /// The database cannot be read there; the text is SQLite's.
    Database(String),
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
            Self::Column { .. } => "column",
            Self::Database(_) => "database",
        }
    }
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.at)?;
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
                write!(f, "the line has {length} bytes; at most {} are read", super::jsonl::MAX_LINE_BYTES)
            }
            HoleReason::Column { column, found } => write!(f, "its column {column} holds {found}"),
            HoleReason::Database(why) => write!(f, "the database cannot be read there: {why}"),
        }
    }
}
