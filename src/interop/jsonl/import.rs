//! A file as a stored session (rules X1, I, L).
//!
//! What always holds: a session appears whole or not at all. The file is read twice: once to judge it, once to
//! store it, so that a refused file writes nothing and a large one needs no memory. What is never done: writing
//! closers, adding markers, storing what breaks I2-I4, J or the envelope's shape.

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::path::Path;

use super::super::hole::Hole;
use super::super::verdict::{Ending, Verdict};
use super::reader::Reader;
use crate::SessionStore;
use crate::event::{Checker, Header, HeaderNote, Rule, Violation};
use crate::{Error, ErrorKind, Result};

/// Notes that are kept of one file; further ones are only counted.
const KEPT_NOTES: usize = 16;

/// How files are imported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Import the events before a hole that is damage. Without it such a file is refused.
    pub salvage: bool,
}

/// A session that was imported.
#[derive(Debug)]
pub struct Imported {
    /// The session's id, from the header.
    pub id: String,
    /// What the file is.
    pub verdict: Verdict,
    /// Odd header fields that were kept.
    pub header_notes: Vec<HeaderNote>,
    /// The first violations of I5-I10 and M. They do not stop an import.
    pub notes: Vec<Violation>,
    /// All violations of I5-I10 and M.
    pub note_count: u64,
}

/// What the first reading found.
struct Judged {
    header: Header,
    header_notes: Vec<HeaderNote>,
    verdict: Verdict,
    notes: Vec<Violation>,
    note_count: u64,
}

/// Stores the session in the file at `path`.
///
/// # Errors
/// A file that cannot be read or is no session file; damage, unless it is salvaged (kind `Corrupt`: the message
/// says line, byte offset, reason and what could be kept); events that break I2-I4, J or the envelope's shape; an
/// id that is stored already (kind `Exists`). The store is unchanged then.
pub fn import_file(store: &SessionStore, path: &Path, options: ImportOptions) -> Result<Imported> {
    let mut file = File::open(path).map_err(|error| Error::io("open", path, error))?;
    let judged = judge(&file, path)?;
    if let Ending::Damaged(hole) = &judged.verdict.ending
        && !options.salvage
    {
        return Err(refusal(path, hole, &judged.verdict));
    }
    file.seek(SeekFrom::Start(0)).map_err(|error| Error::io("rewind", path, error))?;
    keep(store, &file, path, &judged)?;
    Ok(Imported {
        id: judged.header.id().to_owned(),
        verdict: judged.verdict,
        header_notes: judged.header_notes,
        notes: judged.notes,
        note_count: judged.note_count,
    })
}

fn reader<'a>(file: &'a File, path: &Path) -> Result<Reader<BufReader<&'a File>>> {
    Reader::new(BufReader::with_capacity(1 << 16, file), path)
}

fn judge(file: &File, path: &Path) -> Result<Judged> {
    let mut reader = reader(file, path)?;
    let (header, header_notes) = (reader.header().clone(), reader.header_notes().to_vec());
    let mut checker = Checker::new();
    let (mut notes, mut note_count) = (Vec::new(), 0);
    while let Some(violations) = reader.check_next(&mut checker)? {
        for violation in violations {
            if refuses(violation.rule) {
                return Err(broken(path, reader.line(), violation));
            }
            note_count += 1;
            if notes.len() < KEPT_NOTES {
                notes.push(violation.clone());
            }
        }
    }
    let verdict = reader.finish()?;
    Ok(Judged { header, header_notes, verdict, notes, note_count })
}

/// What a stored session can never break. The others are notes.
fn refuses(rule: Rule) -> bool {
    matches!(rule, Rule::I1 | Rule::I2 | Rule::I3 | Rule::I4 | Rule::V)
}

fn broken(path: &Path, line: u64, violation: &Violation) -> Error {
    let text = format!("{} line {line} breaks {violation}; nothing was stored", path.display());
    Error::new(ErrorKind::Invariant, text)
}

fn refusal(path: &Path, hole: &Hole, verdict: &Verdict) -> Error {
    let text = format!(
        "{}: damage in {hole}; a later line ends a turn, so events are missing. The first {} events ({} of {} \
         bytes) could be kept with --salvage; nothing was stored",
        path.display(),
        verdict.events,
        verdict.kept_bytes,
        verdict.total_bytes
    );
    Error::new(ErrorKind::Corrupt, text)
}

fn keep(store: &SessionStore, file: &File, path: &Path, judged: &Judged) -> Result<()> {
    let mut reader = reader(file, path)?;
    let mut import = store.import(judged.header.clone())?;
    for _ in 0..judged.verdict.events {
        let Some(event) = reader.next_event()? else {
            return Err(changed(path));
        };
        import.push(&event)?;
    }
    import.publish()
}

fn changed(path: &Path) -> Error {
    let text = format!("{} changed while it was read; nothing was stored", path.display());
    Error::new(ErrorKind::Corrupt, text)
}
