//! Stored sessions, opened again for writing (L3, R3).
//!
//! Always: what a crash left open is closed by one batch of closers; a balanced session is left alone. Nothing but
//! what the repair fold looks at is decoded, and no chunk but the last event (S3).

use crate::error::Result;
use crate::event::{Class, Event, Surface};
use crate::format::lsn::Lsn;
use crate::log::{SessionEntry, Structure};

use super::engine::Engine;
use super::lifecycle::Prepared;
use super::listeners::Origin;
use super::pending::Base;
use super::place::Place;
use super::provenance::surface_of;
use super::repair_at;
use super::rules::Rules;
use super::session::Session;
use super::stage::Opening;
use super::stat::header_of;

/// How a session is resumed.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResumeOptions {
    accept_loss: bool,
}

impl ResumeOptions {
    /// Nothing lost is accepted.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the session as damage left it (P2): what is missing stays missing, a record says so, and it goes on.
    #[must_use]
    pub fn accept_loss(mut self, accept: bool) -> Self {
        self.accept_loss = accept;
        self
    }
}

/// A resumed session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Resumed {
    /// The session, live.
    pub session: Session,
    /// The closers that were appended to it (R2); none when it was balanced.
    pub closers: Vec<Event>,
}

pub(super) fn prepare(engine: &Engine, id: &str, options: ResumeOptions) -> Result<Prepared> {
    let stored = engine.stored(id)?;
    let doubt = engine.log.doubt(&stored)?;
    let mut entry = stored.clone();
    let mut place = place_of(engine, &entry);
    let (mut structure, hole) = place.stored_structure()?;
    let trouble = doubt.or(hole);
    let accepts = trouble.is_some();
    if let Some(error) = trouble {
        if !options.accept_loss {
            let kind = error.kind();
            let text = format!(
                "session {id:?} is not whole; resume it with accept_loss to go on without what was lost"
            );
            return Err(error.wrap(kind, text));
        }
        // From here on it is read as if the record that says so were written.
        entry.next_seq = engine.log.seq_after_loss(&stored)?;
        entry.accepted = entry.accepted.max(engine.log.tail()).max(Lsn(1));
        place = place_of(engine, &entry);
        structure = place.structure()?;
    }
    let next_seq = entry.next_seq;
    let mut surface = surface_of(&structure, place.is_lossy())?;
    let closers = repair_at::closers_behind(&place, &structure, stored.next_seq, next_seq)?;
    if accepts {
        tracing::warn!(session = id, next_seq, "a session goes on without what damage took");
    }
    if !closers.is_empty() {
        tracing::info!(session = id, closers = closers.len(), "an open turn will be closed");
    }
    fold_in(&mut surface, &closers)?;
    let rules = replayed(engine, &place, &structure, &closers)?;
    Ok(Prepared {
        origin: Origin::Resumed,
        header: header_of(&entry)?,
        opening: Opening::Resume { accept_loss: accepts.then_some(next_seq) },
        base: Some(Base { entry, count: next_seq }),
        copies: false,
        events: closers,
        surface,
        rules,
        violations: Vec::new(),
        stored: Some((stored.dense, stored.next_seq)),
        pin: None,
    })
}

fn place_of(engine: &Engine, entry: &SessionEntry) -> Place {
    Place::stored(engine.log.clone(), entry.clone(), entry.next_seq)
}

/// Folds closers into a surface that they were made for.
pub(super) fn fold_in(surface: &mut Surface, closers: &[Event]) -> Result<()> {
    for event in closers {
        if let Some(op) = event.surface_op() {
            surface.apply(event.seq(), &op)?;
        }
    }
    Ok(())
}

/// The checker of rules behind these events, if one is wanted. It then reads every event that is no chunk.
pub(super) fn replayed(
    engine: &Engine,
    place: &Place,
    structure: &[Structure],
    closers: &[Event],
) -> Result<Option<Rules>> {
    let Some(mut rules) = Rules::new(engine.invariants) else { return Ok(None) };
    for one in structure.iter().filter(|one| one.class != Class::Chunk) {
        match place.event(one.seq) {
            Ok(event) => rules.replay(&event),
            Err(error) if place.is_lossy() && error.is_corruption() => {}
            Err(error) => return Err(error),
        }
    }
    closers.iter().for_each(|event| rules.replay(event));
    Ok(Some(rules))
}
