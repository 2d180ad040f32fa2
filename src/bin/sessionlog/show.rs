//! `show`: one session, its header and figures.
//!
//! What always holds: damage hides no more than what it makes unknown. Of a session that lost events the surface and
//! the closers are left out, the holes are named on standard error, and the exit code is 1.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::failure::{Ended, Failure, Outcome};
use crate::holes;
use crate::ls::{Figures, state};
use crate::output::{Output, printable, say};
use crate::stores::Stores;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    #[serde(flatten)]
    figures: Figures<'a>,
    header: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    surface: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closers: Option<usize>,
}

pub(crate) fn run(stores: &Stores, id: &str, out: &mut Output) -> Ended {
    let store = stores.read()?;
    let stat = store.stat(id)?;
    let session = store.open(id)?;
    let header = session.header().to_line();
    let counted = session.surface().and_then(|surface| Ok((surface.len(), session.closers()?.len())));
    let (surface, closers, outcome) = match counted {
        Ok((surface, closers)) => {
            (Some(surface), Some(closers), Outcome::findings_if(holes::ends_in_doubt(&session)?))
        }
        Err(error) if error.is_corruption() => {
            if !holes::name(&session)? {
                say(printable(&format!("{id}: {error}")));
            }
            (None, None, Outcome::Findings)
        }
        Err(error) => return Err(error.into()),
    };
    if out.json {
        let header = RawValue::from_string(header).map_err(|error| Failure::Output(error.into()))?;
        out.json(&Shown { figures: Figures::of(&stat)?, header, surface, closers })?;
        return Ok(outcome);
    }
    let mut row = |name: &str, value: &str| out.line(format_args!("{name:<10} {}", printable(value)));
    row("id", &stat.id)?;
    row("header", &header)?;
    row("events", &stat.events.to_string())?;
    row("bytes", &stat.bytes.to_string())?;
    let surface =
        surface.map_or_else(|| "unknown, events are lost".to_owned(), |count| format!("{count} events"));
    row("surface", &surface)?;
    if let (Some(first), Some(last)) = (stat.first_time, stat.last_time) {
        row("times", &format!("{first} to {last}"))?;
    }
    row("state", state(&stat))?;
    if let Some(closers) = closers.filter(|count| *count > 0) {
        row("repair", &format!("would append {closers} closing events"))?;
    }
    Ok(outcome)
}
