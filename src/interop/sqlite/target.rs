//! The file that a database is going to be.
//!
//! What is never done: replacing a file without being asked to, and replacing one whose log holds what the file does not.

use std::path::Path;

use super::source_file::{Stamp, sibling};
use crate::interop::draft::there_already;
use crate::{Error, ErrorKind, Result};

/// What SQLite keeps beside a database while it is open.
pub(super) const LOGS: &[&str] = &["-wal", "-journal", "-shm"];

/// Refuses a target that is there, unless it is to be replaced, and one that has a log beside it.
pub(super) fn refuse(target: &Path, replace: bool) -> Result<()> {
    if !replace && target.symlink_metadata().is_ok() {
        return Err(there_already(target));
    }
    for suffix in LOGS {
        let beside = sibling(target, suffix);
        if Stamp::at(&beside)?.is_some_and(|stamp| stamp.length() > 0) {
            let text = format!(
                "{} lies beside {}: a program has the database open, or died with it. Close the program, or run \
                 `sqlite3 {} 'PRAGMA wal_checkpoint(TRUNCATE)'`; nothing was touched",
                beside.display(),
                target.display(),
                target.display()
            );
            return Err(Error::new(ErrorKind::Locked, text));
        }
    }
    Ok(())
}
