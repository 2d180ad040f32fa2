//! A stored session as a file.
//!
//! What always holds: a fork's file is complete, inherited events included. What is never done: publishing a
//! file of a session whose events could not all be read.

use std::path::Path;

use super::writer::{WriteOptions, WrittenFile, write_lines};
use crate::Result;
use crate::SessionStore;

/// Events between two reports of progress.
const PROGRESS_STEP: u64 = 512;

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
    export_session_with(store, id, root, options, &mut |_| {})
}

/// As [`export_session`]; `progress` is told now and then how many more events were read.
///
/// # Errors
/// As [`export_session`].
pub fn export_session_with(
    store: &SessionStore,
    id: &str,
    root: &Path,
    options: WriteOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported> {
    let session = store.open(id)?;
    let mut events = session.events();
    let mut read = 0;
    let next = |line: &mut String| {
        let item = events.next_line(line);
        read += 1;
        if read == PROGRESS_STEP || item.is_none() {
            progress(std::mem::take(&mut read));
        }
        item
    };
    write_lines(root, session.header(), next, options)
}
