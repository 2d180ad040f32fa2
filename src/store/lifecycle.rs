//! How a session comes into the live set: prepare, enter, announce (L1).
//!
//! Always: nothing is written before every `created` listener agreed; header, seed and what was appended meanwhile
//! then become one batch. A failure at any point leaves no session, no record and a free id. Never: a lock is held
//! while a listener runs or while room is waited for.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, Header, Surface, Violation};

use super::core::{Core, CoreParts, Ended, Marks, Phase, State};
use super::engine::Engine;
use super::listeners::Origin;
use super::live::{LiveTable, Pinned};
use super::pending::{Base, Pending};
use super::rules::Rules;
use super::session::Session;
use super::stage::{Opening, Stage};

/// A session that was validated and built, and has touched nothing yet.
///
/// Made by [`SessionStore::prepare`](crate::SessionStore::prepare) and its siblings, used up by
/// [`SessionStore::enter`](crate::SessionStore::enter).
pub struct Prepared {
    pub(super) origin: Origin,
    pub(super) header: Header,
    pub(super) opening: Opening,
    pub(super) base: Option<Base>,
    pub(super) copies: bool,
    /// Events from the base's end on: a seed, or closers.
    pub(super) events: Vec<Event>,
    pub(super) surface: Surface,
    pub(super) rules: Option<Rules>,
    pub(super) violations: Vec<Violation>,
    /// For a session that is stored already: its number and where it stood.
    pub(super) stored: Option<(u64, u64)>,
    /// Keeps the parent of a fork.
    pub(super) pin: Option<Pinned>,
}

impl Prepared {
    /// The id that the session will have.
    #[must_use]
    pub fn id(&self) -> &str {
        self.header.id()
    }

    /// The header that the session will have.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What the seed breaks of rules I5 to I10; it is accepted nevertheless.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// The closers that repair adds (R2): of a resumed session, or of a fork that was cut in an open turn.
    #[must_use]
    pub fn closers(&self) -> &[Event] {
        match self.origin {
            Origin::Created => &[],
            Origin::Forked | Origin::Resumed => &self.events,
        }
    }

    pub(super) fn next_seq(&self) -> u64 {
        self.base.as_ref().map_or(0, |base| base.count).saturating_add(self.events.len() as u64)
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("id", &self.id())
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// Holds a session in the live set. Dropping it detaches the session, unless it was [kept](Self::keep).
#[must_use = "dropping the guard detaches the session"]
#[derive(Debug)]
pub struct DetachGuard {
    session: Option<Session>,
    origin: Origin,
}

impl DetachGuard {
    /// The session. Until it is announced its events are collected in memory.
    #[must_use]
    pub fn session(&self) -> &Session {
        // The session leaves only with the guard itself.
        self.session.as_ref().expect("a guard holds its session until it is used up")
    }

    /// Calls the `created` listeners, then writes the session: header, seed and everything appended so far as one
    /// batch. It waits for room when there is none.
    ///
    /// # Errors
    /// [`Listener`](ErrorKind::Listener) when a listener failed, or what the log says. The session is then gone: it
    /// left no trace and its id is free.
    pub fn announce(&self) -> Result<()> {
        self.session().core().announce(self.origin)
    }

    /// Gives the session up to the store: it stays live until it is detached, closed or deleted, or the store closed.
    pub fn keep(mut self) -> Session {
        self.session.take().expect("a guard holds its session until it is used up")
    }

    /// Takes the session out of the live set, as [`Session::detach`] does.
    pub fn detach(self) {
        drop(self);
    }
}

impl Drop for DetachGuard {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.detach();
        }
    }
}

/// How many events, appended while the others were encoded, are encoded under the session's lock.
const FEW: usize = 16;

/// Wires a prepared session and puts it into the live set. Nothing is written.
pub(super) fn enter(engine: &Arc<Engine>, live: &Arc<LiveTable>, prepared: Prepared) -> Result<DetachGuard> {
    let claim = live.claim(prepared.id())?;
    let dense = match prepared.stored {
        None => fresh_dense(engine, prepared.id())?,
        Some((dense, next_seq)) => attach(engine, prepared.id(), dense, next_seq)?,
    };
    let next_seq = prepared.next_seq();
    let origin = prepared.origin;
    let quiet = if origin == Origin::Resumed { 0 } else { prepared.events.len() };
    let stored_seq = prepared.stored.map_or(0, |(_, next_seq)| next_seq);
    let pending = Pending {
        opening: prepared.opening,
        base: prepared.base,
        copies: prepared.copies,
        events: prepared.events,
        quiet,
        announcing: false,
        _pin: prepared.pin,
    };
    let state = State {
        phase: Phase::Entered(Box::new(pending)),
        next_seq,
        surface: prepared.surface,
        rules: prepared.rules,
        marks: Marks::new(engine.log.tail(), stored_seq),
        feeds: Vec::new(),
    };
    let core = Core::new(CoreParts {
        id: Arc::clone(claim.id()),
        dense,
        header: prepared.header,
        engine: Arc::clone(engine),
        live: Arc::downgrade(live),
        state,
    });
    let session = Session::from_core(Arc::new(core));
    claim.fill(session.clone()).inspect_err(|_| session.core().give_back())?;
    Ok(DetachGuard { session: Some(session), origin })
}

/// A number for a new session of this id, if it is not stored. The caller holds the claim on the id.
fn fresh_dense(engine: &Engine, id: &str) -> Result<u64> {
    if engine.log.lookup(id)?.is_some() {
        return Err(Error::new(
            ErrorKind::Exists,
            format!("session {id:?} is stored already; resume it, or choose another id"),
        ));
    }
    engine.log.allocate_dense()
}

/// Readies a stored session for appends, if it stands where it stood when it was prepared.
fn attach(engine: &Engine, id: &str, dense: u64, next_seq: u64) -> Result<u64> {
    let found = engine.log.lookup(id)?.map(|entry| (entry.dense, entry.next_seq));
    if found != Some((dense, next_seq)) {
        return Err(Error::new(
            ErrorKind::Conflict,
            format!("session {id:?} changed since it was prepared; prepare it again"),
        ));
    }
    engine.log.attach(dense)?;
    Ok(dense)
}

impl Core {
    fn announce(self: &Arc<Self>, origin: Origin) -> Result<()> {
        self.begin_announcement()?;
        let session = Session::from_core(Arc::clone(self));
        let announced =
            self.engine.listeners.call_created(&session, origin).and_then(|()| self.write_pending());
        match &announced {
            Ok(()) => tracing::debug!(session = &*self.id, ?origin, seq = session.seq(), "a session is live"),
            Err(error) => {
                tracing::debug!(session = &*self.id, ?origin, %error, "a session was rolled back");
                self.end(Ended::RolledBack);
            }
        }
        announced
    }

    fn begin_announcement(&self) -> Result<()> {
        let mut state = self.state();
        match &mut state.phase {
            Phase::Entered(pending) if !pending.announcing => {
                pending.announcing = true;
                Ok(())
            }
            Phase::Entered(_) | Phase::Live => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("session {:?} is announced already", self.id),
            )),
            Phase::Ended(ended) => Err(ended.error(&self.id)),
        }
    }

    /// Writes what was collected, and goes live in the same moment as the log takes it.
    fn write_pending(self: &Arc<Self>) -> Result<()> {
        let (opening, copied) = {
            let state = self.state();
            let Phase::Entered(pending) = &state.phase else { return Err(self.not_entered(&state)) };
            (pending.opening, pending.base.clone().filter(|_| pending.copies))
        };
        let mut stage = Stage::new(Arc::clone(&self.engine), self.dense, self.header.clone(), opening);
        let written = self.write_staged(&mut stage, copied);
        if written.is_err() {
            stage.abandon();
        }
        written
    }

    fn write_staged(self: &Arc<Self>, stage: &mut Stage, copied: Option<Base>) -> Result<()> {
        if let Some(base) = copied {
            for event in self.engine.log.events(&base.entry, 0, base.count)? {
                stage.push(&event?)?;
            }
        }
        let mut done = 0;
        loop {
            // Most of the work happens here, without the lock.
            for event in self.collected(done)? {
                stage.push(&event)?;
                done += 1;
            }
            let mut state = self.state();
            let Phase::Entered(pending) = &state.phase else { return Err(self.not_entered(&state)) };
            let behind = pending.events.get(done..).unwrap_or_default();
            if behind.len() > FEW {
                continue;
            }
            for event in behind {
                stage.add(event)?;
                done += 1;
            }
            match stage.finish() {
                Ok(end) => {
                    let feeds = self.go_live(&mut state, end);
                    drop(state);
                    self.after_append(&feeds);
                    return Ok(());
                }
                Err(error) if error.is_backpressure() => {
                    drop(state);
                    stage.wait_for_room()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn collected(&self, from: usize) -> Result<Vec<Event>> {
        let state = self.state();
        match &state.phase {
            Phase::Entered(pending) => Ok(pending.events.get(from..).unwrap_or_default().to_vec()),
            _ => Err(self.not_entered(&state)),
        }
    }

    fn go_live(
        &self,
        state: &mut State,
        end: Option<crate::format::lsn::Lsn>,
    ) -> Vec<Arc<super::subscription::Feed>> {
        if let Some(end) = end {
            state.marks.push(end, state.next_seq);
        }
        let Phase::Entered(mut pending) = std::mem::replace(&mut state.phase, Phase::Live) else {
            return Vec::new();
        };
        let heard = pending.events.split_off(pending.quiet.min(pending.events.len()));
        self.publish(state, &heard)
    }

    fn not_entered(&self, state: &State) -> Error {
        match state.phase {
            Phase::Ended(ended) => ended.error(&self.id),
            _ => Error::new(ErrorKind::Internal, format!("session {:?} is announced already", self.id)),
        }
    }
}
