//! Payloads of event records: the event's text, packed where packing gives the same text back (F9).
//!
//! Three codings: CHUNK for the token deltas that make up most of a log, PLAIN for every other event that its fields
//! describe, VERBATIM for a line that rendering would spell otherwise (X2). Encoding never changes a byte of what an
//! event renders to; a decoder checks all of it again, so a payload that no encoder makes is a fault, never an event.

pub(crate) mod chunk;
pub(crate) mod plain;
mod session;
mod sources;
#[cfg(test)]
mod tests;

use crate::error::{Error, ErrorKind, Result};
use crate::event::chunk_text::{Chunk, push_number, recognise};
use crate::event::{
    Class, Event, JsonText, MAX_PAYLOAD_BYTES, MAX_TYPE_BYTES, NewEvent, SurfaceOp, Time, is_json_value,
};
use crate::format::constants::coding;
use crate::format::meta::{EventMeta, TIME_LIMIT};
use crate::format::varint;

use plain::Plain;
pub(crate) use session::{decode_session, encode_session};
pub(crate) use sources::MAX_SOURCES;

/// What an encoder needs of an event that may have no place yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(crate) event_type: &'a str,
    pub(crate) class: Class,
    pub(crate) time: &'a Time,
    pub(crate) data: &'a JsonText,
    pub(crate) surface_op: Option<SurfaceOp>,
    pub(crate) sources: Option<&'a [u64]>,
    /// Members as text, `"k":v,"l":w`.
    pub(crate) extra: Option<&'a str>,
    /// The whole line, where rendering the fields would spell it otherwise.
    pub(crate) line: Option<&'a str>,
}

impl<'a> Parts<'a> {
    /// The parts of an event that has its place.
    pub(crate) fn of_event(event: &'a Event) -> Self {
        Self {
            event_type: event.event_type(),
            class: event.class(),
            time: event.time(),
            data: event.data(),
            surface_op: event.surface_op(),
            sources: event.sources(),
            extra: event.extra(),
            line: event.verbatim_line().map(|line| &**line),
        }
    }

    /// The parts of an event that is to be appended at `seq`; `now` counts where it brings no time of its own. A line
    /// that it keeps is used only when `seq` is the place which that line names.
    pub(crate) fn of_new(event: &'a NewEvent, seq: u64, now: &'a Time) -> Self {
        let line = event.line.as_ref().filter(|(_, at)| *at == seq);
        Self {
            event_type: event.event_type(),
            class: event.class(),
            time: event.time().unwrap_or(now),
            data: event.data(),
            surface_op: event.surface_op(),
            sources: event.sources(),
            extra: event.extra(),
            line: line.map(|(line, _)| &**line),
        }
    }

    /// Checks what the format cannot take (F10).
    ///
    /// # Errors
    /// [`TooLarge`](ErrorKind::TooLarge), with what was found and what is possible.
    pub(crate) fn check_limits(&self) -> Result<()> {
        let texts = [Some(&**self.data), self.extra, self.line];
        let bytes: usize = texts.iter().flatten().map(|text| text.len()).sum();
        let sources = self.sources.map_or(0, <[u64]>::len);
        let limits = [
            ("type", self.event_type.len(), MAX_TYPE_BYTES, "bytes"),
            ("payload", bytes, MAX_PAYLOAD_BYTES, "bytes"),
            ("sourceEventSeqs", sources, MAX_SOURCES, "seqs"),
        ];
        match limits.into_iter().find(|(_, found, limit, _)| found > limit) {
            None => Ok(()),
            Some((what, found, limit, unit)) => {
                let text = format!("append: {what} of {found} {unit}, at most {limit} are possible");
                Err(Error::new(ErrorKind::TooLarge, text))
            }
        }
    }
}

/// What the metadata says of an encoded payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Encoded {
    pub(crate) coding: u8,
    pub(crate) class: u8,
    pub(crate) time_ms: Option<u64>,
    pub(crate) replace: Option<(u64, u64)>,
}

impl Encoded {
    /// The metadata, once the place is known.
    pub(crate) fn meta(self, dense: u64, seq: u64, more: bool) -> EventMeta {
        let Self { coding, class, time_ms, replace } = self;
        EventMeta { more, coding, class, dense, seq, time_ms, replace }
    }
}

/// Appends the payload of an event to `out`.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn encode(parts: &Parts<'_>, out: &mut Vec<u8>) -> Encoded {
    let (encoded, data_follows) = encode_front(parts, out);
    if data_follows {
        out.extend_from_slice(parts.data.as_bytes());
    }
    encoded
}

/// Appends the payload of an event to `out`, or all of it but the event's data, which then ends it.
pub(crate) fn encode_front(parts: &Parts<'_>, out: &mut Vec<u8>) -> (Encoded, bool) {
    let replace = match parts.surface_op {
        Some(SurfaceOp::Replace { start, end }) => Some((start, end)),
        _ => None,
    };
    let time_ms = whole_time(parts.time);
    let encoded = |coding| Encoded { coding, class: parts.class as u8, time_ms, replace };
    if let Some(line) = parts.line {
        out.extend_from_slice(line.as_bytes());
        return (encoded(coding::VERBATIM), false);
    }
    let bare = parts.surface_op.is_none() && parts.sources.is_none() && parts.extra.is_none();
    if parts.class == Class::Chunk
        && bare
        && time_ms.is_some()
        && let Some(chunk) = recognise(parts.data)
    {
        chunk.pack(out);
        return (encoded(coding::CHUNK), false);
    }
    plain::pack(parts, time_ms.is_none(), out);
    (encoded(coding::PLAIN), true)
}

/// The time as metadata carries it: only where the number renders to the very same text.
fn whole_time(time: &Time) -> Option<u64> {
    let millis = time.as_millis()?;
    let small = u64::try_from(millis).ok().filter(|&ms| ms < TIME_LIMIT)?;
    (Time::from_millis(millis) == *time).then_some(small)
}

/// The event of a record whose checksum passed.
///
/// # Errors
/// What no encoder of this version makes.
pub(crate) fn decode(meta: &EventMeta, payload: &[u8]) -> Result<Event, String> {
    let class = Class::from_u8(meta.class).ok_or_else(|| format!("unknown class {}", meta.class))?;
    match meta.coding {
        coding::VERBATIM => decode_line(meta, class, payload),
        coding::PLAIN => Ok(Plain::unpack(meta, class, payload)?.into_event()),
        coding::CHUNK => decode_chunk(meta, class, payload),
        other => Err(format!("unknown payload coding {other}")),
    }
}

/// Appends the line of the event of a record whose checksum passed: what [`decode`] gives and [`Event::to_line`] renders,
/// without the event in between. A fault leaves `out` as it was.
///
/// # Errors
/// As [`decode`].
pub(crate) fn render_line(meta: &EventMeta, payload: &[u8], out: &mut String) -> Result<(), String> {
    let class = Class::from_u8(meta.class).ok_or_else(|| format!("unknown class {}", meta.class))?;
    match meta.coding {
        coding::PLAIN => Plain::unpack(meta, class, payload)?.render_to(out),
        coding::CHUNK => {
            let (chunk, time) = unpack_chunk(meta, class, payload)?;
            out.push_str("{\"type\":\"assistant/chunk\",\"seq\":");
            push_number(out, meta.seq);
            out.push_str(",\"time\":");
            push_number(out, time);
            out.push_str(",\"data\":");
            chunk.render_to(out);
            out.push('}');
        }
        _ => {
            // Writing to a String cannot fail.
            let _ = decode(meta, payload)?.write_line(out);
        }
    }
    Ok(())
}

fn decode_line(meta: &EventMeta, class: Class, payload: &[u8]) -> Result<Event, String> {
    let line = std::str::from_utf8(payload).map_err(|e| format!("line: {e}"))?;
    let event = Event::parse_line(line).map_err(|e| format!("line: {e}"))?;
    let replace = match event.surface_op() {
        Some(SurfaceOp::Replace { start, end }) => Some((start, end)),
        _ => None,
    };
    if (event.class(), replace) != (class, meta.replace) {
        return Err("line: its class or replaced range is not the metadata's".to_owned());
    }
    if event.seq() == meta.seq {
        return Ok(event);
    }
    // A line that went to another place than it names is not that event's line, but its fields hold.
    let time = event.time().clone();
    Ok(NewEvent::from_event(event).into_event(meta.seq, time))
}

fn decode_chunk(meta: &EventMeta, class: Class, payload: &[u8]) -> Result<Event, String> {
    let (chunk, time) = unpack_chunk(meta, class, payload)?;
    let new = NewEvent::new("assistant/chunk", JsonText::from_validated(chunk.render().into()));
    Ok(new.into_event(meta.seq, from_millis(time)))
}

fn unpack_chunk<'a>(meta: &EventMeta, class: Class, payload: &'a [u8]) -> Result<(Chunk<'a>, u64), String> {
    let time = meta.time_ms.filter(|_| class == Class::Chunk && meta.replace.is_none());
    let time = time.ok_or("chunk: metadata of another kind of event")?;
    Ok((Chunk::unpack(payload)?, time))
}

fn from_millis(time_ms: u64) -> Time {
    Time::from_millis(time_ms.cast_signed())
}

/// Checks text that stands for JSON members or a value, as it was checked when it was appended (J).
fn check_json(what: &str, text: &str) -> Result<(), String> {
    is_json_value(text).map_err(|e| format!("{what}: {e}"))
}

fn put_sized(out: &mut Vec<u8>, text: &str) {
    varint::put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}
