//! The threaded driver of the commit state machine: leader and followers (C2).
//!
//! Whoever needs something durable and finds the writer token free leads: it carries out disk operations one at
//! a time until its own position is durable, then gives the token back and wakes one follower of the next group.
//! There is no committer thread on this path; a single caller never waits for another thread.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::format::{ControlSlot, Lsn, PAGE, SegmentHeader, names};
use crate::mutation::{self, Mutation};
use crate::rt::point;

use super::commit_state::CommitState;
use super::shared::Shared;
use super::types::Durability;
use super::work::{Progress, Work};

/// Gathering bounds (COMMIT, policy "gather"): how long and up to how many bytes a leader lets others join.
const GATHER: Duration = Duration::from_micros(30);
const GATHER_BYTES: usize = 64 << 10;
const ZEROS: [u8; PAGE] = [0; PAGE];

impl Shared {
    /// Returns once everything up to `upto` has come as far as `how`.
    pub(crate) fn flush(&self, upto: Lsn, how: Durability) -> Result<()> {
        Self::unlocked();
        if how == Durability::Accepted {
            return Ok(());
        }
        self.check_process()?;
        let sync = how == Durability::Durable;
        let (mut waited, mut joined) = (false, false);
        loop {
            let mut state = self.state();
            let commit = state.writer()?;
            if reached(commit.durable(), commit.written(), upto, sync) {
                // Woken as the next leader, but with nothing left to wait for: the lead is passed on.
                let next = (waited && !state.leading)
                    .then(|| state.commit.as_ref().and_then(CommitState::next_group))
                    .flatten();
                drop(state);
                if let Some(group) = next {
                    self.hand_on(group);
                }
                return Ok(());
            }
            if let Some(fault) = commit.fault() {
                return Err(fault.clone());
            }
            commit.want(upto, sync);
            if !joined {
                commit.join(upto);
                joined = true;
            }
            if !state.leading || mutation::is_on(Mutation::LeadTwice) {
                state.leading = true;
                drop(state);
                self.lead(upto, sync);
                continue;
            }
            let group = state.commit.as_ref().map_or(0, |commit| commit.group_of(upto));
            let word = self.word(group);
            let seen = word.load(Ordering::Acquire);
            drop(state);
            let seen = if mutation::is_on(Mutation::WordSeenLate) { self.word_late(word) } else { seen };
            if !waited {
                self.counters.waits.add(1);
                waited = true;
            }
            self.rt.wait(word, seen);
        }
    }

    /// Carries out disk operations until `upto` is there, nothing is due, or the writer failed. The caller has
    /// taken the token.
    pub(crate) fn lead(&self, upto: Lsn, sync: bool) {
        self.lead_until(upto, sync, |_| false);
    }

    /// As [`lead`](Self::lead), or until `stop` says so between two operations.
    pub(crate) fn lead_until(&self, upto: Lsn, sync: bool, stop: impl Fn(&CommitState) -> bool) {
        let guard = Token { shared: self };
        self.gather();
        loop {
            let work = {
                let mut state = self.state();
                let Some(commit) = state.commit.as_mut() else { break };
                if reached(commit.durable(), commit.written(), upto, sync) || stop(commit) {
                    break;
                }
                match commit.next_work() {
                    Some(work) => work,
                    None => break,
                }
            };
            self.carry_out(work);
        }
        drop(guard);
    }

    /// One operation: performed without the lock, then reported and published.
    pub(crate) fn carry_out(&self, work: Work) {
        let result = self.perform(&work);
        let failed = result.is_err();
        drop(work);
        let (progress, wakers) = {
            let mut state = self.state();
            let now = self.rt.monotonic();
            let Some(commit) = state.commit.as_mut() else { return };
            let progress = commit.done(result);
            let durable = commit.durable();
            let idle = !commit.has_open_records();
            if idle {
                state.unwritten_since = None;
            }
            if let Some(ended) = progress.ended
                && let Err(at) = state.unindexed.binary_search(&ended)
            {
                state.unindexed.insert(at, ended);
            }
            let mut wakers = Vec::new();
            if progress.durable_group.is_some() || failed {
                state.last_ack = now;
                let taken = std::mem::take(&mut state.wakers);
                for (upto, waker) in taken {
                    if upto <= durable || failed {
                        wakers.push(waker);
                    } else {
                        state.wakers.push((upto, waker));
                    }
                }
            }
            (progress, wakers)
        };
        self.publish(progress, failed);
        for waker in wakers {
            waker.wake();
        }
    }

    fn publish(&self, progress: Progress, failed: bool) {
        if failed {
            tracing::error!("the writer failed and is poisoned; reopen the store");
            self.wake_everyone();
            return;
        }
        if progress.ended.is_some() {
            self.ring_indexer();
        }
        if let Some(group) = progress.durable_group {
            let published = self.counters.durable_group.swap(group);
            self.wake_groups(published.saturating_add(1).min(group), group);
        }
        self.wake_groups(progress.written_group, progress.written_group);
        self.wake_room();
    }

    /// Lets others join the open group: yields while fewer wait than last time, for a bounded time and size. A
    /// caller that was alone last time does not wait.
    fn gather(&self) {
        let mut start = None;
        loop {
            if !self.state().commit.as_ref().is_some_and(|commit| commit.gathering(GATHER_BYTES)) {
                return;
            }
            let now = self.rt.monotonic();
            if now.saturating_sub(*start.get_or_insert(now)) >= GATHER {
                return;
            }
            self.rt.yield_now();
        }
    }

    fn perform(&self, work: &Work) -> Result<()> {
        Self::unlocked();
        match work {
            Work::Write { at, frame } => {
                let file = self.files.writable(at.segment())?;
                let bytes = frame.bytes();
                let from = u64::from(at.offset());
                let end = from.saturating_add(bytes.len() as u64);
                // To the page's end with zeros: a cold page need not be read first (COMMIT 4).
                let rest = usize::try_from(end.next_multiple_of(PAGE as u64) - end).unwrap_or(0);
                let zeros = ZEROS.get(..rest).unwrap_or(&[]);
                self.counters.wrote(frame.record_count(), bytes.len());
                if mutation::is_on(Mutation::SyncBeforeWrite) {
                    file.sync_data()?;
                }
                file.write_at(&[bytes, zeros], from)
            }
            Work::Sync { segment } => {
                self.counters.syncs.add(1);
                if mutation::is_on(Mutation::NoDataSync) || mutation::is_on(Mutation::SyncBeforeWrite) {
                    return Ok(());
                }
                let file = self.files.writable(*segment)?;
                match file.sync_data() {
                    Err(_) if mutation::is_on(Mutation::RetryFailedSync) => file.sync_data(),
                    result => result,
                }
            }
            Work::Start { header } => self.start_segment(header),
            Work::Control { slot } => self.put_control(slot),
        }
    }

    fn start_segment(&self, header: &SegmentHeader) -> Result<()> {
        let number = header.number;
        self.check_lock()?;
        let file = self.files.prepared(number)?;
        file.write_at(&[&header.encode().0], 0)?;
        if !mutation::is_on(Mutation::NoSyncAtRotation) {
            file.sync_file()?;
        }
        self.disk.rename(&names::prepared(number), &names::segment(number))?;
        if !mutation::is_on(Mutation::NoDirSyncAtRotation) {
            self.disk.sync_dir(names::SEGMENTS)?;
        }
        self.files.started(number, file);
        self.segment_started(header)
    }

    /// D5: a lock file that was removed or replaced is noticed at rotation at the latest.
    fn check_lock(&self) -> Result<()> {
        if mutation::is_on(Mutation::LockNotChecked) {
            return Ok(());
        }
        let lock = self.lock.lock().take();
        let valid = lock.as_ref().map_or(Ok(true), |lock| lock.still_valid());
        *self.lock.lock() = lock;
        if valid? {
            return Ok(());
        }
        let text = "LOCK was removed or replaced while the store was open; reopen the store to go on";
        Err(Error::new(ErrorKind::Locked, text))
    }

    fn put_control(&self, slot: &ControlSlot) -> Result<()> {
        let file = self.files.control()?;
        file.write_at(&[&slot.encode()], slot.offset())
    }
}

fn reached(durable: Lsn, written: Lsn, upto: Lsn, sync: bool) -> bool {
    if sync { durable >= upto } else { written >= upto }
}

/// The writer token: gives itself back, and poisons if the leader unwinds.
struct Token<'a> {
    shared: &'a Shared,
}

impl Drop for Token<'_> {
    fn drop(&mut self) {
        let unwinding = std::thread::panicking() && !mutation::is_on(Mutation::UnwindingUntold);
        let (next, witness) = {
            let mut state = self.shared.state();
            state.leading = false;
            let rests = state.keeper_rests;
            let Some(commit) = state.commit.as_mut() else { return };
            if unwinding {
                let text = "a leader unwound in the middle of a commit; reopen the store";
                commit.fail(Error::new(ErrorKind::Poisoned, text));
            }
            let due = (commit.next_group(), rests && commit.witness_due());
            state.keeper_rests &= !due.1;
            due
        };
        // What was acknowledged had been drained before, so the keeper has nothing to wake up for but this (E1).
        if witness {
            self.shared.ring_keeper();
        }
        // Whoever waits for the token itself (a close) looks again.
        self.shared.wake_room();
        if unwinding {
            self.shared.wake_everyone();
        } else if let Some(group) = next.filter(|_| !mutation::is_on(Mutation::NoHandOver)) {
            self.shared.hand_on(group);
        }
    }
}

impl Shared {
    /// The fault of looking at a word when the lock is gone: the wake-up may have come already.
    fn word_late(&self, word: &std::sync::atomic::AtomicU32) -> u32 {
        point();
        word.load(Ordering::Acquire)
    }

    /// One follower of `group` leads on; the keeper does if nobody waits for it.
    fn hand_on(&self, group: u64) {
        let word = self.word(group);
        point();
        word.fetch_add(1, Ordering::Release);
        point();
        self.rt.wake_one(word);
        let alone = self.state().commit.as_ref().is_none_or(|commit| !commit.is_awaited());
        if alone {
            self.ring_keeper();
        }
    }
}
