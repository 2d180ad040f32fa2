//! What all actors of a run share: the store, the model, who is at work on which session, and what went wrong.
//!
//! Its lock is held for a look or a change, never across a call of the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::testing::model::{Deletion, Known};
use crate::testing::random::mix;
use crate::testing::{FaultKind, Model, Scheduler, SimDisk};
use crate::{Error, ErrorKind, Session, SessionStore};

use super::history::History;
use super::script::{Script, Verb};
use super::tally::Tally;

/// See the module.
pub(super) struct World {
    pub(super) scheduler: Scheduler,
    pub(super) script: Arc<Script>,
    pub(super) seed: u64,
    parts: Mutex<Parts>,
}

pub(super) struct Parts {
    pub(super) disk: SimDisk,
    pub(super) model: Model,
    /// Sessions that were there before: deleted ones, for the most part.
    pub(super) former: BTreeMap<String, Known>,
    pub(super) store: Option<SessionStore>,
    pub(super) live: BTreeMap<String, Session>,
    /// The sessions that ops choose among, in the order of their creation.
    pub(super) usable: Vec<String>,
    /// Sessions that an actor is opening.
    pub(super) busy: BTreeSet<String>,
    /// A reader in another process.
    pub(super) follower: Option<SessionStore>,
    /// The process was killed; this is the disk as the next one has it.
    pub(super) next_disk: Option<SimDisk>,
    pub(super) closed: bool,
    /// The close came back well.
    pub(super) closed_well: bool,
    /// Damage was done, or a read failed while the store was opened, which passes for damage.
    pub(super) damaged: bool,
    /// The store is being opened; so many reads had failed before.
    pub(super) opening: Option<u64>,
    pub(super) made: u64,
    pub(super) failure: Option<String>,
    /// Of all disk calls of all lives.
    pub(super) trace_hash: u64,
    pub(super) tally: Tally,
}

impl World {
    pub(super) fn new(scheduler: Scheduler, script: Arc<Script>, seed: u64) -> Self {
        let parts = Parts {
            disk: SimDisk::new(),
            model: Model::default(),
            former: BTreeMap::new(),
            store: None,
            live: BTreeMap::new(),
            usable: Vec::new(),
            busy: BTreeSet::new(),
            follower: None,
            next_disk: None,
            closed: false,
            closed_well: false,
            damaged: false,
            opening: None,
            made: 0,
            failure: None,
            trace_hash: 0,
            tally: Tally::default(),
        };
        Self { scheduler, script, seed, parts: Mutex::new(parts) }
    }

    pub(super) fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock()
    }

    /// Something does not hold.
    pub(super) fn fail(&self, text: String) {
        self.parts().failure.get_or_insert(text);
    }

    pub(super) fn mix_trace(&self, hash: u64) {
        let mut parts = self.parts();
        parts.trace_hash = mix(parts.trace_hash ^ hash);
    }

    pub(super) fn store(&self) -> Option<SessionStore> {
        self.parts().store.clone()
    }

    pub(super) fn count(&self, verb: Verb) {
        *self.parts().tally.ops.entry(verb).or_default() += 1;
    }

    /// Some session that nobody is opening, by a number.
    pub(super) fn pick(&self, which: u64) -> Option<String> {
        let parts = self.parts();
        let all: Vec<&String> = parts.usable.iter().filter(|id| !parts.busy.contains(*id)).collect();
        let place = usize::try_from(which).ok()?.checked_rem(all.len())?;
        all.get(place).map(|id| (*id).clone())
    }

    pub(super) fn lines(&self, id: &str) -> Vec<Arc<str>> {
        let parts = self.parts();
        let Some(known) = parts.model.sessions.get(id) else { return Vec::new() };
        known.lines.get(..known.accepted).unwrap_or_default().to_vec()
    }

    /// Damage was done to what is stored, so that losses are to be told and no more.
    pub(super) fn is_harmed(&self) -> bool {
        let parts = self.parts();
        let harmed = parts.damaged || parts.disk.struck().keys().any(|kind| kind.is_damage());
        harmed && !self.script.lies
    }

    /// The process ends, or the store is closed.
    pub(super) fn is_over(&self) -> bool {
        let parts = self.parts();
        parts.closed || parts.next_disk.is_some()
    }

    /// Whether nobody deletes it.
    pub(super) fn is_kept(&self, id: &str) -> bool {
        self.parts().model.sessions.get(id).is_some_and(|known| known.deletion == Deletion::No)
    }

    /// The live session of that id; resumed if it is not live, its open turn closed as the model says (R2).
    pub(super) fn session(&self, id: &str) -> Option<Session> {
        let store = self.store()?;
        let closers = {
            let mut parts = self.parts();
            if let Some(session) = parts.live.get(id).filter(|session| session.is_live()) {
                return Some(session.clone());
            }
            let closers = History::of(&parts.model.sessions.get(id)?.lines).closers();
            parts.busy.insert(id.to_owned());
            if !closers.is_empty() {
                parts.model.attempt(id, closers.iter().cloned());
            }
            closers
        };
        let resumed = store.resume(id);
        let mut parts = self.parts();
        parts.busy.remove(id);
        match resumed {
            Ok(resumed) => {
                parts.model.accept(id);
                parts.live.insert(id.to_owned(), resumed.session.clone());
                parts.tally.closers += closers.len() as u64;
                drop(parts);
                let given: Vec<String> = resumed.closers.iter().map(|event| event.to_line()).collect();
                if given != closers {
                    self.fail(format!("resume of {id}: closers {given:?} instead of {closers:?} (R2)"));
                }
                Some(resumed.session)
            }
            Err(error) => {
                if !closers.is_empty() {
                    parts.model.retract(id);
                }
                drop(parts);
                self.judge_error(&format!("resume of {id}"), &error, &[]);
                None
            }
        }
    }

    /// An op was refused: fine if something happened that explains it, or if its kind is among the `expected` ones.
    pub(super) fn judge_error(&self, what: &str, error: &Error, expected: &[ErrorKind]) {
        let mut parts = self.parts();
        parts.tally.refused += 1;
        let over = parts.next_disk.is_some() || parts.closed;
        let fault = parts.store.as_ref().and_then(SessionStore::fault);
        let struck = parts.disk.struck();
        let damaged = parts.damaged;
        drop(parts);
        let loud = struck.keys().any(|kind| !kind.is_harmless() && *kind != FaultKind::Eviction);
        let lacks_space = self.script.space > 0 && error.is_full();
        if !(over || fault.is_some() || loud || damaged || lacks_space || expected.contains(&error.kind())) {
            self.fail(format!("{what}: {error:?}"));
        }
    }
}
