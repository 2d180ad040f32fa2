//! Locks by `flock`, where there are none of the open file description.
//!
//! They belong to the handle as well, but only trying one tells whether somebody has it: a query takes a shared one for
//! some microseconds, and writers try for longer than that.

use std::fs::{File, TryLockError};
use std::io;

/// Whether a query can be what makes a writer's attempt fail.
pub(super) const QUERY_INTERFERES: bool = true;

fn answer(tried: Result<(), TryLockError>) -> io::Result<bool> {
    match tried {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// Whether it was free, and is ours now.
pub(super) fn take(file: &File) -> io::Result<bool> {
    answer(file.try_lock())
}

pub(super) fn release(file: &File) -> io::Result<()> {
    file.unlock()
}

/// Whether another handle has it.
pub(super) fn is_held(file: &File) -> io::Result<bool> {
    let free = answer(file.try_lock_shared())?;
    if free {
        file.unlock()?;
    }
    Ok(!free)
}
