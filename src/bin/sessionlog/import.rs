//! `import`: JSONL files as stored sessions.
//!
//! What always holds: one bad file stops no other one; each is reported.

use std::path::Path;

use serde::Serialize;
use sessionlog::interop::jsonl::{ImportOptions, Imported, find_files, import_file};
use sessionlog::interop::{Ending, Hole};
use sessionlog::{Error, SessionStore};

use crate::args;
use crate::failure::{Ended, Failure, Outcome};
use crate::output::{Output, printable, say};
use crate::progress::Progress;
use crate::stores::Stores;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stored<'a> {
    file: &'a Path,
    session: &'a str,
    events: u64,
    #[serde(skip_serializing_if = "is_zero")]
    packed_rows: u64,
    #[serde(skip_serializing_if = "is_zero")]
    packed_events: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    torn: Option<Missing<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<Missing<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    notes: u64,
}

/// What a file had and the session has not.
#[derive(Serialize)]
struct Missing<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    bytes: u64,
    seq: u64,
    reason: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
struct Refused<'a> {
    file: &'a Path,
    error: Why<'a>,
}

#[derive(Serialize)]
struct Why<'a> {
    kind: &'a str,
    message: &'a str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

pub(crate) fn run(stores: &Stores, args: &args::Import, out: &mut Output) -> Ended {
    let mut files = Vec::new();
    let mut refused = 0_u64;
    for path in &args.paths {
        let found = find_files(path);
        if found.files.is_empty() && found.errors.is_empty() {
            say(format_args!("{}: no *.jsonl file in it", path.display()));
        }
        files.extend(found.files);
        for error in found.errors {
            refused += 1;
            refuse(error.path().unwrap_or(path), &error, out)?;
        }
    }
    let store = stores.open_or_create()?;
    let mut stored = 0_u64;
    let options = ImportOptions { salvage: args.salvage };
    let progress = Progress::new("files imported", u64::try_from(files.len()).ok());
    for file in &files {
        match import_one(&store, file, options, out) {
            Ok(true) => stored += 1,
            Ok(false) => refused += 1,
            Err(failure) => {
                // Why it ended early says more than how it closed.
                let _ = store.close();
                return Err(failure);
            }
        }
        progress.add(1);
    }
    drop(progress);
    store.close()?;
    say(format_args!("{stored} sessions stored, {refused} files refused"));
    Ok(Outcome::findings_if(refused > 0))
}

/// Whether the file's session was stored. What makes the store unusable is a failure.
fn import_one(
    store: &SessionStore,
    file: &Path,
    options: ImportOptions,
    out: &mut Output,
) -> Result<bool, Failure> {
    match import_file(store, file, options) {
        Ok(imported) => {
            report(file, &imported, out)?;
            Ok(true)
        }
        Err(error) if error.is_poisoned() || error.is_closed() => Err(error.into()),
        Err(error) => {
            refuse(file, &error, out)?;
            Ok(false)
        }
    }
}

fn refuse(file: &Path, error: &Error, out: &mut Output) -> std::io::Result<()> {
    let (message, name) = (error.to_string(), file.display().to_string());
    if out.json {
        out.json(&Refused { file, error: Why { kind: error.kind().code(), message: &message } })?;
    }
    let words = if message.contains(&name) { message } else { format!("{name}: {message}") };
    say(format_args!("refused: {}", printable(&words)));
    Ok(())
}

fn report(file: &Path, imported: &Imported, out: &mut Output) -> Result<(), Failure> {
    let verdict = &imported.verdict;
    let hole = match &verdict.ending {
        Ending::Torn(hole) | Ending::Damaged(hole) => Some(hole),
        _ => None,
    };
    let is_damage = matches!(verdict.ending, Ending::Damaged(_));
    let message = hole.map(ToString::to_string).unwrap_or_default();
    let missing = |hole: &Hole| Missing {
        line: hole.line().map(|(line, _)| line),
        offset: hole.line().map(|(_, offset)| offset),
        bytes: verdict.lost_bytes(),
        seq: hole.seq,
        reason: hole.reason.code(),
        message: &message,
    };
    if out.json {
        out.json(&Stored {
            file,
            session: &imported.id,
            events: verdict.events,
            packed_rows: verdict.packed_rows,
            packed_events: verdict.packed_events,
            torn: hole.filter(|_| !is_damage).map(missing),
            damage: hole.filter(|_| is_damage).map(missing),
            notes: imported.note_count,
        })?;
    } else {
        let id = printable(&imported.id);
        out.line(format_args!("{id}  {} events  {}", verdict.events, file.display()))?;
    }
    describe(file, imported, hole.map(|hole| (hole, is_damage)));
    Ok(())
}

/// What a person should know of a file that was stored.
fn describe(file: &Path, imported: &Imported, hole: Option<(&Hole, bool)>) {
    let verdict = &imported.verdict;
    let note = |text: String| say(printable(&format!("note: {}: {text}", file.display())));
    if verdict.packed_rows > 0 {
        note(format!("{} packed rows became {} events", verdict.packed_rows, verdict.packed_events));
    }
    match hole {
        Some((hole, true)) => note(format!(
            "salvaged {} events; missing is everything from event {} on, {} of {} bytes: {hole}",
            verdict.events,
            hole.seq,
            verdict.lost_bytes(),
            verdict.total_bytes
        )),
        Some((hole, false)) => {
            note(format!("a torn tail of {} bytes was cut: {hole}", verdict.lost_bytes()));
        }
        None => {}
    }
    for header_note in &imported.header_notes {
        note(format!("header: {header_note}"));
    }
    for violation in &imported.notes {
        note(violation.to_string());
    }
    let told = u64::try_from(imported.notes.len()).unwrap_or(u64::MAX);
    if imported.note_count > told {
        note(format!("and {} more like these; see check", imported.note_count - told));
    }
}
