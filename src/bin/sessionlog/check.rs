//! `check`: a session, or a file, against the invariants.
//!
//! What always holds: damage stops nothing. The holes are named on standard error, what is left is checked as it is
//! (so the event behind a hole breaks I1), and the exit code is 1.

use std::path::Path;

use serde::Serialize;
use sessionlog::event::{Checker, Violation};
use sessionlog::interop::Ending;
use sessionlog::interop::jsonl::Reader;

use crate::args;
use crate::failure::{Ended, Failure, Outcome};
use crate::holes::{Holes, ends_in_doubt};
use crate::output::{Output, printable, say};
use crate::progress::Progress;
use crate::stores::Stores;

#[derive(Serialize)]
struct Shown<'a> {
    rule: &'a str,
    seq: u64,
    message: &'a str,
}

pub(crate) fn run(stores: &Stores, args: &args::Check, out: &mut Output) -> Ended {
    let _progress = Progress::new("checking", None);
    match (&args.id, &args.file) {
        (Some(id), _) => check_session(stores, id, out),
        (None, Some(file)) => check_file(file, out),
        (None, None) => Err(Failure::Words("check needs an id or --file".to_owned())),
    }
}

fn check_session(stores: &Stores, id: &str, out: &mut Output) -> Ended {
    let store = stores.read()?;
    let mut checker = Checker::new();
    let session = store.open(id)?;
    let mut holes = Holes::new(id, 0);
    let mut any = false;
    for event in session.events() {
        match event {
            Ok(event) => {
                holes.readable(event.seq());
                any |= report(checker.observe(&event), out)?;
            }
            Err(error) => holes.lost(error)?,
        }
    }
    any |= holes.end(session.seq());
    any |= ends_in_doubt(&session)?;
    Ok(Outcome::findings_if(any))
}

fn check_file(file: &Path, out: &mut Output) -> Ended {
    let mut reader = Reader::open(file)?.in_any_place();
    for note in reader.header_notes() {
        say(printable(&format!("{}: {note}", file.display())));
    }
    let mut checker = Checker::new();
    let mut any = false;
    while let Some(violations) = reader.check_next(&mut checker)? {
        any |= report(violations, out)?;
    }
    let verdict = reader.finish()?;
    match &verdict.ending {
        Ending::Torn(hole) => {
            say(printable(&format!(
                "{}: torn tail of {} bytes: {hole}",
                file.display(),
                verdict.lost_bytes()
            )));
        }
        Ending::Damaged(hole) => {
            any = true;
            let message = format!("damage: {hole}; {} bytes are behind it", verdict.lost_bytes());
            print("X1", hole.seq, &message, out)?;
        }
        _ => {}
    }
    Ok(Outcome::findings_if(any))
}

fn report(violations: &[Violation], out: &mut Output) -> Result<bool, Failure> {
    for violation in violations {
        print(&violation.rule.to_string(), violation.seq, &violation.message, out)?;
    }
    Ok(!violations.is_empty())
}

fn print(rule: &str, seq: u64, message: &str, out: &mut Output) -> std::io::Result<()> {
    if out.json {
        out.json(&Shown { rule, seq, message })
    } else {
        out.line(format_args!("{rule:<4} event {seq}: {}", printable(message)))
    }
}
