//! A session that is brought in event by event, without holding it in memory.
//!
//! Always: it appears whole when it is published, or not at all; giving it up leaves nothing that a reader sees.
//! Its events are kept as they are. Never: it is a live session meanwhile; nobody hears of its events.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, Header, Violation};
use crate::log::Durability;

use super::create::{SeedFold, check_header};
use super::engine::Engine;
use super::live::{Claim, LiveTable};
use super::stage::{Opening, Stage};

/// A session on its way in. Made by [`SessionStore::import`](crate::SessionStore::import); dropping it before
/// [`publish`](Self::publish) gives it up.
pub struct Import {
    engine: Arc<Engine>,
    stage: Stage,
    fold: SeedFold,
    /// Keeps the id from being taken meanwhile.
    _claim: Claim,
    dense: u64,
    refused: Option<Error>,
}

/// How many broken rules an import keeps to report; the rest is only counted.
const MAX_VIOLATIONS: usize = 1000;

impl Import {
    pub(super) fn begin(engine: &Arc<Engine>, live: &Arc<LiveTable>, header: Header) -> Result<Self> {
        check_header(&header)?;
        let claim = live.claim(header.id())?;
        if engine.log.lookup(header.id())?.is_some() {
            return Err(Error::new(
                ErrorKind::Exists,
                format!(
                    "session {:?} is stored already; delete it first, or import under another id",
                    header.id()
                ),
            ));
        }
        let dense = engine.log.allocate_dense()?;
        Ok(Self {
            engine: Arc::clone(engine),
            stage: Stage::new(Arc::clone(engine), dense, header, Opening::Create),
            fold: SeedFold::new(engine.invariants),
            _claim: claim,
            dense,
            refused: None,
        })
    }

    /// Adds the next event; its seq must be its place. It waits for room in the log when there is none.
    ///
    /// # Errors
    /// As an append refuses an event (A2, A4, A5), or what the log says. The import can then only be dropped.
    pub fn push(&mut self, event: &Event) -> Result<()> {
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        let pushed = self.fold.push(event).and_then(|()| self.stage.push(event));
        self.fold.violations.truncate(MAX_VIOLATIONS);
        pushed.inspect_err(|error| self.refused = Some(error.clone()))
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

    /// Makes the session visible and durable.
    ///
    /// # Errors
    /// The error of an earlier [`push`](Self::push), or what the log says. The session is then not there.
    pub fn publish(mut self) -> Result<()> {
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        let end = loop {
            match self.stage.finish() {
                Err(error) if error.is_backpressure() => self.stage.wait_for_room()?,
                other => break other?,
            }
        };
        end.map_or(Ok(()), |end| self.engine.log.flush(end, Durability::Durable))
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        self.stage.abandon();
        // Its first record attached it.
        self.engine.log.detach(self.dense);
    }
}

impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import").field("seq", &self.seq()).finish_non_exhaustive()
    }
}
