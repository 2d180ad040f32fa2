//! A stored session, opened for reading.
//!
//! Always: it is a snapshot until it is refreshed, also when an import has brought more since, and it writes nothing: what repair would add is computed in
//! memory (R3). What was lost to damage is an error at its place, never skipped (P2).

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::Result;
use crate::event::{Event, Header, Message, Surface, SurfaceNode};
use crate::log::SessionEntry;

use super::engine::{Engine, not_found};
use super::messages::MessageCache;
use super::place::{Events, Place};
use super::provenance::{Provenance, provenance, surface_of};
use super::repair_at;
use super::stat::{Stat, header_of};

/// See the module.
pub struct SessionReader {
    engine: Arc<Engine>,
    entry: SessionEntry,
    header: Header,
    place: Place,
    /// Built when first asked for.
    surface: Mutex<Option<Arc<Surface>>>,
    messages: MessageCache,
}

impl SessionReader {
    pub(super) fn new(engine: &Arc<Engine>, entry: SessionEntry) -> Result<Self> {
        Ok(Self {
            header: header_of(&entry)?,
            place: Place::stored(engine.log.clone(), entry.clone(), entry.next_seq),
            engine: Arc::clone(engine),
            entry,
            surface: Mutex::new(None),
            messages: MessageCache::default(),
        })
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.header.id()
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The number of events.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.place.end()
    }

    /// The session in numbers.
    ///
    /// # Errors
    /// Errors of reading the index.
    pub fn stat(&self) -> Result<Stat> {
        Stat::of(&self.engine.log, &self.entry)
    }

    /// Takes in what was appended or imported since; whether there was anything. Of a store that was opened read-only, refresh
    /// the store first.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) when the session was deleted; errors of reading.
    pub fn refresh(&mut self) -> Result<bool> {
        let entry = self.engine.log.newest(&self.entry)?.ok_or_else(|| not_found(self.id()))?;
        if entry == self.entry {
            return Ok(false);
        }
        self.place = Place::stored(self.engine.log.clone(), entry.clone(), entry.next_seq);
        self.entry = entry;
        *self.surface.lock() = None;
        Ok(true)
    }

    /// All events, streamed.
    #[must_use]
    pub fn events(&self) -> Events {
        self.read_from(0)
    }

    /// The events from `seq` on, streamed.
    #[must_use]
    pub fn read_from(&self, seq: u64) -> Events {
        self.place.read_from(seq)
    }

    /// The last `count` events, oldest first, at the cost of reading these.
    #[must_use]
    pub fn tail(&self, count: u64) -> Events {
        self.place.tail(count)
    }

    /// The event `seq`.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) for a seq that the session does not have;
    /// [`Corrupt`](crate::ErrorKind::Corrupt) when it was lost to damage.
    pub fn event(&self, seq: u64) -> Result<Event> {
        self.place.event(seq)
    }

    /// The nodes of the surface, from head to tail, rebuilt from the index without reading an event (S3).
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) when events were lost to damage.
    pub fn surface(&self) -> Result<Vec<SurfaceNode>> {
        Ok(self.folded()?.nodes().collect())
    }

    /// The messages for a model: the surface, derived (M).
    ///
    /// # Errors
    /// As [`surface`](Self::surface).
    pub fn derive_messages(&self) -> Result<Vec<Message>> {
        let nodes: Vec<u64> = self.folded()?.nodes().map(|node| node.seq).collect();
        self.messages.derive(&nodes, |seqs| self.place.pick(seqs))
    }

    /// Where the event `seq` comes from and what became of it (S4).
    ///
    /// # Errors
    /// As [`event`](Self::event) and [`surface`](Self::surface).
    pub fn provenance(&self, seq: u64) -> Result<Provenance> {
        let surface = self.folded()?;
        provenance(seq, &self.place.structure()?, &surface, |seqs| self.place.pick(seqs))
    }

    /// The closers that a resume would append (R2); none when the session is balanced. Nothing is written.
    ///
    /// # Errors
    /// As [`surface`](Self::surface).
    pub fn closers(&self) -> Result<Vec<Event>> {
        repair_at::closers(&self.place, &self.place.structure()?, self.place.end())
    }

    fn folded(&self) -> Result<Arc<Surface>> {
        if let Some(surface) = &*self.surface.lock() {
            return Ok(Arc::clone(surface));
        }
        // Two threads may build it at once; the lock is not held while the index is read.
        let surface = Arc::new(surface_of(&self.place.structure()?, self.place.is_lossy())?);
        *self.surface.lock() = Some(Arc::clone(&surface));
        Ok(surface)
    }
}

impl std::fmt::Debug for SessionReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionReader")
            .field("id", &self.id())
            .field("seq", &self.seq())
            .finish_non_exhaustive()
    }
}
