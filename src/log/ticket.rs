//! A claim on durability that can be waited for or polled.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::Result;
use crate::format::Lsn;

use super::shared::Shared;
use super::types::Durability;

/// Resolves when everything that was appended before it was taken is durable.
///
/// [`wait`](Self::wait) blocks, and the waiter may lead the commit itself. As a [`Future`] it needs no runtime: a
/// poll does no I/O, the background thread leads for it. Dropping a ticket cancels nothing.
#[must_use = "a ticket does nothing unless waited for or polled"]
pub(crate) struct Ticket {
    shared: Option<Arc<Shared>>,
    upto: Lsn,
}

impl Ticket {
    pub(crate) fn new(shared: Arc<Shared>, upto: Lsn) -> Self {
        Self { shared: Some(shared), upto }
    }

    /// A ticket with nothing to wait for.
    #[cfg(test)]
    pub(crate) fn ready() -> Self {
        Self { shared: None, upto: Lsn::NONE }
    }

    /// Blocks until the events are durable.
    ///
    /// # Errors
    /// The writer was poisoned by a failed write or sync, before or while this waits.
    pub(crate) fn wait(self) -> Result<()> {
        match &self.shared {
            Some(shared) => shared.flush(self.upto, Durability::Durable),
            None => Ok(()),
        }
    }

    /// Whether the events are durable now; never blocks.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub(crate) fn is_done(&self) -> Result<bool> {
        let Some(shared) = &self.shared else { return Ok(true) };
        let mut state = shared.state();
        let commit = state.writer()?;
        if commit.durable() >= self.upto {
            return Ok(true);
        }
        commit.fault().map_or(Ok(false), |fault| Err(fault.clone()))
    }
}

impl Future for Ticket {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match self.is_done() {
            Ok(false) => {}
            Ok(true) => return Poll::Ready(Ok(())),
            Err(error) => return Poll::Ready(Err(error)),
        }
        let Some(shared) = &self.shared else { return Poll::Ready(Ok(())) };
        {
            let mut state = shared.state();
            state.wakers.push((self.upto, context.waker().clone()));
            if let Some(commit) = state.commit.as_mut() {
                commit.want(self.upto, true);
            }
        }
        shared.ring_keeper();
        // The commit may have finished between the check and the registration.
        match self.is_done() {
            Ok(false) => Poll::Pending,
            Ok(true) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("upto", &self.upto).finish()
    }
}
