//! Lines of events that are spelled as [`Event::to_line`] spells them: nearly all there are.
//!
//! Always holds: what is taken here is what the general way makes of the line, and `data` is scanned as that does. A
//! line that is spelled otherwise, or is no event, is left to the general way, which also says what is wrong.

use std::sync::Arc;

use super::json::{JsonText, Scanner};
use super::stored::Event;
use super::{EventType, SurfaceOp, Time};

/// Digits of a number that every reader of JSON takes as it is.
const SAFE_DIGITS: usize = 15;

/// The event of `line`, if the line is spelled canonically.
pub(super) fn parse(line: &str) -> Option<Event> {
    let mut rest = Rest { line, at: 0 };
    rest.skip("{\"type\":\"")?;
    let event_type = rest.name()?;
    rest.skip("\",\"seq\":")?;
    let seq = rest.number()?;
    rest.skip(",\"time\":")?;
    let time = rest.number()?;
    rest.skip(",\"data\":")?;
    let data = rest.value()?;
    let sources = if rest.skip(",\"sourceEventSeqs\":[").is_some() { Some(rest.list()?) } else { None };
    let surface_op = if rest.skip(",\"surfaceOp\":").is_some() { Some(rest.surface_op()?) } else { None };
    (rest.left() == "}").then(|| Event {
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

/// The part of a line that was not matched yet.
struct Rest<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Rest<'a> {
    fn left(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self, expected: &str) -> Option<()> {
        self.left().starts_with(expected).then(|| self.at += expected.len())
    }

    fn take(&mut self, length: usize) -> Option<&'a str> {
        let taken = self.left().get(..length)?;
        self.at += length;
        Some(taken)
    }

    /// A name that has one spelling only.
    fn name(&mut self) -> Option<&'a str> {
        let plain =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b':');
        self.take(self.left().bytes().take_while(plain).count())
    }

    /// A whole number without sign and leading zeros.
    fn number(&mut self) -> Option<u64> {
        let length = self.left().bytes().take_while(u8::is_ascii_digit).count();
        let digits = self.take(length)?;
        let leading_zero = length > 1 && digits.starts_with('0');
        if length == 0 || length > SAFE_DIGITS || leading_zero {
            return None;
        }
        digits.parse().ok()
    }

    /// A JSON value without white space before it, and without a line break between its tokens.
    fn value(&mut self) -> Option<&'a str> {
        let mut scanner = Scanner::new(self.left());
        if matches!(scanner.peek()?, b' ' | b'\t' | b'\r' | b'\n') {
            return None;
        }
        scanner.value(1).ok()?;
        if scanner.saw_line_break() {
            return None;
        }
        self.take(scanner.at())
    }

    /// Numbers up to the bracket that ends them, which is taken.
    fn list(&mut self) -> Option<Arc<[u64]>> {
        let mut list = Vec::new();
        if self.skip("]").is_some() {
            return Some(list.into());
        }
        loop {
            list.push(self.number()?);
            match self.take(1)? {
                "," => {}
                "]" => return Some(list.into()),
                _ => return None,
            }
        }
    }

    fn surface_op(&mut self) -> Option<SurfaceOp> {
        if self.skip("\"append\"").is_some() {
            return Some(SurfaceOp::Append);
        }
        self.skip("{\"op\":\"replace\",\"start\":")?;
        let start = self.number()?;
        self.skip(",\"end\":")?;
        let end = self.number()?;
        self.skip("}")?;
        Some(SurfaceOp::Replace { start, end })
    }
}
