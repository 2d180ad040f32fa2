//! A task of the engine on a thread of the scheduler, with a bell.

use std::sync::{Arc, Weak};

use crate::Result;
use crate::rt::{Step, Task, TaskControl, TaskHandle};

use super::state::Status;
use super::{Inner, Scheduler};

/// Weak, as tasks often hold handles of tasks.
#[derive(Debug)]
struct Scheduled {
    inner: Weak<Inner>,
    index: usize,
}

pub(super) fn start(scheduler: &Scheduler, name: &'static str, task: Box<dyn Task>) -> TaskHandle {
    let runner = scheduler.clone();
    let index = scheduler.start(name, move || run(&runner, task));
    TaskHandle::new(Arc::new(Scheduled { inner: Arc::downgrade(&scheduler.inner), index }))
}

fn run(scheduler: &Scheduler, mut task: Box<dyn Task>) {
    let Some(me) = super::ME.get() else { return };
    loop {
        scheduler.inner.state.lock().begin_step(me);
        let status = match task.step() {
            Step::Done => return,
            Step::Again => Status::Ready,
            Step::Sleep(span) => {
                let asleep = scheduler.inner.state.lock().asleep(me, span);
                let Some(status) = asleep else { return };
                status
            }
        };
        scheduler.give_up(me, status);
        let orphan = matches!(status, Status::Asleep(None)) && scheduler.inner.state.lock().is_abandoned(me);
        if orphan {
            return;
        }
    }
}

impl Scheduled {
    fn scheduler(&self) -> Option<Scheduler> {
        self.inner.upgrade().map(|inner| Scheduler { inner })
    }
}

impl TaskControl for Scheduled {
    fn ring(&self) {
        if let Some(inner) = self.inner.upgrade() {
            inner.state.lock().ring(self.index);
        }
    }

    fn is_finished(&self) -> bool {
        self.inner.upgrade().is_none_or(|inner| inner.state.lock().is_done(self.index).is_some())
    }

    fn join(&self) -> Result<()> {
        self.scheduler().map_or(Ok(()), |scheduler| scheduler.join(self.index))
    }
}

impl Drop for Scheduled {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.upgrade() {
            inner.state.lock().orphan(self.index);
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inner")
    }
}
