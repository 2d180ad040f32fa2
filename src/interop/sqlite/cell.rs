//! One value of a row, of whatever type it turns out to be.
//!
//! What always holds: a value beyond its limit is known by its length alone and never loaded.

use rusqlite::Row;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// A value as it was found.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    /// A TEXT that is not UTF-8.
    BadText(Vec<u8>),
    Blob(Vec<u8>),
    /// Bytes that were not loaded.
    TooLong(u64),
}

/// The expressions that [`Cell::read`] takes two places of a row for: the value within `most` bytes, and its length.
pub(super) fn limited(column: &str, most: usize) -> String {
    format!("iif(octet_length({column}) <= {most}, {column}, NULL), octet_length({column})")
}

impl Cell {
    /// The value at `at` of a query that [`limited`] wrote.
    pub(super) fn read(row: &Row<'_>, at: usize) -> rusqlite::Result<Self> {
        let cell = Self::of(row.get_ref(at)?);
        if cell == Self::Null
            && let ValueRef::Integer(length) = row.get_ref(at.saturating_add(1))?
        {
            return Ok(Self::TooLong(u64::try_from(length).unwrap_or(0)));
        }
        Ok(cell)
    }

    /// The value at `at` of a query that loads it whatever its length.
    pub(super) fn value(row: &Row<'_>, at: usize) -> rusqlite::Result<Self> {
        Ok(Self::of(row.get_ref(at)?))
    }

    fn of(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Self::Text(text.to_owned()),
                Err(_) => Self::BadText(bytes.to_vec()),
            },
            ValueRef::Blob(bytes) => Self::Blob(bytes.to_vec()),
        }
    }

    /// What it is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Integer(_) => "an integer",
            Self::Real(_) => "a REAL",
            Self::Text(_) => "a text",
            Self::BadText(_) => "a text that is not UTF-8",
            Self::Blob(_) => "a BLOB",
            Self::TooLong(_) => "a value that is too long",
        }
    }

    /// Bytes that it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::BadText(bytes) | Self::Blob(bytes) => bytes.len(),
            _ => 8,
        }
    }

    /// Whether it comes behind `other` in SQLite's order of values.
    pub(super) fn is_behind(&self, other: &Self) -> bool {
        let (own, others) = (self.rank(), other.rank());
        if own.0 != others.0 {
            return own.0 > others.0;
        }
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a > b,
            (Self::Real(a), Self::Real(b)) => a > b,
            // Between the two kinds of numbers SQLite compares exactly; here it is enough to stop at equal ones.
            (Self::Integer(_), Self::Real(_)) | (Self::Real(_), Self::Integer(_)) => true,
            _ => own.1 > others.1,
        }
    }

    fn rank(&self) -> (u8, &[u8]) {
        match self {
            Self::Null => (0, &[]),
            Self::Integer(_) | Self::Real(_) => (1, &[]),
            Self::Text(text) => (2, text.as_bytes()),
            Self::BadText(bytes) => (2, bytes),
            Self::Blob(bytes) => (3, bytes),
            Self::TooLong(_) => (4, &[]),
        }
    }
}

/// As a value to compare with.
impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null | Self::TooLong(_) => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::BadText(bytes) => ValueRef::Text(bytes),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_sqlite() {
        let cells = [
            Cell::Null,
            Cell::Integer(-1),
            Cell::Integer(2),
            Cell::Text(String::new()),
            Cell::Text("a".to_owned()),
            Cell::BadText(vec![b'b', 0xFF]),
            Cell::Blob(vec![]),
            Cell::Blob(vec![1]),
        ];
        for (i, cell) in cells.iter().enumerate() {
            for (j, other) in cells.iter().enumerate() {
                assert_eq!(cell.is_behind(other), i > j, "{cell:?} {other:?}");
            }
        }
        assert!(
            Cell::Real(1.5).is_behind(&Cell::Real(f64::NEG_INFINITY))
                && !Cell::Real(1.5).is_behind(&Cell::Real(1.5))
        );
    }
}
