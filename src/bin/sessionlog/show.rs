//! `show`: one session, its header and figures.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::failure::{Ended, Failure, Outcome};
use crate::ls::{Figures, state};
use crate::output::{Output, printable};
use crate::stores::Stores;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    #[serde(flatten)]
    figures: Figures<'a>,
    header: Box<RawValue>,
    surface: usize,
    closers: usize,
}

pub(crate) fn run(stores: &Stores, id: &str, out: &mut Output) -> Ended {
    let store = stores.read()?;
    let stat = store.stat(id)?;
    let session = store.open(id)?;
    let header = session.header().to_line();
    let surface = session.surface()?.len();
    let closers = session.closers()?.len();
    if out.json {
        let header = RawValue::from_string(header).map_err(|error| Failure::Output(error.into()))?;
        out.json(&Shown { figures: Figures::of(&stat)?, header, surface, closers })?;
        return Ok(Outcome::Fine);
    }
    let mut row = |name: &str, value: &str| out.line(format_args!("{name:<10} {}", printable(value)));
    row("id", &stat.id)?;
    row("header", &header)?;
    row("events", &stat.events.to_string())?;
    row("bytes", &stat.bytes.to_string())?;
    row("surface", &format!("{surface} events"))?;
    if let (Some(first), Some(last)) = (stat.first_time, stat.last_time) {
        row("times", &format!("{first} to {last}"))?;
    }
    row("state", state(&stat))?;
    if closers > 0 {
        row("repair", &format!("would append {closers} closing events"))?;
    }
    Ok(Outcome::Fine)
}
