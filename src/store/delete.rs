//! Deleting sessions (L5).
//!
//! Always: handles of a live session end in the same moment as the log takes the tombstone; before that, a failure
//! leaves everything as it was. A session goes together with those that it continues, in one batch: none of them comes
//! up under its id again.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::log::{Entry, SessionEntry};

use super::core::{Core, Ended, Phase, State};
use super::engine::{Engine, not_found};
use super::live::{Found, LiveTable, Pinned};
use super::records;

pub(super) fn delete(engine: &Engine, live: &Arc<LiveTable>, id: &str) -> Result<()> {
    tracing::debug!(session = id, "a session is to be deleted");
    match live.find_or_claim(id)? {
        Found::Session(session) => session.core().delete(live),
        Found::Claim(_claim) => {
            let doomed = Doomed::new(engine, live, &engine.stored(id)?)?;
            engine.append_waiting(&doomed.tombstones()).map(|_| ())
        }
    }
}

/// A session and those that it continues, about to be deleted: nobody forks them meanwhile, and the log has them at hand.
struct Doomed<'a> {
    engine: &'a Engine,
    attached: Vec<u64>,
    _pins: Vec<Pinned>,
}

impl<'a> Doomed<'a> {
    fn new(engine: &'a Engine, live: &Arc<LiveTable>, entry: &SessionEntry) -> Result<Self> {
        let mut all = vec![entry.dense];
        all.extend(engine.log.predecessors(entry)?.iter().map(|before| before.dense));
        let pins = all.iter().map(|dense| live.pin_for_delete(*dense)).collect::<Result<_>>()?;
        let mut doomed = Self { engine, attached: Vec::with_capacity(all.len()), _pins: pins };
        for dense in all {
            engine.log.attach(dense)?;
            doomed.attached.push(dense);
        }
        Ok(doomed)
    }

    /// One batch.
    fn tombstones(&self) -> Vec<Entry> {
        let last = self.attached.len().saturating_sub(1);
        let all = self.attached.iter().enumerate();
        all.map(|(place, dense)| records::delete(*dense, place < last)).collect()
    }
}

impl Drop for Doomed<'_> {
    fn drop(&mut self) {
        self.attached.iter().for_each(|dense| self.engine.log.detach(*dense));
    }
}

impl Core {
    /// Deletes a live session.
    fn delete(&self, live: &Arc<LiveTable>) -> Result<()> {
        super::inside::refuse_append(self.key)?;
        self.check_deletable(&self.state())?;
        let entry = self.engine.log.session(self.dense)?.ok_or_else(|| not_found(&self.id))?;
        let doomed = Doomed::new(&self.engine, live, &entry)?;
        let records = doomed.tombstones();
        loop {
            let mut state = self.state();
            self.check_deletable(&state)?;
            match self.engine.log.append(&records) {
                Ok(_) => {
                    state.phase = Phase::Ended(Ended::Deleted);
                    break;
                }
                Err(error) if error.is_backpressure() => {
                    drop(state);
                    self.engine.wait_for_room(&records)?;
                }
                Err(error) => return Err(error),
            }
        }
        self.end(Ended::Deleted);
        Ok(())
    }

    fn check_deletable(&self, state: &State) -> Result<()> {
        match state.phase {
            Phase::Live => Ok(()),
            Phase::Entered(_) => Err(Error::new(
                ErrorKind::Conflict,
                format!("session {:?} is not announced yet; detach it instead", self.id),
            )),
            Phase::Ended(_) => Err(not_found(&self.id)),
        }
    }
}
