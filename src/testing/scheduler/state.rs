//! Who is where, and whose turn is next.

use std::any::Any;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Condvar;

use crate::testing::DiskOp;
use crate::testing::random::{Random, mix};

/// The wall clock of a new run: 2024-01-01 00:00:00 UTC.
const START_MILLIS: i64 = 1_704_067_200_000;

/// More turns than any run takes.
const MOST_TURNS: u64 = 3_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ready,
    Running,
    /// At the word of this address.
    Waiting(usize),
    /// Until the bell rings or the time has come.
    Asleep(Option<Duration>),
    /// Until that thread is done.
    Joining(usize),
    Done,
}

struct Slot {
    name: &'static str,
    status: Status,
    turn: Arc<Condvar>,
    rung: bool,
    /// No handle and no bell is left.
    orphan: bool,
    panicked: bool,
}

pub(super) struct State {
    pub(super) random: Random,
    pub(super) now: Duration,
    start_millis: i64,
    slots: Vec<Slot>,
    /// Who has the baton.
    pub(super) running: Option<usize>,
    /// At a place where it may happen, another thread goes on so many times out of 16.
    switchiness: u64,
    pub(super) turns: u64,
    pub(super) switches: u64,
    pub(super) stuck: Option<String>,
    panics: Vec<String>,
    pub(super) trace_hash: u64,
    pub(super) traced: bool,
    pub(super) trace: Vec<String>,
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let switchiness = random.pick(&[1, 3, 8, 14]).copied().unwrap_or(8);
        Self {
            random,
            now: Duration::ZERO,
            start_millis: START_MILLIS,
            slots: Vec::new(),
            running: None,
            switchiness,
            turns: 0,
            switches: 0,
            stuck: None,
            panics: Vec::new(),
            trace_hash: 0,
            traced: false,
            trace: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, name: &'static str) -> usize {
        let (status, turn) = (Status::Ready, Arc::new(Condvar::new()));
        self.slots.push(Slot { name, status, turn, rung: false, orphan: false, panicked: false });
        self.slots.len() - 1
    }

    pub(super) fn turn_of(&self, index: usize) -> Option<Arc<Condvar>> {
        self.slots.get(index).map(|slot| Arc::clone(&slot.turn))
    }

    pub(super) fn set(&mut self, index: usize, status: Status) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.status = status;
        }
    }

    /// Chooses who goes on.
    pub(super) fn pass_on(&mut self) {
        self.turns += 1;
        if self.turns > MOST_TURNS {
            let who = self.describe();
            self.stuck.get_or_insert(format!("a run without an end: {who}"));
        }
        if self.stuck.is_some() {
            self.running = None;
            return;
        }
        let mut next = self.choose();
        if next.is_none()
            && let Some(alarm) = self.next_alarm()
        {
            self.set_now(alarm);
            next = self.choose();
        }
        if next.is_none() && !self.all_done() {
            let who = self.describe();
            self.stuck = Some(format!("nothing can end this run: {who}"));
        }
        if next != self.running {
            self.switches += 1;
        }
        self.running = next;
        let Some(slot) = next.and_then(|next| self.slots.get_mut(next)) else { return };
        slot.status = Status::Running;
        slot.turn.notify_one();
        let number = next.unwrap_or(0) as u64;
        let nanos = u64::try_from(self.now.as_nanos()).unwrap_or(u64::MAX);
        self.trace_hash = mix(self.trace_hash ^ mix(number.wrapping_add(nanos << 8)));
        if self.traced {
            let line = format!("{} {number} {}", self.now.as_micros(), slot.name);
            self.trace.push(line);
        }
    }

    fn choose(&mut self) -> Option<usize> {
        let ready = |slot: &&Slot| slot.status == Status::Ready;
        let count = self.slots.iter().filter(ready).count();
        let chosen = self.random.index(count);
        let mut all = self.slots.iter().enumerate().filter(|(_, slot)| ready(slot));
        all.nth(chosen).map(|(index, _)| index)
    }

    fn all_done(&self) -> bool {
        self.slots.iter().all(|slot| slot.status == Status::Done)
    }

    pub(super) fn is_over(&self) -> bool {
        self.stuck.is_some() || self.all_done()
    }

    pub(super) fn wants_switch(&mut self) -> bool {
        self.turns += 1;
        self.random.chance(self.switchiness, 16)
    }

    /// A thread is at its end: those who wait for it go on.
    pub(super) fn finish(&mut self, index: usize) {
        self.set(index, Status::Done);
        for slot in self.slots.iter_mut().filter(|slot| slot.status == Status::Joining(index)) {
            slot.status = Status::Ready;
        }
    }

    /// Whether it is done, and then whether it panicked.
    pub(super) fn is_done(&self, index: usize) -> Option<bool> {
        let slot = self.slots.get(index)?;
        (slot.status == Status::Done).then_some(slot.panicked)
    }

    pub(super) fn note_panic(&mut self, index: usize, panic: &(dyn Any + Send)) {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
        if let Some(slot) = self.slots.get_mut(index) {
            slot.panicked = true;
            self.panics.push(format!("{} panicked: {text}", slot.name));
        }
    }

    pub(super) fn failure(&self) -> Option<String> {
        let all: Vec<&str> = self.panics.iter().chain(&self.stuck).map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    pub(super) fn wake(&mut self, word: usize, all: bool) {
        let waits = |slot: &&mut Slot| slot.status == Status::Waiting(word);
        let count = self.slots.iter_mut().filter(waits).count();
        let one = if all { 0 } else { self.random.index(count) };
        let take = if all { count } else { 1 };
        for slot in self.slots.iter_mut().filter(waits).skip(one).take(take) {
            slot.status = Status::Ready;
        }
    }

    pub(super) fn ring(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.rung = true;
        if let Status::Asleep(_) = slot.status {
            slot.status = Status::Ready;
        }
    }

    /// Rings from here on are for the step after the one that begins.
    pub(super) fn begin_step(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.rung = false;
        }
    }

    /// How a task that wants to sleep goes on; `None` when nothing could wake it.
    pub(super) fn asleep(&self, index: usize, span: Option<Duration>) -> Option<Status> {
        let slot = self.slots.get(index)?;
        match span {
            _ if slot.rung => Some(Status::Ready),
            None if slot.orphan => None,
            None => Some(Status::Asleep(None)),
            Some(span) => Some(Status::Asleep(Some(self.now.saturating_add(span)))),
        }
    }

    /// The last handle of a task is gone.
    pub(super) fn orphan(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.orphan = true;
        if slot.status == Status::Asleep(None) {
            slot.status = Status::Ready;
        }
    }

    /// It slept without a time, nobody rang, and nobody can.
    pub(super) fn is_abandoned(&self, index: usize) -> bool {
        self.slots.get(index).is_some_and(|slot| slot.orphan && !slot.rung)
    }

    fn next_alarm(&self) -> Option<Duration> {
        let alarms = self.slots.iter().filter_map(|slot| match slot.status {
            Status::Asleep(until) => until,
            _ => None,
        });
        alarms.min()
    }

    fn set_now(&mut self, now: Duration) {
        self.now = self.now.max(now);
        for slot in &mut self.slots {
            if matches!(slot.status, Status::Asleep(Some(until)) if until <= self.now) {
                slot.status = Status::Ready;
            }
        }
    }

    /// Time for a call of the disk, in part: it pauses two or three times for each.
    pub(super) fn spend(&mut self, op: DiskOp) {
        let most = match op {
            DiskOp::Sync | DiskOp::SyncDir if self.random.chance(1, 8) => 20_000,
            DiskOp::Sync | DiskOp::SyncDir => 300,
            DiskOp::Write => 40,
            _ => 5,
        };
        let span = Duration::from_micros(self.random.below(most));
        self.set_now(self.now.saturating_add(span));
    }

    pub(super) fn spend_yield(&mut self) {
        let span = Duration::from_micros(1 + self.random.below(10));
        self.set_now(self.now.saturating_add(span));
    }

    pub(super) fn unix_millis(&self) -> i64 {
        self.start_millis.saturating_add(self.millis())
    }

    pub(super) fn set_unix_millis(&mut self, millis: i64) {
        self.start_millis = millis.saturating_sub(self.millis());
    }

    fn millis(&self) -> i64 {
        i64::try_from(self.now.as_millis()).unwrap_or(i64::MAX)
    }

    /// Where everybody is who is not done.
    pub(super) fn describe(&self) -> String {
        let mut text = String::new();
        for (index, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.status != Status::Done) {
            let has = if self.running == Some(index) { " (has the baton)" } else { "" };
            // A string takes what is written.
            let _ = write!(text, "[{index} {} {:?}{has}]", slot.name, slot.status);
        }
        text
    }
}
