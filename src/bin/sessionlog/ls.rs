//! `ls` and what it shares with `show`: a session in figures.

use serde::Serialize;
use serde_json::value::RawValue;
use sessionlog::Stat;

use crate::failure::{Ended, Failure, Outcome};
use crate::output::{Output, printable};
use crate::stores::Stores;

/// A session as `ls` and `show` print it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Figures<'a> {
    id: &'a str,
    created_at: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed_length: Option<u64>,
    events: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_time: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_time: Option<i64>,
    open: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    damaged: bool,
}

impl<'a> Figures<'a> {
    pub(crate) fn of(stat: &'a Stat) -> Result<Self, Failure> {
        let created_at = RawValue::from_string(stat.created_at.spelling().into_owned());
        Ok(Self {
            id: &stat.id,
            created_at: created_at.map_err(std::io::Error::from)?,
            cwd: stat.cwd.as_deref(),
            parent_session: stat.parent_session.as_deref(),
            seed_length: stat.seed_length,
            events: stat.events,
            bytes: stat.bytes,
            first_time: stat.first_time,
            last_time: stat.last_time,
            open: stat.open,
            damaged: stat.damaged,
        })
    }
}

/// A session's state in one word.
pub(crate) fn state(stat: &Stat) -> &'static str {
    match (stat.damaged, stat.open) {
        (true, _) => "damaged",
        (false, true) => "open",
        (false, false) => "-",
    }
}

pub(crate) fn run(stores: &Stores, out: &mut Output) -> Ended {
    let store = stores.read()?;
    if !out.json {
        out.line(format_args!("{:<38} {:>9} {:>11} {:<7} CWD", "ID", "EVENTS", "BYTES", "STATE"))?;
    }
    for stat in store.stored()? {
        let stat = stat?;
        if out.json {
            out.json(&Figures::of(&stat)?)?;
            continue;
        }
        let cwd = stat.cwd.as_deref().unwrap_or("-");
        let (id, cwd) = (printable(&stat.id), printable(cwd));
        out.line(format_args!("{id:<38} {:>9} {:>11} {:<7} {cwd}", stat.events, stat.bytes, state(&stat)))?;
    }
    Ok(Outcome::Fine)
}
