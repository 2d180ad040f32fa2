//! What an event must satisfy before it may join a log: A2, A4 and A5, in that order.
//!
//! The same checks serve an append, a batch, a seed and an import. Nothing here changes a log: a whole batch is
//! checked on a [`Staged`] surface, which goes back to where it was unless it is committed (A3, A6, S5).

use std::fmt;

use super::surface::{Mark, Sources, Surface};
use super::{Class, Event, NewEvent, SurfaceOp};
use crate::{Error, ErrorKind, Result};

/// Whether `event` may be the one with seq `next_seq` of a log with this `surface` (A2, A4, A5).
///
/// The seqs of a log are contiguous, so a source exists if it is lower than `next_seq`.
///
/// # Errors
/// [`ErrorKind::Marker`], [`ErrorKind::Sources`] or [`ErrorKind::Replace`], with a [`MarkerError`],
/// [`SourcesError`] or [`ReplaceError`](super::ReplaceError) as its source.
pub fn check_append(next_seq: u64, event: &NewEvent, surface: &Surface) -> Result<()> {
    check_parts(next_seq, event.class(), event.surface_op(), event.sources(), surface)
}

fn check_parts(
    next_seq: u64,
    class: Class,
    op: Option<SurfaceOp>,
    sources: Option<&[u64]>,
    surface: &Surface,
) -> Result<()> {
    check_marker(class, op.is_some(), sources.is_some())?;
    if let Some(sources) = sources {
        check_sources(class, sources, next_seq)?;
    }
    if let Some(SurfaceOp::Replace { start, end }) = op {
        surface.check_replace(start, end, sources.unwrap_or_default(), next_seq)?;
    }
    Ok(())
}

/// Whether an event that comes from elsewhere may be the next one of a log with this `surface` (A2, A4, A5).
pub(crate) fn check_event(next_seq: u64, event: &Event, surface: &Surface) -> Result<()> {
    check_parts(next_seq, event.class(), event.surface_op(), event.sources(), surface)
}

/// Whether an event of `class` has surface metadata exactly where it must (A2).
pub(crate) fn check_marker(class: Class, has_op: bool, has_sources: bool) -> Result<(), MarkerError> {
    match (class.is_surface(), has_op, has_sources) {
        (true, false, _) => Err(MarkerError::Missing),
        (false, true, _) => Err(MarkerError::Op),
        (false, false, true) => Err(MarkerError::Sources),
        _ => Ok(()),
    }
}

/// Whether `sources` may be the sources of an event of `class` with seq `seq` (A4).
pub(crate) fn check_sources(class: Class, sources: &[u64], seq: u64) -> Result<(), SourcesError> {
    if sources.is_empty() && class != Class::AssistantMessage {
        return Err(SourcesError::Empty);
    }
    let set = Sources::new(sources);
    if let Some(source) = set.last().filter(|&last| last >= seq) {
        return Err(SourcesError::NotEarlier { source, seq });
    }
    set.duplicate().map_or(Ok(()), |source| Err(SourcesError::Duplicate { source }))
}

/// A surface on which events are tried out.
///
/// Dropping it undoes what was pushed, at the cost that the pushes had; [`commit`](Self::commit) keeps it.
#[derive(Debug)]
pub(crate) struct Staged<'a> {
    surface: &'a mut Surface,
    mark: Mark,
    next_seq: u64,
    is_committed: bool,
}

impl<'a> Staged<'a> {
    /// Begins a batch whose first event gets `next_seq`.
    pub(crate) fn begin(surface: &'a mut Surface, next_seq: u64) -> Self {
        let mark = surface.mark();
        Self { surface, mark, next_seq, is_committed: false }
    }

    /// Checks `event` as the next one, behind those pushed before, and folds it in. Its seq.
    pub(crate) fn push(&mut self, event: &NewEvent) -> Result<u64> {
        let seq = self.next_seq;
        let following = seq.checked_add(1).ok_or_else(|| {
            Error::new(
                ErrorKind::TooLarge,
                format!("append event {seq}: no seq is left; start a new session"),
            )
        })?;
        check_append(seq, event, self.surface)?;
        if let Some(op) = event.surface_op() {
            self.surface.apply(seq, &op)?;
        }
        self.next_seq = following;
        Ok(seq)
    }

    /// The surface with what was pushed.
    #[cfg(test)]
    pub(crate) fn surface(&self) -> &Surface {
        self.surface
    }

    /// Keeps what was pushed.
    pub(crate) fn commit(mut self) {
        self.is_committed = true;
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if !self.is_committed {
            self.surface.roll_back(self.mark);
        }
    }
}

/// Surface metadata where none belongs, or none where it must be (A2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarkerError {
    /// A surface type without a `surfaceOp`.
    Missing,
    /// A `surfaceOp` on another type.
    Op,
    /// A `sourceEventSeqs` on another type.
    Sources,
}

impl fmt::Display for MarkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "a surface event has no surfaceOp; give it \"append\" or a replace",
            Self::Op => "an event of a type that is not on the surface has a surfaceOp; leave it out",
            Self::Sources => {
                "an event of a type that is not on the surface has sourceEventSeqs; leave them out"
            }
        })
    }
}

impl std::error::Error for MarkerError {}

impl From<MarkerError> for Error {
    fn from(error: MarkerError) -> Self {
        Self::typed(ErrorKind::Marker, error)
    }
}

/// Sources that A4 does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourcesError {
    /// An empty list on another type than assistant/message.
    Empty,
    /// A source that is not earlier than the event.
    NotEarlier {
        /// The source.
        source: u64,
        /// The event.
        seq: u64,
    },
    /// A source that is listed twice.
    Duplicate {
        /// The source.
        source: u64,
    },
}

impl fmt::Display for SourcesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => {
                f.write_str("sourceEventSeqs is empty; only an assistant/message may say so, leave it out")
            }
            Self::NotEarlier { source, seq } => {
                write!(
                    f,
                    "sourceEventSeqs of event {seq} names {source}, which is not earlier; name earlier events"
                )
            }
            Self::Duplicate { source } => write!(f, "sourceEventSeqs names {source} twice; name it once"),
        }
    }
}

impl std::error::Error for SourcesError {}

impl From<SourcesError> for Error {
    fn from(error: SourcesError) -> Self {
        Self::typed(ErrorKind::Sources, error)
    }
}

#[cfg(test)]
#[path = "append_tests.rs"]
mod tests;
