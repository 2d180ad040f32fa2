//! `import`: other programs' files as stored sessions.
//!
//! What always holds: one bad file stops no other one; each is reported.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::Path;

use serde::Serialize;
use sessionlog::interop::import::{Fate, ImportOptions, Imported, Importer, Item, Survey, Target, survey};
use sessionlog::interop::{Ending, Hole};
use sessionlog::{Error, SessionStore};

use crate::args;
use crate::failure::{Ended, Failure, Outcome};
use crate::output::{Output, printable, say};
use crate::progress::Progress;
use crate::stores::Stores;

/// Sessions that share a flush.
const GROUP: usize = 256;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stored<'a> {
    file: Cow<'a, str>,
    session: &'a str,
    result: &'static str,
    events: u64,
    /// How many events the store has; only where that is not `events`.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<u64>,
    /// The first event that is new, of a session that was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    /// How many events it shares with its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    inherited: Option<u64>,
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
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    remarks: &'a [String],
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
    file: Cow<'a, str>,
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
    let survey = survey(&args.paths);
    for path in &survey.empty {
        let what = if path.is_dir() { "no *.jsonl file in it" } else { "a database without sessions" };
        say(printable(&format!("{}: {what}", path.display())));
    }
    let mut tally = Tally::default();
    for (path, error) in &survey.errors {
        tally.refused += 1;
        refuse(path, error, out)?;
    }
    let options = ImportOptions { salvage: args.salvage };
    if args.dry_run {
        // Where there is no store, everything is new.
        let store = if stores.path().exists() { Some(stores.read()?) } else { None };
        let mut importer = Importer::new(Target::Rehearsal(store.as_ref()), options);
        take_all(&survey, &mut importer, None, &mut tally, out)?;
        say(format_args!("dry run, nothing was written: {tally}"));
    } else {
        let store = stores.open_or_create()?;
        let mut importer = Importer::new(Target::Store(&store), options);
        if let Err(failure) = take_all(&survey, &mut importer, Some(&store), &mut tally, out) {
            // Why it ended early says more than how it closed.
            let _ = store.close();
            return Err(failure);
        }
        store.close()?;
        say(format_args!("{tally}"));
    }
    Ok(Outcome::findings_if(tally.refused > 0))
}

/// How many sessions came to what.
#[derive(Default)]
struct Tally {
    stored: u64,
    extended: u64,
    unchanged: u64,
    refused: u64,
}

impl Tally {
    fn count(&mut self, fate: &Fate) {
        match fate {
            Fate::Extended { .. } => self.extended += 1,
            Fate::Unchanged { .. } => self.unchanged += 1,
            _ => self.stored += 1,
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { stored, extended, unchanged, refused } = self;
        write!(f, "{stored} sessions stored, {extended} extended, {unchanged} unchanged, {refused} refused")
    }
}

/// Imports all items. What is reported as stored is durable: reports wait for the flush of a group.
fn take_all(
    survey: &Survey,
    importer: &mut Importer<'_>,
    store: Option<&SessionStore>,
    tally: &mut Tally,
    out: &mut Output,
) -> Result<(), Failure> {
    let total = survey.items.iter().map(|item| item.bytes).sum();
    let progress = Progress::bytes("imported", total);
    let mut waiting = Vec::new();
    let mut failure = None;
    importer.take_all(&survey.items, &mut |read| progress.add(read), &mut |item, result| {
        if let Err(error) = &result
            && (error.is_poisoned() || error.is_closed())
        {
            failure = Some(Failure::from(error.clone()));
            return ControlFlow::Break(());
        }
        waiting.push((item.clone(), result));
        if waiting.len() >= GROUP {
            failure = settle(&mut waiting, store, tally, out).err();
        }
        if failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    failure.map_or_else(|| settle(&mut waiting, store, tally, out), Err)
}

/// Makes a group durable and reports it.
fn settle(
    waiting: &mut Vec<(Item, sessionlog::Result<Imported>)>,
    store: Option<&SessionStore>,
    tally: &mut Tally,
    out: &mut Output,
) -> Result<(), Failure> {
    if let Some(store) = store {
        store.flush()?;
    }
    for (item, result) in waiting.drain(..) {
        match result {
            Ok(imported) => {
                tally.count(&imported.fate);
                report(&item.path, &imported, out)?;
            }
            Err(error) => {
                tally.refused += 1;
                refuse(&item.path, &error, out)?;
            }
        }
    }
    Ok(())
}

fn refuse(file: &Path, error: &Error, out: &mut Output) -> std::io::Result<()> {
    let (message, name) = (error.to_string(), file.display().to_string());
    if out.json {
        out.json(&Refused {
            file: file.to_string_lossy(),
            error: Why { kind: error.kind().code(), message: &message },
        })?;
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
            file: file.to_string_lossy(),
            session: &imported.id,
            result: name_of(&imported.fate),
            events: verdict.events,
            stored: stored_more(imported),
            from: if let Fate::Extended { from } = &imported.fate { Some(*from) } else { None },
            inherited: if let Fate::Forked { inherited, .. } = &imported.fate {
                Some(*inherited)
            } else {
                None
            },
            packed_rows: verdict.packed_rows,
            packed_events: verdict.packed_events,
            torn: hole.filter(|_| !is_damage).map(missing),
            damage: hole.filter(|_| is_damage).map(missing),
            notes: imported.note_count,
            remarks: &imported.remarks,
        })?;
    } else {
        let id = printable(&imported.id);
        let words = words_of(imported);
        let fate = printable(&words);
        out.line(format_args!("{id}  {} events  {fate}  {}", verdict.events, file.display()))?;
    }
    describe(file, imported, hole.map(|hole| (hole, is_damage)));
    Ok(())
}

fn name_of(fate: &Fate) -> &'static str {
    match fate {
        Fate::Created => "stored",
        Fate::Forked { .. } => "forked",
        Fate::Extended { .. } => "extended",
        Fate::Unchanged { .. } => "unchanged",
        _ => "done",
    }
}

/// How many events the store has, where it has more than the file.
fn stored_more(imported: &Imported) -> Option<u64> {
    match imported.fate {
        Fate::Unchanged { stored } => Some(stored).filter(|stored| *stored > imported.verdict.events),
        _ => None,
    }
}

fn words_of(imported: &Imported) -> String {
    match (&imported.fate, stored_more(imported)) {
        (Fate::Forked { parent, inherited }, _) => {
            format!("stored, {inherited} of them shared with {parent}")
        }
        (Fate::Extended { from }, _) => format!("extended from event {from} on"),
        (Fate::Unchanged { .. }, Some(stored)) => format!("unchanged, the store has {stored}"),
        (fate, _) => name_of(fate).to_owned(),
    }
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
    imported.remarks.iter().for_each(|remark| note(remark.clone()));
    for violation in &imported.notes {
        note(violation.to_string());
    }
    let told = u64::try_from(imported.notes.len()).unwrap_or(u64::MAX);
    if imported.note_count > told {
        note(format!("and {} more like these; see check", imported.note_count - told));
    }
}
