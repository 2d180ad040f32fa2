//! A runtime of one thread and one seed: the same seed gives the same run, step by step.
//!
//! No task runs by itself. Whoever waits, or lets others run, runs steps of ready tasks, chosen by the seed; when nobody
//! is ready the clock jumps to the earliest sleeper. A wait that nothing could ever end panics and says who sleeps.
//! The clock moves by these jumps, by a microsecond for each yield with nothing to run, and by
//! [`SeededRuntime::advance`]; time spent computing does not count. All calls must come from one thread.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::random::Random;
use crate::rt::{Runtime, Step, Task, TaskControl, TaskHandle};
use crate::{Error, ErrorKind, Result};

/// After so many steps without rest, [`SeededRuntime::run_until_idle`] calls it a livelock.
const MOST_STEPS: u64 = 10_000_000;

/// The wall clock of a new runtime: 2024-01-01 00:00:00 UTC.
const START_MILLIS: i64 = 1_704_067_200_000;

/// A runtime without threads. Clones are the same runtime.
#[derive(Debug, Clone)]
pub struct SeededRuntime {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
}

struct State {
    random: Random,
    now: Duration,
    start_millis: i64,
    process_id: u32,
    tasks: Vec<Slot>,
    trace: Vec<String>,
}

struct Slot {
    name: &'static str,
    /// Away while it runs, and when it is done.
    task: Option<Box<dyn Task>>,
    status: Status,
    rung: bool,
    /// No handle and no bell is left.
    orphan: bool,
    panicked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ready,
    Running,
    Asleep(Option<Duration>),
    Done,
}

impl SeededRuntime {
    /// A runtime that does what `seed` says.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = State {
            random: Random::new(seed),
            now: Duration::ZERO,
            start_millis: START_MILLIS,
            process_id: 4242,
            tasks: Vec::new(),
            trace: Vec::new(),
        };
        Self { inner: Arc::new(Inner { state: Mutex::new(state) }) }
    }

    /// Runs one step of a ready task; `false` when none is ready.
    pub fn step_one(&self) -> bool {
        let Some((index, mut task)) = self.inner.state.lock().take_ready() else { return false };
        let mut guard = Running { inner: &self.inner, index, finished: false };
        let step = task.step();
        guard.finished = true;
        let gone = self.inner.state.lock().put_back(index, task, step);
        // Dropped without the lock: a task's end may ring bells and join others.
        drop(gone);
        true
    }

    /// As [`step_one`](Self::step_one); when none is ready, the clock first jumps to the earliest sleeper. `false` when
    /// nobody sleeps with a time either.
    pub fn pump(&self) -> bool {
        if self.step_one() {
            return true;
        }
        let Some(next) = self.inner.state.lock().next_alarm() else { return false };
        self.inner.state.lock().set_now(next);
        self.step_one()
    }

    /// Runs steps until no task is ready. The clock stands still.
    ///
    /// # Panics
    /// After ten million steps, which is a livelock.
    pub fn run_until_idle(&self) {
        let mut steps = 0;
        while self.step_one() {
            steps += 1;
            assert!(steps < MOST_STEPS, "livelock: {:?}", self.inner);
        }
    }

    /// Lets `span` pass, running what becomes ready in it at its time.
    pub fn run_for(&self, span: Duration) {
        let end = self.monotonic() + span;
        self.run_until_idle();
        while let Some(next) = self.next_alarm().filter(|next| *next <= end) {
            self.inner.state.lock().set_now(next);
            self.run_until_idle();
        }
        self.inner.state.lock().set_now(end);
        self.run_until_idle();
    }

    fn next_alarm(&self) -> Option<Duration> {
        self.inner.state.lock().next_alarm()
    }

    /// Moves the clock on. Sleepers whose time has come are ready, but nothing runs.
    pub fn advance(&self, span: Duration) {
        let mut state = self.inner.state.lock();
        let now = state.now + span;
        state.set_now(now);
    }

    /// Sets the wall clock, either way. The monotonic clock goes on.
    pub fn set_unix_millis(&self, millis: i64) {
        let mut state = self.inner.state.lock();
        state.start_millis = millis.saturating_sub(state.millis());
    }

    /// Makes the caller another process, as a forked child is.
    pub fn set_process_id(&self, id: u32) {
        self.inner.state.lock().process_id = id;
    }

    /// The steps so far: the task's name, the time in nanoseconds, and what it answered.
    #[must_use]
    pub fn trace(&self) -> Vec<String> {
        self.inner.state.lock().trace.clone()
    }

    /// The names of the tasks that are not done.
    #[must_use]
    pub fn running(&self) -> Vec<&'static str> {
        let state = self.inner.state.lock();
        state.tasks.iter().filter(|slot| slot.status != Status::Done).map(|slot| slot.name).collect()
    }
}

impl State {
    fn take_ready(&mut self) -> Option<(usize, Box<dyn Task>)> {
        let ready: Vec<usize> = (0..self.tasks.len())
            .filter(|index| self.tasks.get(*index).is_some_and(|slot| slot.status == Status::Ready))
            .collect();
        let index = *self.random.pick(&ready)?;
        let slot = self.tasks.get_mut(index)?;
        slot.status = Status::Running;
        // What rings from here on is for the next step.
        slot.rung = false;
        Some((index, slot.task.take()?))
    }

    /// Takes a task back after a step; what is answered is to be dropped.
    fn put_back(&mut self, index: usize, task: Box<dyn Task>, step: Step) -> Option<Box<dyn Task>> {
        let now = self.now;
        let slot = self.tasks.get_mut(index)?;
        self.trace.push(format!("{} {} {step:?}", slot.name, now.as_nanos()));
        slot.status = match step {
            Step::Done => Status::Done,
            Step::Again => Status::Ready,
            Step::Sleep(_) if slot.rung => Status::Ready,
            Step::Sleep(None) if slot.orphan => Status::Done,
            Step::Sleep(Some(Duration::ZERO)) => Status::Ready,
            Step::Sleep(span) => Status::Asleep(span.map(|span| now.saturating_add(span))),
        };
        if slot.status == Status::Done {
            return Some(task);
        }
        slot.task = Some(task);
        None
    }

    fn next_alarm(&self) -> Option<Duration> {
        let alarms = self.tasks.iter().filter_map(|slot| match slot.status {
            Status::Asleep(until) => until,
            _ => None,
        });
        alarms.min()
    }

    fn set_now(&mut self, now: Duration) {
        self.now = self.now.max(now);
        for slot in &mut self.tasks {
            if matches!(slot.status, Status::Asleep(Some(until)) if until <= self.now) {
                slot.status = Status::Ready;
            }
        }
    }

    fn millis(&self) -> i64 {
        i64::try_from(self.now.as_millis()).unwrap_or(i64::MAX)
    }
}

/// Marks a task whose step unwinds.
struct Running<'a> {
    inner: &'a Inner,
    index: usize,
    finished: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.finished
            && let Some(slot) = self.inner.state.lock().tasks.get_mut(self.index)
        {
            slot.status = Status::Done;
            slot.panicked = true;
        }
    }
}

impl Runtime for SeededRuntime {
    fn unix_millis(&self) -> i64 {
        let state = self.inner.state.lock();
        state.start_millis.saturating_add(state.millis())
    }

    fn monotonic(&self) -> Duration {
        self.inner.state.lock().now
    }

    fn fill_random(&self, buf: &mut [u8]) {
        self.inner.state.lock().random.fill(buf);
    }

    fn process_id(&self) -> u32 {
        self.inner.state.lock().process_id
    }

    fn host_name(&self) -> String {
        "simulated".to_owned()
    }

    fn yield_now(&self) {
        // Now and then nobody else gets the turn, as with real threads.
        let skipped = self.inner.state.lock().random.chance(1, 4);
        if skipped || !self.step_one() {
            self.advance(Duration::from_micros(1));
        }
    }

    fn wait(&self, word: &AtomicU32, seen: u32) {
        if word.load(Ordering::SeqCst) == seen {
            self.pump_or_panic("a wait");
        }
    }

    // Nobody waits in a queue: who waits looks at the word again after each step.
    fn wake_all(&self, _word: &AtomicU32) {}

    fn wake_one(&self, _word: &AtomicU32) {}

    fn spawn(&self, name: &'static str, task: Box<dyn Task>) -> Result<TaskHandle> {
        let mut state = self.inner.state.lock();
        let index = state.tasks.len();
        let (status, task) = (Status::Ready, Some(task));
        state.tasks.push(Slot { name, task, status, rung: false, orphan: false, panicked: false });
        Ok(TaskHandle::new(Arc::new(SeededTask { inner: Arc::downgrade(&self.inner), index })))
    }
}

impl SeededRuntime {
    fn pump_or_panic(&self, what: &str) {
        assert!(self.pump(), "deadlock: {what} that no task will end: {:?}", self.inner);
    }
}

/// Weak, as tasks often hold handles of tasks.
#[derive(Debug)]
struct SeededTask {
    inner: Weak<Inner>,
    index: usize,
}

impl SeededTask {
    fn status(&self) -> Option<(Status, bool)> {
        let inner = self.inner.upgrade()?;
        let state = inner.state.lock();
        state.tasks.get(self.index).map(|slot| (slot.status, slot.panicked))
    }
}

impl TaskControl for SeededTask {
    fn ring(&self) {
        let Some(inner) = self.inner.upgrade() else { return };
        if let Some(slot) = inner.state.lock().tasks.get_mut(self.index) {
            slot.rung = true;
            if let Status::Asleep(_) = slot.status {
                slot.status = Status::Ready;
            }
        }
    }

    fn is_finished(&self) -> bool {
        self.status().is_none_or(|(status, _)| status == Status::Done)
    }

    fn join(&self) -> Result<()> {
        loop {
            match self.status() {
                Some((Status::Done, true)) => {
                    return Err(Error::new(ErrorKind::Internal, "the task panicked"));
                }
                None | Some((Status::Done | Status::Running, _)) => return Ok(()),
                Some((Status::Ready | Status::Asleep(_), _)) => {}
            }
            if let Some(inner) = self.inner.upgrade() {
                SeededRuntime { inner }.pump_or_panic("a join");
            }
        }
    }
}

impl Drop for SeededTask {
    fn drop(&mut self) {
        let Some(inner) = self.inner.upgrade() else { return };
        let mut state = inner.state.lock();
        let Some(slot) = state.tasks.get_mut(self.index) else { return };
        slot.orphan = true;
        if slot.status == Status::Asleep(None) {
            slot.status = Status::Done;
            let gone = slot.task.take();
            drop(state);
            drop(gone);
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(state) = self.state.try_lock() else { return f.write_str("SeededRuntime(busy)") };
        let tasks = state.tasks.iter().map(|slot| format!("{}: {:?}", slot.name, slot.status));
        let tasks: Vec<String> = tasks.collect();
        f.debug_struct("SeededRuntime")
            .field("now", &state.now)
            .field("tasks", &tasks)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
