//! A stored session as a file.
//!
//! What always holds: a fork's file is complete, inherited events included. What is never done: publishing a
//! file of a session whose events could not all be read.

use std::path::Path;

use super::writer::{WriteOptions, WrittenFile, write_lines};
use crate::Result;
use crate::SessionStore;

/// A session that was exported.
pub type Exported = WrittenFile;

/// Writes the session `id` of `store` below `root`.
///
/// # Errors
/// As [`write_file`](super::write_file), and a session that is not there or that has damage (kind `Corrupt`).
pub fn export_session(
    store: &SessionStore,
    id: &str,
    root: &Path,
    options: WriteOptions,
) -> Result<Exported> {
    let session = store.open(id)?;
    let mut events = session.events();
    write_lines(root, session.header(), |line| events.next_line(line), options)
}
