//! An event as stored: one line of a session's history.
//!
//! Always holds: [`Event::to_line`] gives back the line that [`Event::parse_line`] took, byte for byte (X2),
//! because a line that rendering would spell otherwise is kept beside its fields. It never looks into `data`.

use std::fmt::{self, Write};
use std::sync::Arc;

use super::canonical;
use super::envelope::{self, Envelope, EnvelopeFault};
use super::json::{JsonStr, JsonText, Members, write_string};
use super::new_event::NewEvent;
use super::{Class, EventType, SurfaceOp, Time};
use crate::error::{ErrorKind, Result};

/// An event with its place in the session. A clone shares the payload.
#[derive(Clone, PartialEq, Eq)]
pub struct Event {
    pub(super) seq: u64,
    pub(super) time: Time,
    pub(super) event_type: EventType,
    pub(super) data: JsonText,
    pub(super) surface_op: Option<SurfaceOp>,
    pub(super) sources: Option<Arc<[u64]>>,
    pub(super) extra: Option<Arc<str>>,
    pub(super) line: Option<Arc<str>>,
}

/// What [`Event::parse_line_lenient`] made of a line.
#[derive(Debug, Clone)]
pub struct ParsedLine {
    /// The event; a malformed `sourceEventSeqs` or `surfaceOp` is missing from it, but not from its line.
    pub event: Event,
    /// What is malformed in it.
    pub faults: Vec<EnvelopeFault>,
}

impl Event {
    /// The event that `new` becomes at `seq`; `time` counts where it brings none of its own.
    pub(crate) fn assemble(seq: u64, time: Time, new: NewEvent) -> Self {
        let NewEvent { event_type, data, surface_op, sources, time: own_time, extra, line } = new;
        // A kept line is only the event's line at the place that it names.
        let line = line.filter(|(_, at)| *at == seq).map(|(line, _)| line);
        Self { seq, time: own_time.unwrap_or(time), event_type, data, surface_op, sources, extra, line }
    }

    /// The parts, to be appended again.
    pub(crate) fn into_new(self) -> NewEvent {
        let Self { seq, time, event_type, data, surface_op, sources, extra, line } = self;
        let line = line.map(|line| (line, seq));
        NewEvent { event_type, data, surface_op, sources, time: Some(time), extra, line }
    }

    /// The place in the session, counted from 0.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// When it was appended, by a wall clock. Never used for order.
    #[must_use]
    pub fn time(&self) -> &Time {
        &self.time
    }

    /// The type's name.
    #[must_use]
    pub fn event_type(&self) -> &str {
        self.event_type.as_str()
    }

    /// What the engine knows of the type.
    #[must_use]
    pub fn class(&self) -> Class {
        self.event_type.class()
    }

    /// The payload.
    #[must_use]
    pub fn data(&self) -> &JsonText {
        &self.data
    }

    /// The events that this one was made of (`sourceEventSeqs`).
    #[must_use]
    pub fn sources(&self) -> Option<&[u64]> {
        self.sources.as_deref()
    }

    /// How it takes its place on the surface.
    #[must_use]
    pub fn surface_op(&self) -> Option<SurfaceOp> {
        self.surface_op
    }

    /// Unknown envelope fields as text, `"k":v,"l":w` (V2).
    #[must_use]
    pub fn extra(&self) -> Option<&str> {
        self.extra.as_deref()
    }

    /// Unknown envelope fields one by one, duplicates included.
    #[must_use]
    pub fn extra_members(&self) -> Members<'_> {
        Members::of_text(self.extra.as_deref().unwrap_or(""))
    }

    /// The line this event was read from, where rendering it would spell it otherwise (X2).
    pub(crate) fn verbatim_line(&self) -> Option<&Arc<str>> {
        self.line.as_ref()
    }

    /// The line of the interchange format (X), without LF: members in the order type, seq, time, data,
    /// sourceEventSeqs, surfaceOp, then unknown ones; or exactly the line it was read from.
    #[must_use]
    pub fn to_line(&self) -> String {
        if let Some(line) = &self.line {
            return String::from(&**line);
        }
        let mut out = String::with_capacity(self.data.len().saturating_add(128));
        // Writing to a String cannot fail.
        let _ = self.render(&mut out);
        out
    }

    /// Writes what [`to_line`](Self::to_line) returns.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_line<W: Write>(&self, out: &mut W) -> fmt::Result {
        match &self.line {
            Some(line) => out.write_str(line),
            None => self.render(out),
        }
    }

    fn render<W: Write>(&self, out: &mut W) -> fmt::Result {
        let parts = LineParts {
            event_type: self.event_type.as_str(),
            seq: self.seq,
            time: &self.time,
            sources: self.sources.as_deref(),
            surface_op: self.surface_op,
            extra: self.extra.as_deref(),
        };
        parts.write_front(out)?;
        out.write_str(&self.data)?;
        parts.write_back(out)
    }

    /// Reads a line of the interchange format, without its LF. The line itself is kept where rendering would
    /// spell it otherwise; `data` is copied once.
    ///
    /// # Errors
    /// [`InvalidJson`](ErrorKind::InvalidJson) when it is not one JSON object,
    /// [`InvalidValue`](ErrorKind::InvalidValue) when type, seq, time or data are missing or malformed,
    /// [`Marker`](ErrorKind::Marker) and [`Sources`](ErrorKind::Sources) for a malformed `surfaceOp` and
    /// `sourceEventSeqs`. Whether marker and sources belong there (A2, A4) is not asked here.
    pub fn parse_line(line: &str) -> Result<Self> {
        let ParsedLine { event, faults } = Self::parse_line_lenient(line)?;
        match faults.into_iter().next() {
            Some(fault) => Err(fault.into()),
            None => Ok(event),
        }
    }

    /// As [`parse_line`](Self::parse_line), but a malformed `surfaceOp` or `sourceEventSeqs` is returned as a
    /// fault beside the event, so that a checker can go on.
    ///
    /// # Errors
    /// As [`parse_line`](Self::parse_line), without `Marker` and `Sources`.
    pub fn parse_line_lenient(line: &str) -> Result<ParsedLine> {
        if let Some(event) = canonical::parse(line) {
            return Ok(ParsedLine { event, faults: Vec::new() });
        }
        Self::parse_any_line(line)
    }

    /// The general way: any spelling.
    pub(crate) fn parse_any_line(line: &str) -> Result<ParsedLine> {
        let envelope = Envelope::parse(line)?;
        let (event_type, seq, time, data) = required(&envelope)?;
        let mut faults = Vec::new();
        let sources =
            envelope.sources().map(envelope::sources_from_json).transpose().unwrap_or_else(|text| {
                faults.push(EnvelopeFault::new(ErrorKind::Sources, "sourceEventSeqs", text));
                None
            });
        let op = envelope.surface_op().map(SurfaceOp::from_json).transpose().unwrap_or_else(|text| {
            faults.push(EnvelopeFault::new(ErrorKind::Marker, "surfaceOp", text));
            None
        });
        let mut event = Self {
            seq,
            time,
            event_type: EventType::from(&*event_type.to_utf8_lossy()),
            data,
            surface_op: op.flatten(),
            sources: sources.map(Arc::from),
            extra: envelope.extra_text().map(Arc::from),
            line: None,
        };
        let mut compare = Compare { rest: line };
        let same = event.render(&mut compare).is_ok() && compare.rest.is_empty();
        event.line = (!same).then(|| Arc::from(line));
        Ok(ParsedLine { event, faults })
    }
}

/// What a canonical line has around its data.
pub(crate) struct LineParts<'a> {
    pub(crate) event_type: &'a str,
    pub(crate) seq: u64,
    pub(crate) time: &'a Time,
    pub(crate) sources: Option<&'a [u64]>,
    pub(crate) surface_op: Option<SurfaceOp>,
    pub(crate) extra: Option<&'a str>,
}

impl LineParts<'_> {
    /// What stands before the data.
    pub(crate) fn write_front<W: Write>(&self, out: &mut W) -> fmt::Result {
        out.write_str("{\"type\":")?;
        write_string(out, self.event_type)?;
        write!(out, ",\"seq\":{},\"time\":{},\"data\":", self.seq, self.time)
    }

    /// What stands behind it.
    pub(crate) fn write_back<W: Write>(&self, out: &mut W) -> fmt::Result {
        if let Some(sources) = self.sources {
            out.write_str(",\"sourceEventSeqs\":[")?;
            for (i, seq) in sources.iter().enumerate() {
                let comma = if i == 0 { "" } else { "," };
                write!(out, "{comma}{seq}")?;
            }
            out.write_str("]")?;
        }
        if let Some(op) = self.surface_op {
            out.write_str(",\"surfaceOp\":")?;
            op.write_json(out)?;
        }
        if let Some(extra) = self.extra {
            out.write_str(",")?;
            out.write_str(extra)?;
        }
        out.write_str("}")
    }
}

/// The members without which a line is no event.
fn required<'a>(envelope: &Envelope<'a>) -> Result<(JsonStr<'a>, u64, Time, JsonText)> {
    let fault = |field, text| EnvelopeFault::new(ErrorKind::InvalidValue, field, text);
    let event_type = envelope.event_type().and_then(|v| v.as_str());
    let event_type = event_type.ok_or_else(|| fault("type", "type must be a string"))?;
    let seq = envelope.seq().and_then(|v| v.as_u64());
    let seq = seq.ok_or_else(|| fault("seq", "seq must be an integer >= 0"))?;
    let time = envelope.time().and_then(|v| Time::parse_json(v.as_number()?));
    let time = time.ok_or_else(|| fault("time", "time must be a number"))?;
    let data = envelope.data_text().ok_or_else(|| fault("data", "data is missing"))?;
    Ok((event_type, seq, time, data))
}

/// A sink that only compares with what is expected, so that no second line is built.
struct Compare<'a> {
    rest: &'a str,
}

impl Write for Compare<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.rest = self.rest.strip_prefix(text).ok_or(fmt::Error)?;
        Ok(())
    }
}

/// As its line.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_line(f)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_line(f)
    }
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;
