//! A task on a thread of its own, with a bell.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use parking_lot::Mutex;

use super::{Step, Task, TaskControl, TaskHandle};
use crate::{Error, ErrorKind, Result};

#[derive(Debug)]
pub(super) struct RealTask {
    name: &'static str,
    bell: Sender<()>,
    finished: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
    process: u32,
}

impl RealTask {
    pub(super) fn start(name: &'static str, task: Box<dyn Task>) -> Result<TaskHandle> {
        // One place is enough: a ring that finds it taken is the same ring.
        let (bell, rung) = bounded(1);
        let finished = Arc::new(AtomicBool::new(false));
        let flag = Finished(Arc::clone(&finished));
        let started = thread::Builder::new().name(name.to_owned()).spawn(move || run(task, &rung, flag));
        let thread = started.map_err(|e| {
            Error::new(ErrorKind::Io, format!("start the thread {name}: {e}. Are there too many threads?"))
        })?;
        let process = std::process::id();
        let control = Self { name, bell, finished, thread: Mutex::new(Some(thread)), process };
        Ok(TaskHandle::new(Arc::new(control)))
    }
}

impl TaskControl for RealTask {
    fn ring(&self) {
        // Full: it was rung already. Disconnected: it is done.
        let _ = self.bell.try_send(());
    }

    fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    fn join(&self) -> Result<()> {
        let Some(thread) = self.thread.lock().take() else { return Ok(()) };
        if thread.thread().id() == thread::current().id() || self.process != std::process::id() {
            return Ok(());
        }
        thread.join().map_err(|_| Error::new(ErrorKind::Internal, format!("the task {} panicked", self.name)))
    }
}

/// Says that the task is gone when it is dropped, also while a panic unwinds.
struct Finished(Arc<AtomicBool>);

impl Drop for Finished {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn run(task: Box<dyn Task>, rung: &Receiver<()>, flag: Finished) {
    // Locals are dropped in reverse: the task is gone when the flag says so.
    let _flag = flag;
    let mut task = task;
    loop {
        match task.step() {
            Step::Again => {}
            Step::Sleep(None) => {
                if rung.recv().is_err() {
                    return;
                }
            }
            Step::Sleep(Some(span)) => {
                if rung.recv_timeout(span) == Err(RecvTimeoutError::Disconnected) {
                    thread::sleep(span);
                }
            }
            Step::Done => return,
        }
    }
}
