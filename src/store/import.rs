//! A session that is brought in event by event, without holding it in memory.
//!
//! Always: it, or what is new of it, appears whole when it is published, or not at all; giving it up leaves nothing that
//! a reader sees. Its events are kept as they are. What is stored already is not stored again: of a known session only what is new is
//! added, and a child whose inherited events are its parent's refers to them (D6). Never: it is a live session
//! meanwhile; nobody hears of its events; a stored event is replaced.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, Header, Violation};
use crate::log::Durability;

use super::create::{SeedFold, check_header};
use super::engine::Engine;
use super::fork;
use super::known::{self, Known, Match};
use super::live::{Claim, LiveTable, Pinned};
use super::options::Invariants;
use super::stage::{Opening, Stage};

/// A session on its way in. Made by [`SessionStore::import`](crate::SessionStore::import); dropping it before
/// [`publish`](Self::publish) gives it up.
pub struct Import {
    id: String,
    known: Option<(Role, Known)>,
    fold: SeedFold,
    /// None in a rehearsal.
    sink: Option<Sink>,
    refused: Option<Error>,
    /// The session is stored with a header that says the same but is another text.
    other_header: bool,
}

/// What an import came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Published {
    /// A new session.
    Created,
    /// A new session that refers to its parent for its first events.
    Forked {
        /// The parent's id.
        parent: String,
        /// How many events it refers to.
        inherited: u64,
    },
    /// A known session got more events.
    Extended {
        /// How many it had.
        from: u64,
    },
    /// The store had all of it.
    Unchanged {
        /// How many events the store has.
        stored: u64,
    },
}

/// What the known events are to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Its own: the session is stored already.
    Own,
    /// Those of its parent that it may have inherited.
    Parent,
}

/// Where the events go.
struct Sink {
    engine: Arc<Engine>,
    stage: Stage,
    header: Header,
    dense: u64,
    /// Keeps the id from being taken meanwhile.
    _claim: Claim,
    /// Keeps the parent from being deleted.
    _pin: Option<Pinned>,
}

/// How many broken rules an import keeps to report; the rest is only counted.
const MAX_VIOLATIONS: usize = 1000;

impl Import {
    /// Into the store.
    pub(super) fn begin(engine: &Arc<Engine>, live: &Arc<LiveTable>, header: Header) -> Result<Self> {
        check_header(&header)?;
        let claim = live.claim(header.id())?;
        let found = find(engine, &header)?;
        let other_header = found.has_other_header(&header);
        let (known, pin, dense, opening) = match found {
            Found::New => (None, None, engine.log.allocate_dense()?, Opening::Create),
            Found::Own(known, dense) => {
                engine.log.attach(dense)?;
                (Some((Role::Own, known)), None, dense, Opening::Extend)
            }
            Found::Parent(known, parent, opening) => {
                let pin = live.pin_for_fork(parent).ok();
                // A parent that was deleted by now, or just is being, is none.
                let is_there = engine.log.session(parent)?.is_some_and(|entry| !entry.deleted);
                let dense = engine.log.allocate_dense()?;
                match pin.filter(|_| is_there) {
                    Some(pin) => (Some((Role::Parent, known)), Some(pin), dense, opening),
                    None => (None, None, dense, Opening::Create),
                }
            }
        };
        let stage = Stage::new(Arc::clone(engine), dense, header.clone(), opening);
        let id = header.id().to_owned();
        let sink = Sink { engine: Arc::clone(engine), stage, header, dense, _claim: claim, _pin: pin };
        let fold = SeedFold::new(engine.invariants);
        Ok(Self { id, known, fold, sink: Some(sink), refused: None, other_header })
    }

    /// The same, and nothing is written: what the store would do, and refuse.
    pub(super) fn rehearse(engine: &Engine, live: &Arc<LiveTable>, header: &Header) -> Result<Self> {
        check_header(header)?;
        drop(live.claim(header.id())?);
        let found = find(engine, header)?;
        let other_header = found.has_other_header(header);
        let known = match found {
            Found::New => None,
            Found::Own(known, _) => Some((Role::Own, known)),
            Found::Parent(known, ..) => Some((Role::Parent, known)),
        };
        Ok(Self { known, other_header, ..Self::offline(header)? })
    }

    /// A rehearsal for an empty store.
    pub(crate) fn offline(header: &Header) -> Result<Self> {
        check_header(header)?;
        let fold = SeedFold::new(Invariants::Off);
        let id = header.id().to_owned();
        Ok(Self { id, known: None, fold, sink: None, refused: None, other_header: false })
    }

    /// Refuses a session that comes after one of its id whose header is `told`, as one that is stored would be.
    pub(crate) fn check_again(told: &Header, header: &Header) -> Result<()> {
        known::refuse_other(told, header)
    }

    /// What refuses a session of the id `id` whose event `seq` is another one than before.
    pub(crate) fn differs(id: &str, seq: u64) -> Error {
        differs(id, seq)
    }

    /// Adds the next event; its seq must be its place. It waits for room in the log when there is none.
    ///
    /// # Errors
    /// As an append refuses an event (A2, A4, A5); [`Conflict`](ErrorKind::Conflict) when another event is stored at
    /// its place in the session of this id; what the log says. The import can then only be dropped.
    pub fn push(&mut self, event: &Event) -> Result<()> {
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        let pushed = self.fold.push(event).and_then(|()| self.take(event));
        self.fold.violations.truncate(MAX_VIOLATIONS);
        pushed.inspect_err(|error| self.refused = Some(error.clone()))
    }

    fn take(&mut self, event: &Event) -> Result<()> {
        if let Some((role, known)) = &mut self.known {
            match (known.compare(event), *role) {
                (Ok(Match::Same), Role::Own) => return Ok(()),
                (Ok(Match::Same), Role::Parent) => {
                    self.sink.iter_mut().for_each(|sink| sink.stage.inherit(event.class()));
                    return Ok(());
                }
                (Ok(Match::Differs), Role::Own) => return Err(differs(&self.id, event.seq())),
                (Err(error), Role::Own) => return Err(error),
                // What the parent has lost, its child still has.
                (Ok(Match::Differs) | Err(_), Role::Parent) => self.copy_inherited(event.seq())?,
                (Ok(Match::Behind), _) => {}
            }
        }
        self.sink.as_mut().map_or(Ok(()), |sink| sink.stage.push(event))
    }

    /// Copies the first `count` events of the parent: the session goes its own way from there.
    fn copy_inherited(&mut self, count: u64) -> Result<()> {
        let Some((_, known)) = self.known.take() else { return Ok(()) };
        let Some(sink) = &mut self.sink else { return Ok(()) };
        sink.stage = Stage::new(Arc::clone(&sink.engine), sink.dense, sink.header.clone(), Opening::Create);
        known.first(count).try_for_each(|event| sink.stage.push(&event?))
    }

    /// Whether the session is stored already with a header that says the same in another text: it stays as it is.
    #[must_use]
    pub fn has_other_header(&self) -> bool {
        self.other_header
    }

    /// How many events it has so far.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.fold.next_seq
    }

    /// What the events break of rules I5 to I10, the first 1000; they are accepted nevertheless.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.fold.violations
    }

    /// How many rules of I5 to I10 they break.
    #[must_use]
    pub fn violation_count(&self) -> u64 {
        self.fold.violation_count
    }

    /// Makes the session visible, and with [`Durability::Durable`] durable before it returns.
    ///
    /// # Errors
    /// The error of an earlier [`push`](Self::push), or what the log says. The session is then as it was before.
    pub fn publish(mut self, durability: Durability) -> Result<Published> {
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        let seq = self.seq();
        let published = match &self.known {
            Some((Role::Own, known)) if seq <= known.end() => Published::Unchanged { stored: known.end() },
            Some((Role::Own, known)) => Published::Extended { from: known.end() },
            Some((Role::Parent, known)) if seq >= known.end() => {
                Published::Forked { parent: known.id().to_owned(), inherited: known.end() }
            }
            Some((Role::Parent, _)) => {
                self.copy_inherited(seq)?;
                Published::Created
            }
            None => Published::Created,
        };
        if let Some(sink) = &mut self.sink
            && !matches!(published, Published::Unchanged { .. })
        {
            sink.finish(durability)?;
        }
        Ok(published)
    }
}

impl Sink {
    fn finish(&mut self, durability: Durability) -> Result<()> {
        let end = loop {
            match self.stage.finish() {
                Err(error) if error.is_backpressure() => self.stage.wait_for_room()?,
                other => break other?,
            }
        };
        end.map_or(Ok(()), |end| self.engine.log.flush(end, durability))
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.stage.abandon();
        // Its first record attached it, or the beginning did.
        self.engine.log.detach(self.dense);
        if self.stage.dense() != self.dense {
            self.engine.log.detach(self.stage.dense());
        }
    }
}

/// What is stored of a session that comes in.
enum Found {
    New,
    /// Itself, and its number.
    Own(Known, u64),
    /// The events that it says it inherited, their session's number, and the record that refers to them.
    Parent(Known, u64, Opening),
}

impl Found {
    fn has_other_header(&self, header: &Header) -> bool {
        matches!(self, Self::Own(known, _) if known.header().is_ok_and(|stored| stored.to_line() != header.to_line()))
    }
}

fn find(engine: &Engine, header: &Header) -> Result<Found> {
    if let Some(entry) = engine.log.lookup(header.id())? {
        known::check_header(&entry, header)?;
        if let Some(doubt) = engine.log.doubt(&entry)? {
            let kind = doubt.kind();
            return Err(doubt.wrap(kind, format!("the stored session {:?} is not whole", header.id())));
        }
        let (dense, end) = (entry.dense, entry.next_seq);
        return Ok(Found::Own(Known::new(&engine.log, entry, end), dense));
    }
    let inherited = header.seed_length().filter(|events| *events > 0);
    let (Some(parent), Some(cut)) = (header.parent_session(), inherited) else { return Ok(Found::New) };
    let Some(entry) = engine.log.lookup(parent)?.filter(|entry| entry.next_seq >= cut) else {
        return Ok(Found::New);
    };
    Ok(match fork::opening(engine, &entry, cut, false) {
        Ok(opening @ Opening::Fork(..)) => {
            let dense = entry.dense;
            Found::Parent(Known::new(&engine.log, entry, cut), dense, opening)
        }
        // A parent that has lost an ancestor is nothing to refer to.
        Err(error) if !error.is_corruption() => return Err(error),
        _ => Found::New,
    })
}

fn differs(id: &str, seq: u64) -> Error {
    let text = format!(
        "event {seq} of session {id:?} is another one than the stored event {seq}; nothing was changed, delete the \
         stored session first if this one is to take its place"
    );
    Error::new(ErrorKind::Conflict, text)
}

impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import").field("id", &self.id).field("seq", &self.seq()).finish_non_exhaustive()
    }
}
