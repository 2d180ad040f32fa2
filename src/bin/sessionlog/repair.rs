//! `repair`: closes what a crash left open (R).
//!
//! What always holds: with `--dry-run` nothing is written, and what is printed is what would be.

use serde::Serialize;
use serde_json::value::RawValue;
use sessionlog::event::Event;
use sessionlog::{ResumeOptions, SessionStore};

use crate::args;
use crate::events;
use crate::failure::{Ended, Failure, Outcome};
use crate::output::{Output, printable, say};
use crate::stores::Stores;

#[derive(Serialize)]
struct Closer<'a> {
    session: &'a str,
    event: Box<RawValue>,
}

pub(crate) fn run(stores: &Stores, args: &args::Repair, out: &mut Output) -> Ended {
    let store = if args.dry_run { stores.read()? } else { stores.open()? };
    let mut failed = false;
    match &args.id {
        Some(id) => {
            for event in closers(&store, id, args)? {
                events::print(&event, out)?;
            }
        }
        None => {
            for id in open_sessions(&store)? {
                match closers(&store, &id, args) {
                    Ok(closers) => print_all(&id, &closers, out)?,
                    Err(Failure::Library(error)) => {
                        failed = true;
                        say(format_args!("{}: {}", printable(&id), printable(&error.to_string())));
                    }
                    Err(other) => return Err(other),
                }
            }
        }
    }
    if !args.dry_run {
        store.close()?;
    }
    Ok(Outcome::findings_if(failed))
}

fn open_sessions(store: &SessionStore) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    for stat in store.stored()? {
        let stat = stat?;
        if stat.open {
            ids.push(stat.id.to_string());
        }
    }
    Ok(ids)
}

fn closers(store: &SessionStore, id: &str, args: &args::Repair) -> Result<Vec<Event>, Failure> {
    if args.dry_run {
        return Ok(store.open(id)?.closers()?);
    }
    let resumed = store.resume_with(id, ResumeOptions::new().accept_loss(args.accept_loss))?;
    resumed.session.close()?;
    Ok(resumed.closers)
}

fn print_all(id: &str, closers: &[Event], out: &mut Output) -> Result<(), Failure> {
    for event in closers {
        if out.json {
            let event =
                RawValue::from_string(event.to_line()).map_err(|error| Failure::Output(error.into()))?;
            out.json(&Closer { session: id, event })?;
        } else {
            out.line(format_args!("{}:", printable(id)))?;
            events::print(event, out)?;
        }
    }
    Ok(())
}
