//! Where an event comes from and what became of it (S4).
//!
//! Always: it reads only surface events, never a chunk, except for the asked one. Never: it is kept in memory.

use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, Surface, SurfaceOp};
use crate::log::Structure;

/// The relations of one event, both ways. All lists hold seqs, in the order that the log gives them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Provenance {
    /// The events it was made from, as it says itself.
    pub sources: Vec<u64>,
    /// The events that name it among their sources.
    pub derived: Vec<u64>,
    /// The nodes that it replaced on the surface.
    pub shadows: Vec<u64>,
    /// The event that replaced it on the surface.
    pub shadowed_by: Option<u64>,
}

/// How many events are in memory at a time.
const AT_A_TIME: usize = 64;

pub(super) fn provenance(
    seq: u64,
    structure: &[Structure],
    surface: &Surface,
    read: impl Fn(&[u64]) -> Result<Vec<Event>>,
) -> Result<Provenance> {
    let event = read(&[seq])?;
    let sources = event.first().and_then(Event::sources).unwrap_or_default().to_vec();
    let mut found = Provenance {
        sources,
        derived: Vec::new(),
        shadows: surface.shadows(seq).collect(),
        shadowed_by: surface.shadowed_by(seq),
    };
    let later = structure.get(structure.partition_point(|one| one.seq <= seq)..).unwrap_or_default();
    let later: Vec<u64> = later.iter().filter(|one| one.op.is_some()).map(|one| one.seq).collect();
    for some in later.chunks(AT_A_TIME) {
        let naming =
            read(some)?.into_iter().filter(|event| event.sources().is_some_and(|list| list.contains(&seq)));
        found.derived.extend(naming.map(|event| event.seq()));
    }
    Ok(found)
}

/// The surface that these entries make (S3). With `lossy`, what refers to lost nodes counts as an append: everything
/// that is left stays in view.
pub(super) fn surface_of(structure: &[Structure], lossy: bool) -> Result<Surface> {
    let mut surface = Surface::new();
    for one in structure {
        let Some(op) = &one.op else { continue };
        match surface.apply(one.seq, op) {
            Ok(()) => {}
            Err(_) if lossy && surface.apply(one.seq, &SurfaceOp::Append).is_ok() => {}
            Err(error) => {
                return Err(Error::new(
                    ErrorKind::Corrupt,
                    format!("event {} does not fit the stored surface: {error}; run verify", one.seq),
                ));
            }
        }
    }
    Ok(surface)
}
