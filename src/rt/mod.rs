//! The runtime seam (T2): threads, waits, wake-ups, yields, the clock and randomness come through [`Runtime`] only.
//!
//! [`RealRuntime`] serves them from the operating system. `testing::SeededRuntime` serves them from one seed on one
//! thread, so that a run can be repeated step by step. Code above holds an `Arc<dyn Runtime>` and never sees which.
//!
//! A [`Task`] is background work cut into steps; it never blocks within one for anything but a disk call.

mod point;
mod real;
mod real_task;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use crate::Result;

#[cfg(feature = "testing")]
pub use point::at_points;
pub(crate) use point::point;
pub use real::RealRuntime;

/// Threads, waits, clock and randomness.
pub trait Runtime: Send + Sync + fmt::Debug {
    /// Wall-clock time in milliseconds since 1970-01-01 UTC; it may jump either way.
    fn unix_millis(&self) -> i64;

    /// Time since some fixed moment; it never goes back.
    fn monotonic(&self) -> Duration;

    /// Fills `buf` with bytes nobody can guess (and in a test, with those of the seed).
    fn fill_random(&self, buf: &mut [u8]);

    /// The process that calls: it differs in a forked child.
    fn process_id(&self) -> u32;

    /// The name of this machine, for people to read.
    fn host_name(&self) -> String;

    /// Lets others run.
    fn yield_now(&self);

    /// Waits while `word` holds `seen`: returns when it may hold something else. It may return for no reason, so the
    /// caller looks again.
    fn wait(&self, word: &AtomicU32, seen: u32);

    /// Wakes all that wait on `word`. Change the word first.
    fn wake_all(&self, word: &AtomicU32);

    /// Wakes one that waits on `word`, if any does. Change the word first.
    fn wake_one(&self, word: &AtomicU32);

    /// Starts running `task`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) when the operating system gives no thread.
    fn spawn(&self, name: &'static str, task: Box<dyn Task>) -> Result<TaskHandle>;
}

/// Background work, cut into steps of at most one disk call each.
pub trait Task: Send {
    /// Does the next step, and says when to come back.
    fn step(&mut self) -> Step;
}

/// What a task wants after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The next step at once.
    Again,
    /// The next step when the bell is rung (also if it was rung during the last step), or when the time has passed.
    Sleep(Option<Duration>),
    /// No further step. The task is dropped.
    Done,
}

/// What a runtime keeps for a running task.
pub trait TaskControl: Send + Sync + fmt::Debug {
    /// See [`TaskHandle::ring`].
    fn ring(&self);

    /// See [`TaskHandle::is_finished`].
    fn is_finished(&self) -> bool;

    /// See [`TaskHandle::join`].
    ///
    /// # Errors
    /// See [`TaskHandle::join`].
    fn join(&self) -> Result<()>;
}

/// A running task. Dropping it leaves the task running; a task that sleeps without a time ends when the last handle
/// and bell are gone, as nothing could wake it any more.
#[derive(Debug)]
pub struct TaskHandle {
    control: Arc<dyn TaskControl>,
}

impl TaskHandle {
    /// A handle over what a runtime keeps. For implementations of [`Runtime`].
    #[must_use]
    pub fn new(control: Arc<dyn TaskControl>) -> Self {
        Self { control }
    }

    /// Wakes the task, or lets it not fall asleep after the step that it is in. Never blocks; many rings before the
    /// next step are one.
    pub fn ring(&self) {
        self.control.ring();
    }

    /// A bell of this task, to be given away.
    #[must_use]
    pub fn bell(&self) -> Bell {
        Bell { control: Arc::clone(&self.control) }
    }

    /// Whether the task is done and dropped.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.control.is_finished()
    }

    /// Waits until the task is done and dropped. It does not ask the task to end: tell it so and ring first. Returns at
    /// once when called on the task's own thread (a task may hold the last reference to what owns it) or in a forked
    /// child, which has no such thread.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when the task panicked.
    pub fn join(self) -> Result<()> {
        self.control.join()
    }
}

/// Wakes one task.
#[derive(Debug, Clone)]
pub struct Bell {
    control: Arc<dyn TaskControl>,
}

impl Bell {
    /// As [`TaskHandle::ring`].
    pub fn ring(&self) {
        self.control.ring();
    }
}

#[cfg(test)]
mod tests;
