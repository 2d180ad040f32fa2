//! Errors of SQLite as errors of this library.
//!
//! What always holds: the text says what was being done to which file, and what to do when another program is in the
//! way. What is never done: passing damage off as a failure of the system.

use std::path::Path;

use rusqlite::ffi::ErrorCode;

use crate::{Error, ErrorKind, Result};

/// A failed `operation` on the database at `path`.
pub(super) fn failed(operation: &str, path: &Path, error: rusqlite::Error) -> Error {
    let text = words(&error);
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            let text = format!(
                "{operation} {}: another program is writing to it ({text}); try again when it is done",
                path.display()
            );
            return Error::new(ErrorKind::Locked, text);
        }
        Some(ErrorCode::DiskFull) => ErrorKind::Full,
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly
            | ErrorCode::OutOfMemory
            | ErrorCode::NoLargeFileSupport,
        ) => ErrorKind::Io,
        Some(ErrorCode::TooBig) => ErrorKind::TooLarge,
        _ => return Error::corrupt_in(path, format!("{operation} it: {text}")),
    };
    Error::new(kind, format!("{operation} {}: {text}", path.display()))
}

/// Whether the database itself is at fault, so that trying again is no use but other rows may be fine.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    !matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::ReadOnly
                | ErrorCode::OutOfMemory
        )
    )
}

/// What SQLite says, without our own SQL in it.
pub(super) fn words(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

/// A result of SQLite, with what was being done.
pub(super) trait During<T> {
    /// The error says `operation` and `path`.
    fn during(self, operation: &str, path: &Path) -> Result<T>;
}

impl<T> During<T> for rusqlite::Result<T> {
    fn during(self, operation: &str, path: &Path) -> Result<T> {
        self.map_err(|error| failed(operation, path, error))
    }
}
