//! A flush under way: the log's part and the `flush` listeners', to be waited for or polled.
//!
//! Always: it is done when the log has reached the asked durability and every listener has settled, and it then
//! gives the first failure. Dropping it cancels nothing. Never: polling it does no I/O.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::log::Ticket;
use crate::rt::{Runtime, Step, Task};

use super::core::Core;
use super::listeners::FlushCall;

/// The flush listeners of one flush, all running at once.
pub(super) struct Round {
    runtime: Arc<dyn Runtime>,
    /// Listeners that have not settled yet.
    left: AtomicU32,
    outcome: Mutex<Outcome>,
}

#[derive(Default)]
struct Outcome {
    failure: Option<Error>,
    wakers: Vec<Waker>,
}

struct Call {
    call: FlushCall,
    round: Arc<Round>,
    settled: bool,
}

impl Round {
    /// Starts the calls, each as a task of its own; none without calls.
    pub(super) fn start(runtime: &Arc<dyn Runtime>, calls: Vec<FlushCall>) -> Option<Arc<Self>> {
        if calls.is_empty() {
            return None;
        }
        let left = AtomicU32::new(u32::try_from(calls.len()).unwrap_or(u32::MAX));
        let round =
            Arc::new(Self { runtime: Arc::clone(runtime), left, outcome: Mutex::new(Outcome::default()) });
        for call in calls {
            let task = Box::new(Call { call, round: Arc::clone(&round), settled: false });
            // A task that could not be started settles when it is dropped, with the reason noted here.
            if let Err(error) = runtime.spawn("flush-listener", task) {
                round.outcome.lock().failure.get_or_insert(error);
            }
        }
        Some(round)
    }

    /// Waits until all have settled.
    pub(super) fn wait(&self) -> Result<()> {
        loop {
            let left = self.left.load(Ordering::Acquire);
            if left == 0 {
                return self.result();
            }
            self.runtime.wait(&self.left, left);
        }
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Result<()>> {
        let mut outcome = self.outcome.lock();
        if self.left.load(Ordering::Acquire) == 0 {
            drop(outcome);
            return Poll::Ready(self.result());
        }
        if !outcome.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            outcome.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }

    fn result(&self) -> Result<()> {
        self.outcome.lock().failure.clone().map_or(Ok(()), Err)
    }

    fn settle(&self, result: Result<()>) {
        let wakers = {
            let mut outcome = self.outcome.lock();
            if let Err(error) = result {
                outcome.failure.get_or_insert(error);
            }
            if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                std::mem::take(&mut outcome.wakers)
            } else {
                Vec::new()
            }
        };
        self.runtime.wake_all(&self.left);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Task for Call {
    fn step(&mut self) -> Step {
        if !self.settled {
            let result = self.call.run();
            self.settled = true;
            self.round.settle(result);
        }
        Step::Done
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.settled {
            self.round.settle(Ok(()));
        }
    }
}

/// A flush under way. Wait for it with [`wait`](Self::wait), or await it: it needs no particular runtime.
#[must_use = "the flush goes on without it, but nobody hears of its outcome"]
pub struct FlushTicket {
    log: Ticket,
    log_result: Option<Result<()>>,
    round: Option<Arc<Round>>,
    /// The session that is flushed, and how many of its events are then durable.
    session: Option<(Arc<Core>, u64)>,
}

impl FlushTicket {
    pub(super) fn new(log: Ticket, round: Option<Arc<Round>>, session: Option<(Arc<Core>, u64)>) -> Self {
        Self { log, log_result: None, round, session }
    }

    /// Waits until the flush is durable and every flush listener has settled.
    ///
    /// # Errors
    /// The failure of the log ([`ErrorKind::Poisoned`](crate::ErrorKind::Poisoned) and others), else the first one
    /// of a flush listener.
    pub fn wait(self) -> Result<()> {
        let Self { log, log_result, round, session } = self;
        let log = match log_result {
            Some(result) => result,
            None => noted(log.wait(), session.as_ref()),
        };
        let listeners = round.map_or(Ok(()), |round| round.wait());
        log.and(listeners)
    }
}

/// Tells the session what became durable.
fn noted(result: Result<()>, session: Option<&(Arc<Core>, u64)>) -> Result<()> {
    if let (Ok(()), Some((core, seq))) = (&result, session) {
        core.note_durable(*seq);
    }
    result
}

impl Future for FlushTicket {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.log_result.is_none()
            && let Poll::Ready(result) = Pin::new(&mut this.log).poll(context)
        {
            this.log_result = Some(noted(result, this.session.as_ref()));
        }
        let listeners = match &this.round {
            Some(round) => round.poll(context),
            None => Poll::Ready(Ok(())),
        };
        match (&this.log_result, listeners) {
            (Some(log), Poll::Ready(listeners)) => Poll::Ready(log.clone().and(listeners)),
            _ => Poll::Pending,
        }
    }
}

impl std::fmt::Debug for FlushTicket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlushTicket").finish_non_exhaustive()
    }
}
