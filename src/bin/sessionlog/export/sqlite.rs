//! `export sqlite`: stored sessions as one database.
//!
//! What always holds: the database appears when it is whole. A session that could not be read stops no other one; the
//! exit code tells.

use serde::Serialize;
use sessionlog::interop::Existing;
use sessionlog::interop::sqlite::{Kept, Outcome, Put, SqliteOptions, Writer};
use sessionlog::{Result, SessionStore};

use super::Wanted;
use crate::args;
use crate::failure::{Ended, Failure, Outcome as Exit};
use crate::output::{Output, printable, say};
use crate::progress::Progress;
use crate::stores::Stores;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    session: &'a str,
    result: &'static str,
    events: u64,
    /// The first event that is new, of a session that was extended.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    /// What the columns have no place for, and is kept beside them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kept: Vec<Misfit<'a>>,
}

#[derive(Serialize)]
struct Misfit<'a> {
    reason: &'static str,
    count: u64,
    /// The first event; none when it is the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    field: &'a str,
}

impl<'a> Misfit<'a> {
    fn of(kept: &'a Kept) -> Self {
        Self { reason: kept.misfit.code(), count: kept.count, seq: kept.first, field: &kept.field }
    }
}

pub(crate) fn run(stores: &Stores, args: &args::ExportSqlite, out: &mut Output) -> Ended {
    let store = stores.read()?;
    let wanted = super::wanted(&store, &args.what)?;
    let mut writer = writer(args)?;
    let mut failed = 0_u64;
    let progress = super::progress(&wanted);
    let mut puts = Vec::new();
    for Wanted { id, .. } in &wanted {
        match put(&store, id, &mut writer, &progress) {
            Ok(put) => puts.push((id, put)),
            Err(error) => {
                failed += 1;
                say(format_args!("not exported: {}: {}", printable(id), printable(&error.to_string())));
            }
        }
    }
    drop(progress);
    // What is reported as written is in the published file.
    if args.what.dry_run {
        drop(writer);
        say("dry run, nothing was written");
    } else if puts
        .iter()
        .any(|(_, put)| !matches!(put.outcome, Outcome::Unchanged { .. } | Outcome::Ahead { .. }))
        || wanted.is_empty()
    {
        let written = writer.finish()?;
        say(format_args!("{}: {} bytes", written.path.display(), written.bytes));
    }
    for (id, put) in &puts {
        show(id, put, out)?;
    }
    if failed > 0 {
        return Err(Failure::Words(format!("{failed} of {} sessions were not exported", wanted.len())));
    }
    Ok(Exit::Fine)
}

/// A dry run works on a temporary file, beside nothing that is there.
fn writer(args: &args::ExportSqlite) -> Result<Writer> {
    let existing = args.what.existing();
    let options = SqliteOptions { replace: existing == Existing::Replace, strict: args.strict };
    if existing == Existing::Append && args.out.exists() {
        return Writer::append_to(&args.out, options);
    }
    Writer::create(&args.out, options)
}

fn put(store: &SessionStore, id: &str, writer: &mut Writer, progress: &Progress) -> Result<Put> {
    let session = store.open(id)?;
    writer.put_session(session.header(), session.events().inspect(|_| progress.add(1)))
}

fn show(id: &str, put: &Put, out: &mut Output) -> Result<(), Failure> {
    let (events, from) = match put.outcome {
        Outcome::Extended { from, events } => (from.saturating_add(events), Some(from)),
        Outcome::Added { events } | Outcome::Unchanged { events } | Outcome::Ahead { events } => {
            (events, None)
        }
    };
    if out.json {
        let kept = put.kept.iter().map(Misfit::of).collect();
        out.json(&Shown { session: id, result: put.outcome.code(), events, from, kept })?;
    } else {
        out.line(format_args!("{}  {events} events  {}", printable(id), put.outcome.code()))?;
    }
    for kept in &put.kept {
        say(format_args!("note: {}: {}", printable(id), printable(&kept.to_string())));
    }
    Ok(())
}
