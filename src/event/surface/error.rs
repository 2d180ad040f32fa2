//! Why the surface refuses an operation.
//!
//! The five errors of A5 are told apart by type and tested in the order they stand here.

use std::fmt;

use crate::{Error, ErrorKind};

/// A replace that the surface refuses (A5), in the order of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReplaceError {
    /// An end is no event of the log yet.
    UnknownSeq {
        /// The end.
        seq: u64,
    },
    /// An end is an event that never was on the surface.
    NotSurface {
        /// The end.
        seq: u64,
    },
    /// An end was replaced earlier.
    AlreadyShadowed {
        /// The end.
        seq: u64,
        /// The event that took its place.
        by: u64,
    },
    /// The start's position is behind the end's.
    Reversed {
        /// The start that was asked for.
        start: u64,
        /// The end that was asked for.
        end: u64,
    },
    /// A node of the range is not among the sources.
    Uncovered {
        /// The first such node, by position.
        seq: u64,
    },
}

impl fmt::Display for ReplaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSeq { seq } => {
                write!(f, "replace names {seq}, which is no event of this log yet; name nodes of the surface")
            }
            Self::NotSurface { seq } => {
                write!(f, "replace names {seq}, which is not a surface event; name nodes of the surface")
            }
            Self::AlreadyShadowed { seq, by } => {
                write!(
                    f,
                    "replace names {seq}, which is already shadowed by {by}; name {by} or what stands for it now"
                )
            }
            Self::Reversed { start, end } => {
                write!(
                    f,
                    "replace names {start}..{end}, but {start} stands behind {end} on the surface; swap the ends"
                )
            }
            Self::Uncovered { seq } => {
                write!(
                    f,
                    "replace shadows {seq}, which its sources do not name; add {seq} to sourceEventSeqs"
                )
            }
        }
    }
}

impl std::error::Error for ReplaceError {}

impl From<ReplaceError> for Error {
    fn from(error: ReplaceError) -> Self {
        Self::typed(ErrorKind::Replace, error)
    }
}

/// Why an event cannot be folded into a surface.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SurfaceError {
    /// Its replace is refused.
    Replace(ReplaceError),
    /// Events are folded in seq order, each once.
    OutOfOrder {
        /// The event.
        seq: u64,
        /// The last event that was folded.
        last: u64,
    },
    /// A surface holds at most 2^32 - 1 events, shadowed ones included.
    TooMany {
        /// The event.
        seq: u64,
    },
}

impl fmt::Display for SurfaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replace(error) => error.fmt(f),
            Self::OutOfOrder { seq, last } => {
                write!(f, "surface event {seq} comes after {last}; events are folded in seq order, each once")
            }
            Self::TooMany { seq } => {
                write!(
                    f,
                    "surface event {seq} is one too many: a surface holds 4294967295 events; start a new session"
                )
            }
        }
    }
}

impl std::error::Error for SurfaceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Replace(error) => Some(error),
            Self::OutOfOrder { .. } | Self::TooMany { .. } => None,
        }
    }
}

impl From<ReplaceError> for SurfaceError {
    fn from(error: ReplaceError) -> Self {
        Self::Replace(error)
    }
}

impl From<SurfaceError> for Error {
    fn from(error: SurfaceError) -> Self {
        match error {
            SurfaceError::Replace(error) => error.into(),
            SurfaceError::OutOfOrder { .. } => Self::typed(ErrorKind::Conflict, error),
            SurfaceError::TooMany { .. } => Self::typed(ErrorKind::TooLarge, error),
        }
    }
}
