//! Which sessions' listeners run on this thread right now.
//!
//! Always: a session is entered for exactly as long as one of its listeners runs on the thread. It is what turns
//! an append from inside a listener into an error (A8); it never blocks and never looks at other threads.

use std::cell::RefCell;

use crate::error::{Error, ErrorKind, Result};

/// What kind of listener runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Created,
    Event,
    Flush,
}

/// The key that stands for the whole store.
pub(super) const STORE: u64 = 0;

thread_local! {
    static INSIDE: RefCell<Vec<(u64, Kind)>> = const { RefCell::new(Vec::new()) };
}

/// Ends the stay when dropped, also by an unwinding listener.
pub(super) struct Stay(());

/// Marks a listener of the session with this key as running on this thread.
pub(super) fn enter(key: u64, kind: Kind) -> Stay {
    INSIDE.with_borrow_mut(|stack| stack.push((key, kind)));
    Stay(())
}

/// Refuses an append when any listener of the session with this key runs on this thread.
pub(super) fn refuse_append(key: u64) -> Result<()> {
    refuse("append", |(own, _)| own == key)
}

/// Refuses a flush when a flush listener of the session (or store) with this key runs on this thread: it would run
/// itself again.
pub(super) fn refuse_flush(key: u64) -> Result<()> {
    refuse("flush", |own| own == (key, Kind::Flush))
}

fn refuse(operation: &str, matches: impl Fn((u64, Kind)) -> bool) -> Result<()> {
    if INSIDE.with_borrow(|stack| stack.iter().copied().any(matches)) {
        return Err(Error::new(
            ErrorKind::Listener,
            format!(
                "{operation} from inside a listener of the same session; do it after the listener returned (A8)"
            ),
        ));
    }
    Ok(())
}

impl Drop for Stay {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|stack| {
            stack.pop();
        });
    }
}
