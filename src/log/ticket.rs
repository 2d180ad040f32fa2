//! A claim on durability that can be waited for or polled.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::error::Result;

/// Resolves when everything that was appended before it was taken is durable.
#[derive(Debug)]
#[must_use = "a ticket does nothing unless waited for or polled"]
pub struct Ticket {}

impl Ticket {
    /// A ticket with nothing to wait for.
    pub(crate) fn ready() -> Self {
        Self {}
    }

    /// Blocks until the events are durable.
    ///
    /// # Errors
    /// The writer was poisoned by a failed write or sync, before or while this waits.
    pub fn wait(self) -> Result<()> {
        Ok(())
    }

    /// Whether the events are durable now; never blocks.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn is_done(&self) -> Result<bool> {
        Ok(true)
    }
}

impl Future for Ticket {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }
}
