//! One session on its way into a store, read once.

use std::path::Path;

use super::super::hole::Hole;
use super::super::offer::Offer;
use super::super::verdict::{Ending, Verdict};
use super::rehearsal::{Comparison, Rehearsal};
use super::{ImportOptions, Item, Target};
use crate::event::{HeaderNote, Violation};
use crate::{Durability, Error, ErrorKind, Result};
use crate::{Import, Published};

/// Notes that are kept of one session; further ones are only counted.
const KEPT_NOTES: usize = 16;
/// Events between two reports of progress.
const PROGRESS_STEP: u64 = 512;

/// A session that was imported.
#[derive(Debug)]
pub struct Imported {
    /// The session's id, from the header.
    pub id: String,
    /// What became of it in the store.
    pub fate: Fate,
    /// What was offered.
    pub verdict: Verdict,
    /// Odd header fields that were kept.
    pub header_notes: Vec<HeaderNote>,
    /// What else there is to know of the source.
    pub remarks: Vec<String>,
    /// The first violations of I5-I10 and M. They do not stop an import.
    pub notes: Vec<Violation>,
    /// All violations of I5-I10 and M.
    pub note_count: u64,
}

/// What became of a session in the store.
pub type Fate = Published;

/// Where sessions go, and how.
pub(super) struct Way<'a> {
    pub(super) target: Target<'a>,
    pub(super) options: ImportOptions,
    /// What a dry run was told of before.
    pub(super) rehearsal: &'a mut Rehearsal,
}

impl Way<'_> {
    /// Takes the session in, or tells what would become of it.
    pub(super) fn take(
        self,
        item: &Item,
        offer: &mut dyn Offer,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported> {
        let Target::Rehearsal(store) = self.target else {
            return take(&self, item, offer, progress, None);
        };
        let header = offer.header().clone();
        let named = |error| named(error, &item.path);
        let is_stored = store.is_some_and(|store| store.stat(header.id()).is_ok());
        let imported = match self.rehearsal.find(&header, is_stored).map_err(named)? {
            None => take(&self, item, offer, progress, None),
            Some(known) => {
                let database = known.database()?;
                let mut comparison = known.compare(database.as_ref())?;
                let mut imported = take(&self, item, offer, progress, Some(&mut comparison))?;
                imported.fate = comparison.fate(imported.verdict.events);
                Ok(imported)
            }
        }?;
        self.rehearsal.note(item, &header, &imported);
        Ok(imported)
    }
}

pub(super) fn named(error: Error, path: &Path) -> Error {
    let kind = error.kind();
    error.wrap(kind, path.display().to_string())
}

fn take(
    way: &Way<'_>,
    item: &Item,
    offer: &mut dyn Offer,
    progress: &mut dyn FnMut(u64),
    comparison: Option<&mut Comparison<'_>>,
) -> Result<Imported> {
    let header = offer.header().clone();
    let import = match way.target {
        Target::Store(store) => store.import(header.clone()),
        Target::Rehearsal(Some(store)) => store.rehearse_import(&header),
        Target::Rehearsal(None) => Import::offline(&header),
    }
    .map_err(|error| named(error, &item.path))?;
    let mut going = |read| {
        progress(read);
        Ok(())
    };
    bring(import, way.options, item, offer, &mut going, comparison)
}

/// Brings all of the session in, once its import has begun. `progress` is told how many bytes were read, and may end it.
pub(super) fn bring(
    mut import: Import,
    options: ImportOptions,
    item: &Item,
    offer: &mut dyn Offer,
    progress: &mut dyn FnMut(u64) -> Result<()>,
    mut comparison: Option<&mut Comparison<'_>>,
) -> Result<Imported> {
    let path = item.path.as_path();
    let header = offer.header().clone();
    while let Some(event) = offer.next_event()? {
        let pushed = import.push(&event);
        let compared = pushed.and_then(|()| comparison.as_mut().map_or(Ok(()), |other| other.take(&event)));
        compared.map_err(|error| refused(error, &offer.place()))?;
        if import.seq().is_multiple_of(PROGRESS_STEP) {
            progress(offer.consumed())?;
        }
    }
    let verdict = offer.finish()?;
    progress(offer.consumed())?;
    if let Ending::Damaged(hole) = &verdict.ending
        && !options.salvage
    {
        return Err(refusal(path, &header, hole, &verdict));
    }
    let mut remarks = offer.remarks();
    if import.has_other_header() || comparison.is_some_and(|other| other.has_other_header(&header)) {
        let text = "its header has other fields, or spells them otherwise, than the stored one; the stored header stays";
        remarks.push(text.to_owned());
    }
    let (mut notes, note_count) = (import.violations().to_vec(), import.violation_count());
    notes.truncate(KEPT_NOTES);
    let fate = import.publish(Durability::Accepted).map_err(|error| named(error, path))?;
    let (id, header_notes) = (header.id().to_owned(), offer.header_notes().to_vec());
    Ok(Imported { id, fate, verdict, header_notes, remarks, notes, note_count })
}

/// Where an event stands that is not taken, and which rule it breaks.
fn refused(error: Error, place: &str) -> Error {
    let rule = match error.kind() {
        ErrorKind::Marker => " breaks I2",
        ErrorKind::Sources => " breaks I3",
        ErrorKind::Replace => " breaks I4",
        _ => "",
    };
    let kind = error.kind();
    error.wrap(kind, format!("{place}{rule}"))
}

fn refusal(path: &Path, header: &crate::Header, hole: &Hole, verdict: &Verdict) -> Error {
    let text = format!(
        "{}: damage in session {:?}, {hole}; what stands behind it ends a turn, so events are missing. The first {} \
         events ({} of {} bytes) could be kept with --salvage; nothing was stored",
        path.display(),
        header.id(),
        verdict.events,
        verdict.kept_bytes,
        verdict.total_bytes
    );
    Error::new(ErrorKind::Corrupt, text)
}
