//! Closing a log: everything durable, the close mark, CONTROL in the state closed, the background ended (C4).

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{ErrorKind, Result};
use crate::format::{Lsn, State as ControlState, frame_kind};
use crate::rt::TaskHandle;

use super::shared::Shared;
use super::types::Durability;

/// The one owner of the background tasks. Dropping it closes the log.
pub(super) struct Handle {
    pub(super) shared: Arc<Shared>,
    tasks: Mutex<Vec<TaskHandle>>,
    closed: Mutex<Option<Result<()>>>,
}

impl Handle {
    pub(super) fn new(shared: Arc<Shared>, tasks: Vec<TaskHandle>) -> Self {
        Self { shared, tasks: Mutex::new(tasks), closed: Mutex::new(None) }
    }

    pub(super) fn close(&self) -> Result<()> {
        let mut closed = self.closed.lock();
        if let Some(result) = closed.as_ref() {
            return result.clone();
        }
        let result = self.finish();
        *closed = Some(result.clone());
        result
    }

    fn finish(&self) -> Result<()> {
        let shared = &self.shared;
        if shared.state().commit.is_none() {
            return Ok(());
        }
        shared.check_process()?;
        let flushed = self.last_flush();
        {
            let mut state = shared.state();
            state.stopping = true;
            if let Some(commit) = state.commit.as_mut() {
                commit.close();
            }
        }
        for task in self.tasks.lock().drain(..) {
            task.ring();
            let joined = task.join();
            if let Err(error) = joined {
                tracing::error!(%error, "a background task ended badly");
            }
        }
        shared.wake_everyone();
        *shared.lock.lock() = None;
        flushed
    }

    /// Everything durable, the close mark, and CONTROL in the state closed. `Err` leaves the log for recovery.
    fn last_flush(&self) -> Result<()> {
        let shared = &self.shared;
        let tail = {
            let mut state = shared.state();
            let commit = state.writer()?;
            commit.check_usable()?;
            commit.tail()
        };
        shared.flush(tail, Durability::Durable)?;
        let end = {
            let mut state = shared.state();
            let commit = state.writer()?;
            match commit.push_mark(frame_kind::CLOSE) {
                Ok(end) => end,
                // Without room the next open recovers instead of going on; nothing is lost.
                Err(_) => return Ok(()),
            }
        };
        shared.flush(end, Durability::Durable)?;
        let next_dense = shared.state().live.next_dense;
        {
            let mut state = shared.state();
            state.writer()?.touch_control(|slot| {
                slot.state = ControlState::Closed;
                slot.next_dense = slot.next_dense.max(next_dense);
            });
        }
        shared.drive()?;
        shared.files.control()?.sync_data()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Err(error) = self.close()
            && error.kind() != ErrorKind::Forked
        {
            tracing::error!(%error, "closing the store failed; the next open recovers");
        }
    }
}

impl Shared {
    /// Carries out what is due until nothing is, waiting for the token if another thread has it.
    fn drive(&self) -> Result<()> {
        loop {
            {
                let mut state = self.state();
                let commit = state.writer()?;
                if let Some(fault) = commit.fault() {
                    return Err(fault.clone());
                }
                if !commit.needs_work() {
                    return Ok(());
                }
                if !state.leading {
                    state.leading = true;
                    drop(state);
                    self.lead(Lsn(u64::MAX), true);
                    continue;
                }
            }
            let seen = self.room_seen();
            if self.state().leading {
                self.await_room(seen);
            }
        }
    }
}
