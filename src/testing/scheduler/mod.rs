//! A runtime of real threads of which exactly one runs at a time, chosen by a seed.
//!
//! Tasks and actors have a thread of the operating system each; a baton goes around. Before and after every disk call,
//! in every sync, at every wait, yield and start of a task, and after every wake-up, the seed says who has it next. So
//! all that real threads can do to each other at these places happens, and happens again with the same seed. It is
//! sound because no lock is held at any of them (T3): a thread that met a held lock would stand still with the baton in
//! its hand, which [`Scheduler::run`] notices and reports with names.
//!
//! The clock is virtual: disk calls and yields take a seeded time, and when nobody can go on it jumps to the earliest
//! sleeper. Unlike in [`SeededRuntime`](super::SeededRuntime), who waits is only woken by a wake-up (or, rarely, for no
//! reason): a wake-up that is missing is found, as a run that nothing can end.

mod pool;
mod state;
mod task;

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::DiskOp;
use crate::log::LockScope;
use crate::rt::{Runtime, Task, TaskHandle};
use crate::{Error, ErrorKind, Result};

use state::{State, Status};

/// A run in which nothing moved for so long has a thread that stands at a lock, or spins.
const PATIENCE: Duration = Duration::from_secs(30);

/// See the module. Clones are the same scheduler.
#[derive(Clone)]
pub struct Scheduler {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    /// The run ended, well or not.
    ended: Condvar,
}

thread_local! {
    /// The place of this thread among the threads of its scheduler, and whether it may be interrupted.
    static ME: Cell<Option<usize>> = const { Cell::new(None) };
    static STEADY: Cell<bool> = const { Cell::new(false) };
}

/// What a run came to.
#[derive(Debug)]
pub struct Ran<T> {
    /// What the body answered, unless it panicked or never came to an end.
    pub value: Option<T>,
    /// What went wrong: panics, and a run that nothing could end.
    pub failure: Option<String>,
    /// One number for all choices and their times.
    pub trace_hash: u64,
    /// How often another thread went on.
    pub switches: u64,
    /// The choices, if [`Scheduler::set_traced`] asked for them.
    pub trace: Vec<String>,
}

impl Scheduler {
    /// A scheduler that does what `seed` says.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { inner: Arc::new(Inner { state: Mutex::new(State::new(seed)), ended: Condvar::new() }) }
    }

    /// Keeps the choices as text.
    pub fn set_traced(&self, on: bool) {
        self.inner.state.lock().traced = on;
    }

    /// Runs `body` and all that it starts until nothing is left to run. Once for each scheduler.
    pub fn run<T: Send + 'static>(&self, body: impl FnOnce() -> T + Send + 'static) -> Ran<T> {
        let answer = Arc::new(Mutex::new(None));
        let place = Arc::clone(&answer);
        self.start("root", move || *place.lock() = Some(body()));
        let mut state = self.inner.state.lock();
        state.pass_on();
        let mut seen = 0;
        while !state.is_over() {
            let waited = self.inner.ended.wait_for(&mut state, PATIENCE);
            if waited.timed_out() && state.turns == seen {
                let who = state.describe();
                state.stuck.get_or_insert(format!("a thread holds a lock at a disk call or wait: {who}"));
            }
            seen = state.turns;
        }
        let failure = state.failure();
        let (trace_hash, switches) = (state.trace_hash, state.switches);
        let trace = std::mem::take(&mut state.trace);
        drop(state);
        let value = answer.lock().take();
        Ran { value, failure, trace_hash, switches, trace }
    }

    /// Runs `body` on a thread of its own, which has no turn before this one gives it away.
    #[must_use = "an actor that nobody joins may outlive what it works on"]
    pub fn spawn_actor(&self, name: &'static str, body: impl FnOnce() + Send + 'static) -> Actor {
        Actor { scheduler: self.clone(), index: self.start(name, body) }
    }

    fn start(&self, name: &'static str, body: impl FnOnce() + Send + 'static) -> usize {
        let index = self.inner.state.lock().add(name);
        let scheduler = self.clone();
        // Deliberate faults of the engine go where its work goes.
        #[cfg(feature = "mutation")]
        let body = {
            let switches = crate::mutation::current();
            move || switches.within(body)
        };
        pool::run(Box::new(move || {
            ME.set(Some(index));
            scheduler.await_turn(index);
            let done = catch_unwind(AssertUnwindSafe(body));
            let mut state = scheduler.inner.state.lock();
            if let Err(panic) = done {
                state.note_panic(index, panic.as_ref());
            }
            state.finish(index);
            scheduler.pass_on(&mut state);
            drop(state);
            ME.set(None);
            STEADY.set(false);
        }));
        index
    }

    fn await_turn(&self, me: usize) {
        let mut state = self.inner.state.lock();
        let Some(turn) = state.turn_of(me) else { return };
        while state.running != Some(me) {
            turn.wait(&mut state);
        }
    }

    /// Hands the baton on and comes back when it is this thread's turn again.
    fn give_up(&self, me: usize, status: Status) {
        let mut state = self.inner.state.lock();
        state.set(me, status);
        self.pass_on(&mut state);
        if state.running == Some(me) {
            return;
        }
        let Some(turn) = state.turn_of(me) else { return };
        while state.running != Some(me) {
            turn.wait(&mut state);
        }
    }

    fn pass_on(&self, state: &mut State) {
        state.pass_on();
        if state.is_over() {
            self.inner.ended.notify_all();
        }
    }

    /// The thread that calls, if it is one of a scheduler's. It must hold no lock, and be where it may be interrupted.
    fn at_a_switch(what: &str) -> Option<usize> {
        let me = ME.get()?;
        assert!(LockScope::is_free(), "{what} under a lock of the log or a session (T3)");
        assert!(!STEADY.get(), "{what} where nothing may wait (A1, C1)");
        Some(me)
    }

    /// Somebody else may go on here.
    fn may_switch(&self, me: usize) {
        let switches = self.inner.state.lock().wants_switch();
        if switches {
            self.give_up(me, Status::Ready);
        }
    }

    /// What a simulated disk calls around its calls: time passes, and others may go on.
    pub fn pause(&self, op: DiskOp) {
        let Some(me) = Self::at_a_switch("a disk call") else { return };
        self.inner.state.lock().spend(op);
        self.may_switch(me);
    }

    /// Does `act` without a switch: it must make no disk call and wait for nothing, as an append must not.
    pub fn steady<T>(&self, act: impl FnOnce() -> T) -> T {
        struct Restore(bool);
        impl Drop for Restore {
            fn drop(&mut self) {
                STEADY.set(self.0);
            }
        }
        let _before = Restore(STEADY.replace(true));
        act()
    }

    /// Lets virtual time pass.
    pub fn sleep(&self, span: Duration) {
        let Some(me) = Self::at_a_switch("a sleep") else { return };
        let until = self.monotonic().saturating_add(span);
        self.give_up(me, Status::Asleep(Some(until)));
    }

    /// Sets the wall clock, either way. The monotonic clock goes on.
    pub fn set_unix_millis(&self, millis: i64) {
        self.inner.state.lock().set_unix_millis(millis);
    }

    fn join(&self, index: usize) -> Result<()> {
        loop {
            let done = self.inner.state.lock().is_done(index);
            if let Some(panicked) = done {
                let text = "the task panicked";
                return if panicked { Err(Error::new(ErrorKind::Internal, text)) } else { Ok(()) };
            }
            match Self::at_a_switch("a join") {
                Some(me) if me != index => self.give_up(me, Status::Joining(index)),
                _ => return Ok(()),
            }
        }
    }

    fn wake(&self, word: &AtomicU32, all: bool) {
        self.inner.state.lock().wake(address(word), all);
        // Under a lock nobody else may go on; a wake-up is no wait.
        if let Some(me) = ME.get().filter(|_| LockScope::is_free() && !STEADY.get()) {
            self.may_switch(me);
        }
    }
}

fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}

impl Runtime for Scheduler {
    fn unix_millis(&self) -> i64 {
        self.inner.state.lock().unix_millis()
    }

    fn monotonic(&self) -> Duration {
        self.inner.state.lock().now
    }

    fn fill_random(&self, buf: &mut [u8]) {
        self.inner.state.lock().random.fill(buf);
    }

    fn process_id(&self) -> u32 {
        4242
    }

    fn host_name(&self) -> String {
        "simulated".to_owned()
    }

    fn yield_now(&self) {
        let Some(me) = Self::at_a_switch("a yield") else { return };
        self.inner.state.lock().spend_yield();
        self.give_up(me, Status::Ready);
    }

    fn wait(&self, word: &AtomicU32, seen: u32) {
        let Some(me) = Self::at_a_switch("a wait") else { return };
        if word.load(Ordering::SeqCst) != seen {
            return;
        }
        let for_no_reason = self.inner.state.lock().random.chance(1, 64);
        let status = if for_no_reason { Status::Ready } else { Status::Waiting(address(word)) };
        self.give_up(me, status);
    }

    fn wake_all(&self, word: &AtomicU32) {
        self.wake(word, true);
    }

    fn wake_one(&self, word: &AtomicU32) {
        self.wake(word, false);
    }

    fn spawn(&self, name: &'static str, task: Box<dyn Task>) -> Result<TaskHandle> {
        let handle = task::start(self, name, task);
        if let Some(me) = ME.get().filter(|_| LockScope::is_free() && !STEADY.get()) {
            self.may_switch(me);
        }
        Ok(handle)
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scheduler")
    }
}

/// A thread of a scheduler that is to be joined.
#[derive(Debug)]
pub struct Actor {
    scheduler: Scheduler,
    index: usize,
}

impl Actor {
    /// Waits until it is done.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when it panicked; the run has failed then.
    pub fn join(self) -> Result<()> {
        self.scheduler.join(self.index)
    }
}

#[cfg(test)]
mod tests;
