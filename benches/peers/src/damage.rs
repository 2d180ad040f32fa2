//! The same damage done to each store: what is lost, whether anybody is told, and whether the rest is readable.
//!
//! A process writes the events, each durable before the next, and dies without closing anything. Then one thing is
//! done to the file that holds an event in the middle, and another process reads. Every figure is counted.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::reading::{Reading, event, mark};
use crate::stores::{Fault, STORES, Store};

/// How many events are acknowledged.
const EVENTS: u64 = 1000;
/// The one that the damage hits.
const MIDDLE: u64 = EVENTS / 2;

/// One of the newest, which databases have in their log only.
const LATE: u64 = EVENTS - 20;

/// What is done to the files.
#[derive(Debug, Clone, Copy)]
enum Harm {
    FlippedBit,
    LateFlippedBit,
    ZeroedPage,
    CutInTheMiddle,
    TornTail,
}

const HARMS: [(&str, Harm); 5] = [
    ("one flipped bit in the middle", Harm::FlippedBit),
    ("one among the last events", Harm::LateFlippedBit),
    ("a zeroed 4-KiB page", Harm::ZeroedPage),
    ("cut off in the middle", Harm::CutInTheMiddle),
    ("a torn tail", Harm::TornTail),
];

fn find(name: &str) -> Result<&'static Store, Fault> {
    STORES.iter().find(|store| store.name == name).ok_or_else(|| format!("there is no store {name:?}").into())
}

fn done(result: Result<(), Fault>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The child that writes, and dies as if it were killed.
pub fn write(name: &str, directory: &Path, events: &str) -> ExitCode {
    let write = || -> Result<(), Fault> {
        let mut writer = (find(name)?.create)(directory)?;
        for number in 0..events.parse()? {
            let (session, seq, line) = event(number);
            writer.append(session, seq, &line)?;
        }
        std::process::abort()
    };
    done(write())
}

/// The child that reads: a line for each event and each complaint. A store may panic here; that is told too.
pub fn read(name: &str, directory: &Path) -> ExitCode {
    let read = || -> Result<(), Fault> {
        let Reading { events, complaints } = (find(name)?.read)(directory);
        let mut out = std::io::stdout().lock();
        for (session, seq, line) in events {
            writeln!(out, "event\t{session}\t{seq}\t{}", line.escape_default())?;
        }
        for complaint in complaints {
            writeln!(out, "complaint\t{}", complaint.escape_default())?;
        }
        Ok(())
    };
    done(read())
}

/// Prints the table.
pub fn table() -> ExitCode {
    println!(
        "Of {EVENTS} acknowledged events: how many are lost or handed out wrong, and whether anybody is told.\n"
    );
    println!("| store | {} |", HARMS.map(|(name, _)| name).join(" | "));
    println!("|---|{}", "---|".repeat(HARMS.len()));
    for store in &STORES {
        let cells = HARMS.map(|(_, harm)| match outcome(store, harm) {
            Ok(text) => text,
            Err(error) => format!("not measured: {error}"),
        });
        println!("| {} | {} |", store.name, cells.join(" | "));
    }
    ExitCode::SUCCESS
}

fn outcome(store: &Store, harm: Harm) -> Result<String, Fault> {
    let folder = tempfile::tempdir()?;
    let program = std::env::current_exe()?;
    let events = EVENTS.to_string();
    let written =
        Command::new(&program).arg("write").arg(store.name).arg(folder.path()).arg(&events).output()?;
    let refused = String::from_utf8_lossy(&written.stderr).into_owned();
    if written.status.code().is_some() {
        return Err(format!("it could not be written: {refused}").into());
    }
    damage(folder.path(), harm)?;
    let read = Command::new(&program).arg("read").arg(store.name).arg(folder.path()).output()?;
    Ok(judge(&String::from_utf8_lossy(&read.stdout), read.status.success(), harm))
}

/// What was said, held against what was written.
fn judge(said: &str, ended: bool, harm: Harm) -> String {
    let (mut right, mut wrong, mut complaints) = (BTreeSet::new(), 0, usize::from(!ended));
    for line in said.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        if let ["event", session, seq, text] = fields.as_slice()
            && let (Ok(session), Ok(seq)) = (session.parse::<u64>(), seq.parse::<u64>())
        {
            let number = seq * crate::reading::SESSIONS + session;
            let (_, _, expected) = event(number);
            if *text == expected.escape_default().to_string() {
                right.insert(number);
            } else {
                wrong += 1;
            }
        } else {
            complaints += 1;
        }
    }
    // The last event counts as one that was still being written.
    let counted = if matches!(harm, Harm::TornTail) { EVENTS - 1 } else { EVENTS };
    let lost = (0..counted).filter(|number| !right.contains(number)).count();
    let told = if complaints > 0 { "told" } else { "silent" };
    match (lost, wrong) {
        (0, 0) => "nothing lost".to_owned(),
        (_, 0) if right.is_empty() => format!("does not open, {told}"),
        (lost, 0) => format!("{lost} lost, {told}"),
        (lost, wrong) => format!("{lost} lost, {wrong} wrong, {told}"),
    }
}

/// All files below `folder`.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    Ok(found)
}

/// The newest copy of an event: the file, and where the event's mark is in it.
fn place(folder: &Path, number: u64) -> Result<(PathBuf, usize), Fault> {
    let mark = mark(number);
    let mut found = Vec::new();
    for path in files(folder)? {
        let bytes = fs::read(&path)?;
        let at = bytes.windows(mark.len()).rposition(|window| window == mark.as_bytes());
        found.extend(at.map(|at| (path, at)));
    }
    // Of a database and its log the log counts, which is what a crash leaves to be read.
    found.sort_by_key(|(path, _)| path.to_string_lossy().ends_with("-wal"));
    found.pop().ok_or_else(|| format!("event {number} is in no file as it is").into())
}

fn damage(folder: &Path, harm: Harm) -> Result<(), Fault> {
    let number = match harm {
        Harm::TornTail => EVENTS - 1,
        Harm::LateFlippedBit => LATE,
        _ => MIDDLE,
    };
    let (path, at) = place(folder, number)?;
    let mut bytes = fs::read(&path)?;
    // Well inside the event's text.
    let inside = at + 60;
    match harm {
        Harm::FlippedBit | Harm::LateFlippedBit => {
            if let Some(byte) = bytes.get_mut(inside) {
                *byte ^= 1;
            }
        }
        Harm::ZeroedPage => {
            let page = inside / 4096 * 4096;
            bytes.iter_mut().skip(page).take(4096).for_each(|byte| *byte = 0);
        }
        Harm::CutInTheMiddle => bytes.truncate(inside),
        // The second half of the last write never came: zeros where the space was there before, else the file's end.
        Harm::TornTail => {
            let rest = mark(number).len() + 320;
            let at_end = bytes.len() < at + rest + 512;
            if at_end {
                bytes.truncate(inside)
            } else {
                bytes.iter_mut().skip(inside).take(rest - 60).for_each(|byte| *byte = 0)
            }
        }
    }
    Ok(fs::write(path, bytes)?)
}
