//! An event as the columns of its row.
//!
//! What always holds: an event whose columns are given back to [`line()`] comes back byte for byte, or [`EventColumns::misfits`]
//! says why not. The payload is the column's text, unchanged.

use std::borrow::Cow;

use crate::event::{Envelope, Event, Time};

use super::misfit::{Misfit, Misfits};

/// The largest whole number that every reader of JSON and SQLite takes: 2^53 - 1.
pub(super) const MAX_NUMBER: i64 = (1 << 53) - 1;

/// The columns of a row of `events`, beside session and seq.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EventColumns<'a> {
    pub(super) event_type: Cow<'a, str>,
    pub(super) time: i64,
    pub(super) data: &'a str,
    pub(super) sources: Option<Cow<'a, str>>,
    pub(super) surface_op: Option<Cow<'a, str>>,
}

impl<'a> EventColumns<'a> {
    /// The columns of `event`: the nearest value where one does not fit.
    pub(super) fn of(event: &'a Event) -> Self {
        let envelope = event.verbatim_line().and_then(|line| Envelope::parse(line).ok());
        let (sources, surface_op) = match &envelope {
            // Their spelling is the line's: a reader that keeps a row's spelling gives the row back.
            Some(envelope) => (
                envelope.sources().map(|sources| Cow::Borrowed(sources.raw())),
                envelope.surface_op().map(|op| Cow::Borrowed(op.raw())),
            ),
            None => (
                event.sources().map(|seqs| Cow::Owned(list(seqs))),
                event.surface_op().map(|op| Cow::Owned(op.to_string())),
            ),
        };
        Self {
            event_type: column_text(event.event_type()),
            time: column_number(event.time().millis_rounded()),
            data: event.data().as_str(),
            sources,
            surface_op,
        }
    }

    /// What of `event`, whose columns these are, the row cannot say.
    pub(super) fn misfits(&self, event: &Event) -> Misfits {
        let mut found = Misfits::new();
        if let Some((name, _)) = event.extra_members().next() {
            found.push((Misfit::UnknownField, name.to_utf8_lossy().into_owned()));
        }
        if *event.time() != Time::from_millis(self.time) {
            found.push((Misfit::Time, "time".to_owned()));
        }
        let spelled = event.verbatim_line();
        if self.event_type != event.event_type() || spelled.is_some_and(|line| has_odd_type(line)) {
            found.push((Misfit::Text, "type".to_owned()));
        }
        if found.is_empty()
            && let Some(spelled) = spelled
            && **spelled != *line(&RowText::of(event.seq(), self))
        {
            found.push((Misfit::Spelling, "the line".to_owned()));
        }
        found
    }
}

fn has_odd_type(line: &str) -> bool {
    let envelope = Envelope::parse(line).ok();
    let name = envelope.as_ref().and_then(Envelope::event_type).and_then(|name| name.as_str());
    name.is_some_and(|name| name.to_string_lossless().is_none())
}

fn list(seqs: &[u64]) -> String {
    let mut out = String::with_capacity(seqs.len().saturating_mul(6).saturating_add(2));
    out.push('[');
    for (i, seq) in seqs.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&seq.to_string());
    }
    out.push(']');
    out
}

/// A text as a column holds it: other readers end it at a NUL.
pub(super) fn column_text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{FFFD}")) } else { Cow::Borrowed(text) }
}

/// A number as a column holds it: other readers refuse more.
pub(super) fn column_number(number: i64) -> i64 {
    number.clamp(-MAX_NUMBER, MAX_NUMBER)
}

/// The texts of a row, checked or not.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowText<'a> {
    pub(super) event_type: &'a str,
    pub(super) seq: u64,
    pub(super) time: i64,
    pub(super) data: &'a str,
    pub(super) sources: Option<&'a str>,
    pub(super) surface_op: Option<&'a str>,
}

impl<'a> RowText<'a> {
    fn of(seq: u64, columns: &'a EventColumns<'_>) -> Self {
        Self {
            event_type: &columns.event_type,
            seq,
            time: columns.time,
            data: columns.data,
            sources: columns.sources.as_deref(),
            surface_op: columns.surface_op.as_deref(),
        }
    }
}

/// The line that a row is (rule X).
pub(super) fn line(row: &RowText<'_>) -> String {
    let mut out = String::with_capacity(row.data.len().saturating_add(128));
    out.push_str("{\"type\":");
    out.push_str(&quoted(row.event_type));
    out.push_str(&format!(",\"seq\":{},\"time\":{},\"data\":", row.seq, row.time));
    out.push_str(row.data);
    for (name, text) in [("sourceEventSeqs", row.sources), ("surfaceOp", row.surface_op)] {
        if let Some(text) = text {
            out.push_str(&format!(",\"{name}\":"));
            out.push_str(text);
        }
    }
    out.push('}');
    out
}

/// The text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
