//! Why a value is not what a record may carry, with the path of the value.

use std::fmt;

use super::path;
use super::scan::Fault;
use crate::error::{Error, ErrorKind};

/// The class of a [`JsonError`]. New classes may be added.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JsonErrorKind {
    /// The text is not JSON.
    Syntax,
    /// A number whose text overflows a double.
    NumberOverflow,
    /// Nesting beyond [`MAX_DEPTH`](super::MAX_DEPTH).
    TooDeep,
    /// NaN or an infinity, which JSON has no spelling for.
    NotFinite,
    /// An integer beyond 64 bits, which readers would round.
    IntegerRange,
    /// A map key that is not a string.
    KeyType,
    /// The value's own `Serialize` refused.
    Refused,
}

/// What is wrong with a JSON value, where in the text, and at which path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    kind: JsonErrorKind,
    path: String,
    offset: usize,
    message: String,
}

impl JsonError {
    pub(crate) fn new(kind: JsonErrorKind, path: String, offset: usize, message: impl Into<String>) -> Self {
        Self { kind, path, offset, message: message.into() }
    }

    pub(crate) fn at(text: &str, fault: Fault) -> Self {
        Self::new(fault.kind, path::of_offset(text, fault.at), fault.at, fault.message)
    }

    /// The class.
    #[must_use]
    pub fn kind(&self) -> JsonErrorKind {
        self.kind
    }

    /// The path of the value, `$` being the whole: `$.content[0].text`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The byte in the text (for typed data: in what was written before it) where it was noticed.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} (byte {})", self.message, self.path, self.offset)
    }
}

impl std::error::Error for JsonError {}

impl From<JsonError> for Error {
    fn from(e: JsonError) -> Self {
        match e.kind {
            JsonErrorKind::Syntax => Self::new(ErrorKind::InvalidJson, format!("not a JSON value: {e}")),
            _ => Self::new(ErrorKind::InvalidValue, format!("a value that JSON cannot carry: {e}")),
        }
    }
}
