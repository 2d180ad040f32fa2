//! A disk in memory that can lose power, fail, fill up and rot, all repeatably.
//!
//! It keeps what calls see apart from what is durable: bytes per 512-byte sector, lengths and names each by
//! themselves. [`SimDisk::crash`] gives what a power cut would leave, for any number of seeds and at any moment, also
//! from within [`SimDisk::on_call`]: one run, many crashes. Only what the trait promises is promised: a sync of a
//! file says nothing about its name, a rename is durable only after a sync of its directory, and unsynced sectors are
//! kept or lost one by one, in any order, at any of the versions that they had.
//!
//! It never blocks (but see [`SimDisk::block_sync`]), reads no clock and draws no random number of its own.

mod cut;
mod disk;
mod fault;
mod file;
mod harm;
mod media;
mod names;
mod node;
mod pages;
mod plan;
mod state;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::disk::{CounterCells, FsKind};

pub use fault::{DiskOp, Effect};
use fault::{Fault, Strike};
use plan::Planned;
pub use plan::{CHANCES, FaultKind, FaultPlan};
use state::State;

/// A simulated disk. Clones are handles of the same process on the same disk.
#[derive(Debug, Clone)]
pub struct SimDisk {
    shared: Arc<Shared>,
    process: Arc<Process>,
}

/// What is called at every call, with its number from 0 on.
type Hook = Box<dyn FnMut(u64, DiskOp, &SimDisk) + Send>;

/// What lets others run before, within and after a call.
type Pause = dyn Fn(DiskOp) + Send + Sync;

#[derive(Default)]
struct Hooked {
    /// How often it was set or cleared.
    changes: u64,
    hook: Option<Hook>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    hook: Mutex<Hooked>,
    pause: Mutex<Option<Arc<Pause>>>,
    counters: CounterCells,
    root: PathBuf,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDisk").field("calls", &self.state.lock().calls).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Process {
    number: u64,
    dead: AtomicBool,
}

impl Default for SimDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl SimDisk {
    /// An empty disk, the root directory alone.
    #[must_use]
    pub fn new() -> Self {
        Self::of_state(State::new())
    }

    fn of_state(state: State) -> Self {
        let shared = Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            hook: Mutex::default(),
            pause: Mutex::default(),
            counters: CounterCells::default(),
            root: PathBuf::from("/simulated"),
        };
        Self::process_on(Arc::new(shared))
    }

    fn process_on(shared: Arc<Shared>) -> Self {
        let mut state = shared.state.lock();
        let number = state.next_process;
        state.next_process += 1;
        drop(state);
        Self { shared, process: Arc::new(Process { number, dead: AtomicBool::new(false) }) }
    }

    /// Another process on the same disk: it sees what this one writes, and outlives [`kill`](Self::kill).
    #[must_use]
    pub fn other_process(&self) -> Self {
        Self::process_on(Arc::clone(&self.shared))
    }

    /// A disk of its own that is as this one is now, the lock's holder and what is not durable included; without
    /// hook, planned faults and trace. It costs some pointers per file; pages are shared until one side writes.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        Self::of_state(self.state().copy())
    }

    /// As [`snapshot`](Self::snapshot), with everything written durable as it is now: copies of it that are only
    /// damaged, and not crashed, cost as little as they can.
    #[must_use]
    pub fn settled(&self) -> Self {
        Self::of_state(self.state().settled())
    }

    /// A disk of its own as a power cut at this moment leaves it; this one goes on. The seed decides what is kept of
    /// all that no sync has covered: among the seeds are nothing, everything, a prefix and a suffix in time, and any
    /// mixture, by sector and by page.
    #[must_use]
    pub fn crash(&self, seed: u64) -> Self {
        Self::of_state(self.state().after(seed))
    }

    /// This process dies: every further call of its handles fails, its lock is free, and what it had written stays
    /// (a sync under way is undone). The answer is a new process on the same disk.
    #[must_use = "every further call on the killed process's disk fails"]
    pub fn kill(&self) -> Self {
        let mut state = self.state();
        self.process.dead.store(true, Ordering::SeqCst);
        if state.held.as_ref().is_some_and(|held| held.process == self.process.number) {
            state.held = None;
        }
        drop(state);
        self.shared.changed.notify_all();
        self.other_process()
    }

    /// As [`kill`](Self::kill) for whoever holds the lock, so for the writer of a [`snapshot`](Self::snapshot).
    #[must_use = "the answer is the process to go on with"]
    pub fn kill_writer(&self) -> Self {
        self.state().held = None;
        self.kill()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock()
    }

    /// What every call starts with: dead processes do nothing, the call is noted, the hook is called, faults strike.
    fn begin(&self, op: DiskOp, what: fmt::Arguments<'_>) -> io::Result<Option<Strike>> {
        self.pause(op);
        self.check_alive()?;
        let (number, strike) = self.state().note(op, what)?;
        // Taken out while it runs, so that the calls it makes itself do not call it again.
        let (changes, hook) = {
            let mut hooked = self.shared.hook.lock();
            (hooked.changes, hooked.hook.take())
        };
        if let Some(mut hook) = hook {
            hook(number, op, self);
            let mut hooked = self.shared.hook.lock();
            if hooked.changes == changes {
                hooked.hook = Some(hook);
            }
        }
        self.check_alive()?;
        Ok(strike)
    }

    /// As [`begin`](Self::begin), for calls that fail without an effect when a fault strikes.
    fn begin_plain(&self, op: DiskOp, what: fmt::Arguments<'_>) -> io::Result<()> {
        self.begin(op, what)?.map_or(Ok(()), |strike| Err(strike.io_error()))
    }

    fn check_alive(&self) -> io::Result<()> {
        if self.process.dead.load(Ordering::SeqCst) {
            return Err(io::Error::other(
                "the process was killed (simulated); go on with what kill() returned",
            ));
        }
        Ok(())
    }

    /// Calls `hook` at every call from now on, before it takes effect, with the call's number. Calls that the hook
    /// makes are numbered but do not call it.
    pub fn on_call(&self, hook: impl FnMut(u64, DiskOp, &SimDisk) + Send + 'static) {
        self.set_hook(Some(Box::new(hook)));
    }

    /// Calls no hook any more.
    pub fn clear_on_call(&self) {
        self.set_hook(None);
    }

    fn set_hook(&self, hook: Option<Hook>) {
        let mut hooked = self.shared.hook.lock();
        hooked.changes += 1;
        hooked.hook = hook;
    }

    /// Calls `pause` before and after every call from now on, and once within each sync; it may let other threads run
    /// and time pass. It is called without any lock of the disk.
    pub fn on_pause(&self, pause: impl Fn(DiskOp) + Send + Sync + 'static) {
        *self.shared.pause.lock() = Some(Arc::new(pause));
    }

    fn pause(&self, op: DiskOp) {
        let pause = self.shared.pause.lock().clone();
        if let Some(pause) = pause {
            pause(op);
        }
    }

    /// The number that the next call gets.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// All calls so far, one line each: number, operation, path and arguments.
    #[must_use]
    pub fn trace(&self) -> Vec<String> {
        self.state().trace.clone()
    }

    /// One number for all calls so far, their arguments and their order.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.state().trace_hash
    }

    /// Whether calls are noted in the trace (at first they are). Copies of this disk do as it does.
    pub fn set_traced(&self, on: bool) {
        self.state().traced = on;
    }

    /// Lets all of `plan` strike from now on. Copies of this disk have no plan.
    pub fn plan_faults(&self, plan: FaultPlan) {
        let mut state = self.state();
        let struck = std::mem::take(&mut state.planned.struck);
        state.planned = Planned::new(plan, struck);
    }

    /// How often each kind of planned fault struck this disk, or the one that it is a copy of.
    #[must_use]
    pub fn struck(&self) -> BTreeMap<FaultKind, u64> {
        self.state().planned.struck.clone()
    }

    /// Lets the `n`th call of the kind `op` from now on (1 is the next) fail with `error`. A sync that fails drops
    /// what it should have written; other calls do nothing.
    pub fn fail_nth(&self, op: DiskOp, n: u64, error: io::ErrorKind) {
        let effect = if op.is_sync() { Effect::Part } else { Effect::Nothing };
        self.fail_nth_with(op, n, error, effect);
    }

    /// As [`fail_nth`](Self::fail_nth), with what the call does before it fails.
    pub fn fail_nth_with(&self, op: DiskOp, n: u64, error: io::ErrorKind, effect: Effect) {
        self.plan(Some(op), n, false, error, effect);
    }

    /// Lets the `n`th call of any kind from now on fail (1 is the next).
    pub fn fail_nth_call(&self, n: u64, error: io::ErrorKind) {
        self.plan(None, n, false, error, Effect::Part);
    }

    /// Lets the `n`th call of the kind `op`, and all of that kind after it, fail.
    pub fn fail_from(&self, op: DiskOp, n: u64, error: io::ErrorKind) {
        let effect = if op.is_sync() { Effect::Part } else { Effect::Nothing };
        self.plan(Some(op), n, true, error, effect);
    }

    fn plan(&self, op: Option<DiskOp>, n: u64, lasting: bool, error: io::ErrorKind, effect: Effect) {
        self.state().faults.push(Fault { op, passes: n.saturating_sub(1), lasting, error, effect });
    }

    /// Plans no faults any more. Damage done stays.
    pub fn clear_faults(&self) {
        let mut state = self.state();
        state.faults.clear();
        state.planned.plan = FaultPlan::none();
        state.stop_at = None;
    }

    /// The power goes at call number `call`: it and all later ones, of any process, do nothing and fail.
    pub fn stop_at_call(&self, call: u64) {
        self.state().stop_at = Some(call);
    }

    /// Leaves `free` bytes of space (`None`: no limit). Files take whole pages of 4096 bytes, names 64 bytes each; a
    /// write that does not fit writes what fits and fails.
    pub fn set_free_space(&self, free: Option<u64>) {
        self.state().set_free(free);
    }

    /// Whether a rename needs space for a name as well, as on file systems that copy what they change. Off at first.
    pub fn charge_renames(&self, on: bool) {
        self.state().charge_renames = on;
    }

    /// Whether the lock is one of the file alone: once its name leads elsewhere, somebody else can take it. As where a
    /// file system has no lock on directories. Off at first.
    pub fn lock_follows_name(&self, on: bool) {
        self.state().lock_follows_name = on;
    }

    /// Whether all changes are refused, as in a directory that may only be read.
    pub fn set_read_only(&self, on: bool) {
        self.state().read_only = on;
    }

    /// What the disk says of its file system.
    pub fn set_fs_kind(&self, kind: FsKind) {
        self.state().fs_kind = kind;
    }

    /// From now on syncs of files wait. What they will make durable is what was written when they were called.
    pub fn block_sync(&self) {
        self.state().syncs_blocked = true;
    }

    /// Waits until a sync waits.
    pub fn wait_until_sync_blocks(&self) {
        let mut state = self.state();
        while state.syncs_waiting == 0 {
            self.shared.changed.wait(&mut state);
        }
    }

    /// Lets the waiting syncs, and all later ones, go on.
    pub fn release_sync(&self) {
        self.state().syncs_blocked = false;
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
