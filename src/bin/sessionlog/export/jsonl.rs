//! `export jsonl`: stored sessions as files.

use std::borrow::Cow;

use serde::Serialize;
use sessionlog::interop::ExportFate;
use sessionlog::interop::jsonl::{Exported, WriteOptions, export_session_with};

use super::Wanted;
use crate::args;
use crate::failure::{Ended, Failure, Outcome};
use crate::output::{Output, printable, say};
use crate::stores::Stores;

#[derive(Serialize)]
struct Shown<'a> {
    session: &'a str,
    file: Cow<'a, str>,
    result: &'static str,
    /// The first event that is new, of a file that was extended.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    events: u64,
    bytes: u64,
}

pub(crate) fn run(stores: &Stores, args: &args::ExportJsonl, out: &mut Output) -> Ended {
    let store = stores.read()?;
    let wanted = super::wanted(&store, &args.what)?;
    let options = WriteOptions { existing: args.what.existing(), dry_run: args.what.dry_run };
    let mut failed = 0_u64;
    let progress = super::progress(&wanted);
    for Wanted { id, .. } in &wanted {
        match export_session_with(&store, id, &args.out, options, &mut |events| progress.add(events)) {
            Ok(written) => show(id, &written, out)?,
            Err(error) => {
                failed += 1;
                say(format_args!("not exported: {}: {}", printable(id), printable(&error.to_string())));
            }
        }
    }
    drop(progress);
    if args.what.dry_run {
        say("dry run, nothing was written");
    }
    if failed > 0 {
        return Err(Failure::Words(format!("{failed} of {} sessions were not exported", wanted.len())));
    }
    Ok(Outcome::Fine)
}

fn show(id: &str, written: &Exported, out: &mut Output) -> Result<(), Failure> {
    let from = if let ExportFate::Extended { from } = written.fate { Some(from) } else { None };
    let result = written.fate.code();
    if out.json {
        let (events, bytes) = (written.events, written.bytes);
        out.json(&Shown { session: id, file: written.path.to_string_lossy(), result, from, events, bytes })?;
    } else if written.fate == ExportFate::Written {
        out.line(written.path.display())?;
    } else {
        out.line(format_args!("{}  {result}", written.path.display()))?;
    }
    Ok(())
}
