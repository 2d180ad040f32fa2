//! One row of `events`, and the event it is.
//!
//! What always holds: an event's payload is the column's text, with spaces for line breaks between tokens (V3). A
//! kept line counts only where it says what the row says.

use super::cell::{Cell, limited};
use super::event_columns::{EventColumns, RowText, line};
use crate::event::{Event, JsonErrorKind, MAX_PAYLOAD_BYTES, is_json_value};
use crate::interop::HoleReason;
use crate::interop::jsonl::MAX_LINE_BYTES;
use crate::{Error, ErrorKind};

/// The longest type that is loaded; A's own limit is tested where an event is appended.
const MAX_TYPE: usize = 1 << 16;
/// A marker is a few bytes, whatever spaces are in it.
const MAX_OP: usize = 1 << 20;

/// A row as it was found.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) seq: Cell,
    event_type: Cell,
    time: Cell,
    data: Cell,
    sources: Cell,
    surface_op: Cell,
    line: Cell,
}

/// Why a row is no event of its place.
pub(super) enum Fault {
    /// A hole (X1).
    Hole(HoleReason),
    /// An event of its place whose values break a rule: it refuses the session.
    Broken(Error),
}

/// An event out of a row.
pub(super) struct Read {
    pub(super) event: Event,
    /// A line beside the row says something else.
    pub(super) line_ignored: bool,
}

/// The rows of session `?1` whose seq is behind `?2`.
pub(super) fn query(lines: bool) -> String {
    let line = if lines {
        "(SELECT line FROM main.sessionlog_lines AS l WHERE l.session_id = e.session_id AND l.seq = e.seq)"
    } else {
        "NULL"
    };
    let columns = [
        limited("type", MAX_TYPE),
        limited("data", MAX_PAYLOAD_BYTES),
        limited("source_event_seqs", MAX_PAYLOAD_BYTES),
        limited("surface_op", MAX_OP),
        limited(line, MAX_LINE_BYTES),
    ];
    format!(
        "SELECT seq, time, {} FROM main.events AS e WHERE session_id = ?1 AND seq > ?2 ORDER BY seq",
        columns.join(", ")
    )
}

impl Row {
    pub(super) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: Cell::value(row, 0)?,
            time: Cell::value(row, 1)?,
            event_type: Cell::read(row, 2)?,
            data: Cell::read(row, 4)?,
            sources: Cell::read(row, 6)?,
            surface_op: Cell::read(row, 8)?,
            line: Cell::read(row, 10)?,
        })
    }

    /// Bytes of its values.
    pub(super) fn bytes(&self) -> usize {
        let Self { seq, event_type, time, data, sources, surface_op, line } = self;
        [seq, event_type, time, data, sources, surface_op, line].into_iter().map(Cell::bytes).sum()
    }

    /// The event, if it is the one of the place `seq`.
    pub(super) fn event(&self, seq: u64) -> Result<Read, Fault> {
        let found = match self.seq {
            Cell::Integer(found) if u64::try_from(found) == Ok(seq) => None,
            Cell::Integer(found) => Some(Some(found.to_string())),
            _ => Some(None),
        };
        if let Some(found) = found {
            return Err(Fault::Hole(HoleReason::Place { found }));
        }
        let columns = self.columns().map_err(Fault::Hole)?;
        for (name, text) in [("source_event_seqs", columns.sources), ("surface_op", columns.surface_op)] {
            if let Some(text) = text {
                json(name, text)?;
            }
        }
        let event = event(&RowText { seq, ..columns })?;
        Ok(self.with_line(event, &RowText { seq, ..columns }))
    }

    /// The texts of the row; its seq is left 0.
    fn columns(&self) -> Result<RowText<'_>, HoleReason> {
        let Cell::Integer(time) = self.time else { return Err(hole("time", &self.time)) };
        Ok(RowText {
            event_type: text("type", &self.event_type)?,
            seq: 0,
            time,
            data: text("data", &self.data)?,
            sources: optional("source_event_seqs", &self.sources)?,
            surface_op: optional("surface_op", &self.surface_op)?,
        })
    }

    fn with_line(&self, event: Event, row: &RowText<'_>) -> Read {
        if self.line == Cell::Null {
            return Read { event, line_ignored: false };
        }
        let Cell::Text(line) = &self.line else { return Read { event, line_ignored: true } };
        let kept = Event::parse_line(line).ok().filter(|kept| {
            let columns = EventColumns::of(kept);
            kept.seq() == row.seq
                && columns.event_type == row.event_type
                && columns.time == row.time
                && columns.data == row.data
                && columns.sources.as_deref() == row.sources
                && columns.surface_op.as_deref() == row.surface_op
        });
        match kept {
            Some(event) => Read { event, line_ignored: false },
            None => Read { event, line_ignored: true },
        }
    }

    /// Whether the row proves that a turn had ended there, wherever it stands.
    pub(super) fn ends_turn(&self) -> bool {
        let Ok(columns) = self.columns() else { return false };
        columns.event_type == "turn/end"
            && [Some(columns.data), columns.sources, columns.surface_op]
                .into_iter()
                .flatten()
                .all(|text| is_json_value(text).is_ok())
    }
}

fn event(row: &RowText<'_>) -> Result<Event, Fault> {
    // A line has no line breaks: between tokens they are as good as spaces, and elsewhere they are no JSON.
    let [data, sources, surface_op] = [Some(row.data), row.sources, row.surface_op]
        .map(|text| text.map(|text| text.replace(['\n', '\r'], " ")));
    let data = data.unwrap_or_default();
    let row = RowText { data: &data, sources: sources.as_deref(), surface_op: surface_op.as_deref(), ..*row };
    match Event::parse_line(&line(&row)) {
        // Text that is more than one value could have slipped other fields into the line.
        Ok(event) if event.data().as_str() == row.data.trim_matches([' ', '\t']) => Ok(event),
        Ok(_) => Err(Fault::Hole(HoleReason::NotJson("data: not one value".to_owned()))),
        Err(error) => {
            json("data", row.data)?;
            Err(Fault::Broken(error))
        }
    }
}

/// That `text` is one JSON value; J's limits are no holes.
fn json(column: &'static str, text: &str) -> Result<(), Fault> {
    match is_json_value(text) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == JsonErrorKind::Syntax => {
            Err(Fault::Hole(HoleReason::NotJson(format!("{column}: {error}"))))
        }
        Err(error) => Err(Fault::Broken(Error::new(ErrorKind::InvalidValue, format!("{column}: {error}")))),
    }
}

fn text<'a>(column: &'static str, cell: &'a Cell) -> Result<&'a str, HoleReason> {
    match cell {
        Cell::Text(text) => Ok(text),
        other => Err(hole(column, other)),
    }
}

fn optional<'a>(column: &'static str, cell: &'a Cell) -> Result<Option<&'a str>, HoleReason> {
    match cell {
        Cell::Null => Ok(None),
        other => text(column, other).map(Some),
    }
}

fn hole(column: &'static str, cell: &Cell) -> HoleReason {
    let found = match cell {
        Cell::TooLong(length) => format!("{length} bytes, more than are read"),
        other => other.kind().to_owned(),
    };
    HoleReason::Column { column, found }
}
