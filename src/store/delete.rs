//! Deleting sessions (L5).
//!
//! Always: handles of a live session end in the same moment as the log takes the tombstone; before that, a failure
//! leaves everything as it was.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};

use super::core::{Core, Ended, Phase};
use super::engine::{Engine, not_found};
use super::live::{Found, LiveTable};
use super::records;

pub(super) fn delete(engine: &Engine, live: &Arc<LiveTable>, id: &str) -> Result<()> {
    tracing::debug!(session = id, "a session is to be deleted");
    match live.find_or_claim(id)? {
        Found::Session(session) => session.core().delete(live),
        Found::Claim(_claim) => {
            let dense = engine.stored(id)?.dense;
            let _pin = live.pin_for_delete(dense)?;
            engine.log.attach(dense)?;
            let deleted = engine.append_waiting(&[records::delete(dense)]);
            engine.log.detach(dense);
            deleted.map(|_| ())
        }
    }
}

impl Core {
    /// Deletes a live session.
    fn delete(&self, live: &Arc<LiveTable>) -> Result<()> {
        super::inside::refuse_append(self.key)?;
        let _pin = live.pin_for_delete(self.dense)?;
        let record = [records::delete(self.dense)];
        loop {
            let mut state = self.state();
            match state.phase {
                Phase::Live => {}
                Phase::Entered(_) => {
                    return Err(Error::new(
                        ErrorKind::Conflict,
                        format!("session {:?} is not announced yet; detach it instead", self.id),
                    ));
                }
                Phase::Ended(_) => return Err(not_found(&self.id)),
            }
            match self.engine.log.append(&record) {
                Ok(_) => {
                    state.phase = Phase::Ended(Ended::Deleted);
                    break;
                }
                Err(error) if error.is_backpressure() => {
                    drop(state);
                    self.engine.wait_for_room(&record)?;
                }
                Err(error) => return Err(error),
            }
        }
        self.end(Ended::Deleted);
        Ok(())
    }
}
