//! PLAIN: an event's fields one after the other; what the metadata says is not said again.

use super::session::{put_text, take_text};
use super::{Parts, check_json, from_millis, put_sized, sources};
use crate::error::Error;
use crate::event::{
    Class, Event, EventType, JsonText, LineParts, NewEvent, SurfaceOp, Time, is_kept_as_it_is,
};
use crate::format::meta::EventMeta;
use crate::format::varint::{Cursor, Fault};

/// Bits of the first byte.
pub(crate) mod field {
    /// `surfaceOp` is `"append"`; that it replaces, the metadata says.
    pub(crate) const APPEND: u8 = 1;
    /// Sources follow.
    pub(crate) const SOURCES: u8 = 2;
    /// Unknown envelope fields follow.
    pub(crate) const EXTRA: u8 = 4;
    /// All of version 1.
    pub(crate) const KNOWN: u8 = APPEND | SOURCES | EXTRA;
}

/// Appends everything but the data, which comes last.
pub(super) fn pack(parts: &Parts<'_>, time_text: bool, out: &mut Vec<u8>) {
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    out.push(
        flag(parts.surface_op == Some(SurfaceOp::Append), field::APPEND)
            | flag(parts.sources.is_some(), field::SOURCES)
            | flag(parts.extra.is_some(), field::EXTRA),
    );
    if parts.class == Class::Other {
        put_text(out, parts.event_type);
    }
    if time_text {
        put_sized(out, &parts.time.spelling());
    }
    if let Some(list) = parts.sources {
        sources::pack(list, out);
    }
    if let Some(extra) = parts.extra {
        put_sized(out, extra);
    }
}

/// The fields of an event, its texts borrowed from the payload.
pub(super) struct Plain<'a> {
    seq: u64,
    event_type: EventType,
    time: Time,
    sources: Option<Vec<u64>>,
    surface_op: Option<SurfaceOp>,
    extra: Option<&'a str>,
    data: &'a str,
}

impl<'a> Plain<'a> {
    pub(super) fn unpack(meta: &EventMeta, class: Class, payload: &'a [u8]) -> Result<Self, String> {
        let mut cursor = Cursor::new(payload);
        let fields = cursor.u8().map_err(|e| format!("plain: {e}"))?;
        if fields & !field::KNOWN != 0 {
            return Err(format!("plain: unknown fields {fields:#04x}"));
        }
        let event_type = match class.name() {
            Some(name) => EventType::from(name),
            None => other_type(&mut cursor)?,
        };
        let time = match meta.time_ms {
            Some(ms) => from_millis(ms),
            None => spelled_time(&mut cursor)?,
        };
        let sources = if fields & field::SOURCES != 0 { Some(sources::unpack(&mut cursor)?) } else { None };
        let extra = if fields & field::EXTRA != 0 { Some(members(&mut cursor)?) } else { None };
        let surface_op = match (fields & field::APPEND != 0, meta.replace) {
            (false, None) => None,
            (true, None) => Some(SurfaceOp::Append),
            (false, Some((start, end))) => Some(SurfaceOp::Replace { start, end }),
            (true, Some(_)) => return Err("plain: an event that appends and replaces".to_owned()),
        };
        let data = utf8("data", Ok(cursor.rest()))?;
        // White space around it and line breaks in it would have been changed by keeping the text.
        if !is_kept_as_it_is(data).map_err(|e| format!("data: {}", Error::from(e)))? {
            return Err("data: white space around it, or a line break in it".to_owned());
        }
        Ok(Self { seq: meta.seq, event_type, time, sources, surface_op, extra, data })
    }

    pub(super) fn into_event(self) -> Event {
        let mut event = NewEvent::new(self.event_type, JsonText::from_validated(self.data.into()));
        event.surface_op = self.surface_op;
        event.sources = self.sources.map(Into::into);
        event.extra = self.extra.map(Into::into);
        event.into_event(self.seq, self.time)
    }

    /// Appends the event's line.
    pub(super) fn render_to(&self, out: &mut String) {
        let parts = LineParts {
            event_type: self.event_type.as_str(),
            seq: self.seq,
            time: &self.time,
            sources: self.sources.as_deref(),
            surface_op: self.surface_op,
            extra: self.extra,
        };
        // Writing to a String cannot fail.
        let _ = parts.write_front(out);
        out.push_str(self.data);
        let _ = parts.write_back(out);
    }
}

fn utf8<'a>(what: &str, bytes: Result<&'a [u8], Fault>) -> Result<&'a str, String> {
    let bytes = bytes.map_err(|e| format!("{what}: {e}"))?;
    std::str::from_utf8(bytes).map_err(|e| format!("{what}: {e}"))
}

fn other_type(cursor: &mut Cursor<'_>) -> Result<EventType, String> {
    let event_type = EventType::from(take_text("type", cursor)?);
    if event_type.class() == Class::Other {
        Ok(event_type)
    } else {
        Err(format!("type: {event_type} under the class of unknown types"))
    }
}

/// A time that is no whole number below 2^48, as spelled.
fn spelled_time(cursor: &mut Cursor<'_>) -> Result<Time, String> {
    let text = utf8("time", cursor.sized())?;
    let time = Time::parse_json(text).ok_or_else(|| format!("time: {text:?} is no JSON number"))?;
    match super::whole_time(&time) {
        None => Ok(time),
        Some(ms) => Err(format!("time: {ms} spelled where the metadata has its place")),
    }
}

fn members<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, String> {
    let text = utf8("unknown fields", cursor.sized())?;
    check_json("unknown fields", &format!("{{{text}}}"))?;
    Ok(text)
}
