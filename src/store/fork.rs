//! Forks by reference (L4, D6).
//!
//! Always: a child refers to the session that physically holds the event before the cut, so a fork copies nothing
//! and forks of forks do not chain through sessions that add nothing. Past a bounded depth the events are copied
//! instead, so that reading never takes unbounded steps.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::event::{Header, Surface, Time};
use crate::log::{Fork, SessionEntry, Structure};

use super::engine::{Engine, not_found};
use super::lifecycle::Prepared;
use super::listeners::Origin;
use super::live::LiveTable;
use super::options::Invariants;
use super::pending::Base;
use super::place::Place;
use super::provenance::surface_of;
use super::repair_at;
use super::resume::{fold_in, replayed};
use super::stage::Opening;
use super::stat::header_of;

/// The most sessions that a fork may ever read through.
pub const MAX_FORK_DEPTH: usize = 2048;

/// Where and how to fork.
#[derive(Debug, Clone, Default)]
pub struct ForkOptions {
    at: Option<u64>,
    id: Option<String>,
    close_open_turn: bool,
    created_at: Option<Time>,
}

impl ForkOptions {
    /// At the last event, under a fresh UUID; an open turn is refused.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The last event that the child inherits.
    #[must_use]
    pub fn at(mut self, seq: u64) -> Self {
        self.at = Some(seq);
        self
    }

    /// The child's id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Closes a turn that is open at the cut, in the child (R2), instead of refusing the fork.
    #[must_use]
    pub fn close_open_turn(mut self, close: bool) -> Self {
        self.close_open_turn = close;
        self
    }

    /// When the child was created, for whoever reconstructs a session.
    #[must_use]
    pub fn created_at(mut self, time: Time) -> Self {
        self.created_at = Some(time);
        self
    }
}

pub(super) fn prepare(
    engine: &Engine,
    live: &Arc<LiveTable>,
    parent: &str,
    options: ForkOptions,
) -> Result<Prepared> {
    let dense = engine.stored(parent)?.dense;
    let pin = live.pin_for_fork(dense)?;
    // Looked up again: until it was pinned it could be deleted.
    let entry = engine.log.session(dense)?.filter(|entry| !entry.deleted).ok_or_else(|| not_found(parent))?;
    let cut = cut_of(&entry, options.at)?;
    let place = Place::stored(engine.log.clone(), entry.clone(), cut);
    if options.at.is_none()
        && let Some(doubt) = engine.log.doubt(&entry)?
    {
        let kind = doubt.kind();
        return Err(
            doubt.wrap(kind, format!("session {parent:?} is not proven whole; name the event to fork at"))
        );
    }
    let (mut surface, structure) = folded(engine, live, &place, &entry)?;
    let closers = repair_at::closers(&place, &structure, cut)?;
    if !closers.is_empty() && !options.close_open_turn {
        return Err(Error::new(
            ErrorKind::OpenTurn,
            format!(
                "a turn of session {parent:?} is open behind event {}; fork elsewhere, or ask to close it",
                cut.saturating_sub(1)
            ),
        ));
    }
    fold_in(&mut surface, &closers)?;
    let rules = replayed(engine, &place, &structure, &closers)?;
    let header = header(engine, &entry, cut, options)?;
    let opening = opening(engine, &entry, cut, !closers.is_empty())?;
    Ok(Prepared {
        origin: Origin::Forked,
        header,
        copies: cut > 0 && opening == Opening::Create,
        opening,
        base: Some(Base { entry, count: cut }),
        events: closers,
        surface,
        rules,
        violations: Vec::new(),
        stored: None,
        pin: Some(pin),
    })
}

/// The surface at the place's end, and the structure that repair looks at. Of a live parent that is forked at its end
/// the surface is copied from memory, and when no turn is open there, nothing at all is read.
fn folded(
    engine: &Engine,
    live: &LiveTable,
    place: &Place,
    entry: &SessionEntry,
) -> Result<(Surface, Vec<Structure>)> {
    let at_end = place.end() == entry.next_seq;
    let copied = live.get(&entry.id).filter(|_| at_end);
    let copied = copied.and_then(|session| session.core().surface_at(entry.dense, place.end()));
    match copied {
        Some(surface) if !entry.open_turn && engine.invariants == Invariants::Off => {
            Ok((surface, Vec::new()))
        }
        Some(surface) => Ok((surface, place.structure()?)),
        None => {
            let structure = place.structure()?;
            Ok((surface_of(&structure, place.is_lossy())?, structure))
        }
    }
}

/// How many events the child inherits.
fn cut_of(entry: &SessionEntry, at: Option<u64>) -> Result<u64> {
    match at {
        None => Ok(entry.next_seq),
        Some(at) if at < entry.next_seq => Ok(at.saturating_add(1)),
        Some(at) => Err(Error::new(
            ErrorKind::NotFound,
            format!("session {:?} has no event {at} to fork at; it has {} events", entry.id, entry.next_seq),
        )),
    }
}

fn header(engine: &Engine, parent: &SessionEntry, cut: u64, options: ForkOptions) -> Result<Header> {
    let id = options.id.unwrap_or_else(|| engine.fresh_id());
    let created_at = options.created_at.unwrap_or_else(|| engine.now());
    let header = Header::new(id, created_at)?.with_parent(Arc::clone(&parent.id)).with_seed_length(cut);
    match header_of(parent)?.cwd() {
        Some(cwd) => header.with_cwd(cwd),
        None => Ok(header),
    }
}

/// A reference to whoever holds the event before the cut; a new session when there is none, or when it is too deep.
/// `turn_open`: a turn is open at the cut.
pub(super) fn opening(engine: &Engine, parent: &SessionEntry, cut: u64, turn_open: bool) -> Result<Opening> {
    let Some(last) = cut.checked_sub(1) else { return Ok(Opening::Create) };
    let mut holder = parent.clone();
    let (mut found, mut depth) = (None, 0);
    for _ in 0..=MAX_FORK_DEPTH {
        if holder.own_first <= last {
            found.get_or_insert(holder.dense);
        }
        // What stands before the one that is referred to is nothing to read through.
        depth += usize::from(found.is_some());
        if depth > engine.fork_depth {
            break;
        }
        let Some(fork) = holder.inherits() else {
            let fork = |ancestor| Fork { parent: parent.dense, ancestor, cut };
            return Ok(found.map_or(Opening::Create, |ancestor| Opening::Fork(fork(ancestor), turn_open)));
        };
        holder = engine.log.session(fork.ancestor)?.ok_or_else(|| {
            Error::new(
                ErrorKind::Corrupt,
                format!(
                    "session {:?} refers to session number {}, which is not there; run verify",
                    holder.id, fork.ancestor
                ),
            )
        })?;
    }
    Ok(Opening::Create)
}

/// How `stored` is continued under another number: with a reference to all its events, else, when it is too deep, with
/// none of them.
pub(super) fn continuation(engine: &Engine, stored: &SessionEntry) -> Result<Fork> {
    let parent = engine.log.first_number(stored)?;
    Ok(match opening(engine, stored, stored.next_seq, stored.open_turn)? {
        Opening::Fork(fork, _) => Fork { parent, ..fork },
        _ => Fork { parent, ancestor: stored.dense, cut: 0 },
    })
}
