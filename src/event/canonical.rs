//! Lines of events that are spelled as [`Event::to_line`] spells them: nearly all there are.
//!
//! Always holds: what is taken here is what the general way makes of the line, and `data` is scanned as that does. A
//! line that is spelled otherwise, or is no event, is left to the general way, which also says what is wrong.

use std::sync::Arc;

use super::chunk_text;
use super::exact::Text;
use super::json::{JsonText, Scanner};
use super::stored::Event;
use super::{EventType, SurfaceOp, Time};

/// The first number that not every reader of JSON takes as it is spelled.
const UNSAFE: u64 = 1_000_000_000_000_000;

/// The event of `line`, if the line is spelled canonically.
pub(super) fn parse(line: &str) -> Option<Event> {
    let mut text = Text { rest: line };
    text.skip(b"{\"type\":\"")?;
    let event_type = name(&mut text)?;
    text.skip(b"\",\"seq\":")?;
    let seq = number(&mut text)?;
    text.skip(b",\"time\":")?;
    let time = number(&mut text)?;
    text.skip(b",\"data\":")?;
    // Nearly every event of a log.
    let chunk = if event_type == "assistant/chunk" { chunk_text::take(&mut text) } else { None };
    let data = match chunk {
        Some(data) => data,
        None => value(&mut text)?,
    };
    let sources = if text.skip(b",\"sourceEventSeqs\":[").is_some() { Some(list(&mut text)?) } else { None };
    let surface_op = if text.skip(b",\"surfaceOp\":").is_some() { Some(op(&mut text)?) } else { None };
    (text.rest == "}").then(|| Event {
        seq,
        time: Time::from_millis(time.cast_signed()),
        event_type: EventType::from(event_type),
        data: JsonText::from_validated(data.into()),
        surface_op,
        sources,
        extra: None,
        line: None,
    })
}

/// A name that has one spelling only.
fn name<'a>(text: &mut Text<'a>) -> Option<&'a str> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b':');
    text.take(text.rest.bytes().take_while(plain).count())
}

fn number(text: &mut Text<'_>) -> Option<u64> {
    text.number().filter(|number| *number < UNSAFE)
}

/// A JSON value without white space before it, and without a line break between its tokens.
fn value<'a>(text: &mut Text<'a>) -> Option<&'a str> {
    let mut scanner = Scanner::new(text.rest);
    if matches!(scanner.peek()?, b' ' | b'\t' | b'\r' | b'\n') {
        return None;
    }
    scanner.value(1).ok()?;
    if scanner.saw_line_break() {
        return None;
    }
    text.take(scanner.at())
}

/// Numbers up to the bracket that ends them, which is taken.
fn list(text: &mut Text<'_>) -> Option<Arc<[u64]>> {
    let mut list = Vec::new();
    if text.skip(b"]").is_some() {
        return Some(list.into());
    }
    loop {
        list.push(number(text)?);
        match text.take(1)? {
            "," => {}
            "]" => return Some(list.into()),
            _ => return None,
        }
    }
}

fn op(text: &mut Text<'_>) -> Option<SurfaceOp> {
    if text.skip(b"\"append\"").is_some() {
        return Some(SurfaceOp::Append);
    }
    text.skip(b"{\"op\":\"replace\",\"start\":")?;
    let start = number(text)?;
    text.skip(b",\"end\":")?;
    let end = number(text)?;
    text.skip(b"}")?;
    Some(SurfaceOp::Replace { start, end })
}
