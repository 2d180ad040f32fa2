//! The keeper: the background task that prepares space, drains what nobody flushes, leads for polled tickets and
//! writes the witness frame.
//!
//! One `step` does at most one of these, so that a seeded scheduler can interleave everything (T2).

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::format::{Lsn, frame_kind, names};
use crate::rt::{Step, Task};

use super::commit_state::CommitState;
use super::shared::{Shared, State};
use super::space::Prepare;

/// Accepted events are in the page cache after this long at the latest (C3).
const DRAIN_AFTER: Duration = Duration::from_millis(2);
/// How long after the last acknowledgement the witness frame is written (E1).
pub(crate) const WITNESS_AFTER: Duration = Duration::from_millis(20);
/// Zero-fill is written in pieces of this size.
const FILL: usize = 1 << 20;

/// See the module. Holds the log weakly: a dropped log ends it.
pub(crate) struct Keeper {
    pub shared: Weak<Shared>,
}

enum Due {
    Prepare(Prepare),
    Lead(Lsn, bool),
    Nothing(Option<Duration>),
    Stop,
}

impl Task for Keeper {
    fn step(&mut self) -> Step {
        let Some(shared) = self.shared.upgrade() else { return Step::Done };
        let due = {
            let mut state = shared.state();
            let due = if state.stopping { Due::Stop } else { due(&mut state, shared.rt.monotonic()) };
            state.keeper_rests = matches!(due, Due::Nothing(None));
            due
        };
        match due {
            Due::Stop => Step::Done,
            Due::Nothing(after) => Step::Sleep(after),
            Due::Prepare(job) => {
                prepare(&shared, &job);
                Step::Again
            }
            Due::Lead(upto, sync) => {
                // Who appends must not wait for space because this writes what was appended.
                shared.lead_until(upto, sync, CommitState::owes_space);
                Step::Again
            }
        }
    }
}

fn due(state: &mut State, now: Duration) -> Due {
    let leading = state.leading;
    let since = state.unwritten_since;
    let last_ack = state.last_ack;
    let Some(commit) = state.commit.as_mut() else { return Due::Stop };
    if commit.fault().is_some() {
        return Due::Nothing(None);
    }
    let tail = commit.tail();
    if let Some(job) = commit.prepare() {
        return Due::Prepare(job);
    }
    if leading {
        // Whoever holds the token rings when there is more to do.
        let more = since.is_some() || commit.needs_work();
        return Due::Nothing(more.then_some(DRAIN_AFTER));
    }
    if commit.needs_work() {
        state.leading = true;
        return Due::Lead(Lsn(u64::MAX), true);
    }
    if commit.has_open_records()
        && let Some(since) = since
    {
        let waited = now.saturating_sub(since);
        if waited >= DRAIN_AFTER || commit.pending_bytes() >= super::DRAIN_BYTES {
            commit.want(tail, false);
            state.leading = true;
            return Due::Lead(tail, false);
        }
        return Due::Nothing(Some(DRAIN_AFTER.saturating_sub(waited)));
    }
    if commit.witness_due() {
        let waited = now.saturating_sub(last_ack);
        if waited < WITNESS_AFTER {
            return Due::Nothing(Some(WITNESS_AFTER.saturating_sub(waited)));
        }
        if let Ok(end) = commit.push_mark(frame_kind::WITNESS) {
            commit.want(end, true);
            state.leading = true;
            return Due::Lead(end, true);
        }
    }
    Due::Nothing(None)
}

fn prepare(shared: &Shared, job: &Prepare) {
    let mut salt = [0; 8];
    shared.rt.fill_random(&mut salt);
    let salt = u64::from_le_bytes(salt).max(1);
    let result = fill(shared, job);
    if let Err(error) = &result {
        tracing::warn!(%error, segment = job.number, "no space could be prepared");
    }
    {
        let mut state = shared.state();
        if let Some(commit) = state.commit.as_mut() {
            match result {
                // A sync that failed may have dropped pages of the log itself, and the kernel reports it only once.
                Err(error) if error.kind() == ErrorKind::Poisoned => commit.fail(error),
                result => commit.space_mut().prepared(job, result, salt),
            }
        }
    }
    shared.wake_room();
}

fn fill(shared: &Shared, job: &Prepare) -> Result<()> {
    Shared::unlocked();
    let started = shared.is_segment(job.number);
    let file = match job.create {
        Some(_) => {
            let name = names::prepared(job.number);
            if shared.disk.exists(&name)? {
                shared.disk.unlink(&name)?;
            }
            let file = shared.disk.create_excl(&name)?;
            shared.files.add_prepared(job.number, Arc::clone(&file));
            file
        }
        // Records may have been accepted into it and its file not renamed yet.
        None => shared.files.fillable(job.number)?,
    };
    // Reserved space reads as zero and cannot run out. Filling it makes the syncs of small commits cheap, and would
    // only write everything twice where the log is written in large pieces: their syncs carry the rest.
    let length = u64::from(job.to.saturating_sub(job.from));
    if job.bulk && file.allocate(u64::from(job.from), length)? {
        return Ok(());
    }
    write_zeros(file.as_ref(), job.from, job.to)?;
    file.sync_data().map_err(|error| poison(started || shared.is_segment(job.number), error))
}

/// Allocates and zero-fills a range, and nothing else.
pub(crate) fn write_zeros(file: &dyn crate::disk::DiskFile, from: u32, to: u32) -> Result<()> {
    let length = u64::from(to.saturating_sub(from));
    file.allocate(u64::from(from), length)?;
    let zeros = vec![0; FILL.min(usize::try_from(length).unwrap_or(FILL))];
    let mut at = u64::from(from);
    while at < u64::from(to) {
        let piece = usize::try_from(u64::from(to) - at).unwrap_or(FILL).min(zeros.len());
        file.write_at(&[zeros.get(..piece).unwrap_or(&zeros)], at)?;
        at = at.saturating_add(piece as u64);
    }
    Ok(())
}

fn poison(started: bool, error: Error) -> Error {
    if started {
        return error.wrap(ErrorKind::Poisoned, "syncing prepared space failed; reopen the store to go on");
    }
    error
}
