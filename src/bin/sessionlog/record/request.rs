//! A line as a request.
//!
//! What always holds: a payload is the line's own bytes, never built up and written again; of duplicate keys the
//! last counts; `null` stands for a missing field, except in `data`. A key that no request has is an error: a
//! misspelled `expect` must not turn into an unconditional append.

use sessionlog::event::{JsonErrorKind, JsonKind, JsonRef, JsonText, NewEvent, SurfaceOp, Time};
use sessionlog::{Error, ErrorKind, Result};

/// What is asked for.
#[derive(Debug)]
pub(crate) enum Request {
    Create { id: Option<String>, cwd: Option<String>, parent: Option<String>, created_at: Option<Time> },
    Resume { session: String },
    Append { session: String, event: NewEvent, expect: Option<u64> },
    Batch { session: String, events: Vec<NewEvent>, expect: Option<u64> },
    Flush { session: Option<String> },
    Messages { session: String },
    Surface { session: String },
    Events { session: String, from: u64, limit: Option<u64> },
    Fork { session: String, at: Option<u64>, id: Option<String>, close_open_turn: bool },
    Delete { session: String },
    Stat { session: String },
}

/// A line that was read: its tag, in raw JSON, and what it asks for.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) tag: Option<String>,
    pub(crate) request: Result<Request>,
}

/// Reads one line; `None` for a blank one.
pub(crate) fn parse(line: &[u8]) -> Option<Parsed> {
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => {
            let why = format!("the line is not UTF-8 at byte {}", error.valid_up_to());
            return Some(Parsed { tag: None, request: Err(bad(why)) });
        }
    };
    if text.trim_ascii().is_empty() {
        return None;
    }
    Some(match JsonRef::check(text) {
        Ok(value) => {
            let tag = value.get("tag").map(|tag| tag.raw().to_owned());
            Parsed { tag, request: read(value) }
        }
        Err(problem) if problem.kind() == JsonErrorKind::Syntax => {
            Parsed { tag: None, request: Err(bad(format!("the line is not one JSON object: {problem}"))) }
        }
        // The line is JSON, but holds a value that no event may carry: the tag can still be told.
        Err(problem) => Parsed { tag: tag_of(text), request: Err(problem.into()) },
    })
}

fn tag_of(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Tagged<'a> {
        #[serde(borrow)]
        tag: Option<&'a serde_json::value::RawValue>,
    }
    serde_json::from_str::<Tagged<'_>>(text).ok()?.tag.map(|tag| tag.get().to_owned())
}

fn bad(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::BadLine, why)
}

fn read(value: JsonRef<'_>) -> Result<Request> {
    if value.kind() != JsonKind::Object {
        return Err(bad("the line is a JSON value, but no object"));
    }
    let fields = Fields(value);
    let op = fields.text("op")?.ok_or_else(|| bad("\"op\" is missing"))?;
    let request = match op.as_str() {
        "create" => {
            fields.only(&["id", "cwd", "parentSession", "createdAt"])?;
            Request::Create {
                id: fields.text("id")?,
                cwd: fields.text("cwd")?,
                parent: fields.text("parentSession")?,
                created_at: fields.time("createdAt")?,
            }
        }
        "resume" => Request::Resume { session: fields.only_session()? },
        "append" => read_append(fields)?,
        "batch" => read_batch(fields)?,
        "flush" => {
            fields.only(&["session"])?;
            Request::Flush { session: fields.text("session")? }
        }
        "messages" => Request::Messages { session: fields.only_session()? },
        "surface" => Request::Surface { session: fields.only_session()? },
        "events" => {
            fields.only(&["session", "from", "limit"])?;
            let from = fields.whole("from")?.unwrap_or(0);
            Request::Events { session: fields.session()?, from, limit: fields.whole("limit")? }
        }
        "fork" => {
            fields.only(&["session", "at", "id", "closeOpenTurn"])?;
            Request::Fork {
                session: fields.session()?,
                at: fields.whole("at")?,
                id: fields.text("id")?,
                close_open_turn: fields.flag("closeOpenTurn")?,
            }
        }
        "delete" => Request::Delete { session: fields.only_session()? },
        "stat" => Request::Stat { session: fields.only_session()? },
        other => return Err(bad(format!("no such op: {other:?}"))),
    };
    Ok(request)
}

const ENVELOPE: [&str; 5] = ["type", "data", "surfaceOp", "sourceEventSeqs", "time"];

fn read_append(fields: Fields<'_>) -> Result<Request> {
    fields.only(&["session", "type", "data", "surfaceOp", "sourceEventSeqs", "time", "extra", "expect"])?;
    let session = fields.session()?;
    let mut event = read_event(fields)?;
    if let Some(extra) = fields.given("extra") {
        event = event.with_extra(extra.raw())?;
    }
    Ok(Request::Append { session, event, expect: fields.whole("expect")? })
}

fn read_batch(fields: Fields<'_>) -> Result<Request> {
    fields.only(&["session", "events", "expect"])?;
    let session = fields.session()?;
    let list = fields.given("events").filter(|list| list.kind() == JsonKind::Array);
    let list = list.ok_or_else(|| bad("\"events\" is missing, or no array"))?;
    let mut events = Vec::new();
    for (index, value) in list.elements().enumerate() {
        let event = read_batch_event(value);
        events.push(event.map_err(|error| error.clone().wrap(error.kind(), format!("events[{index}]")))?);
    }
    Ok(Request::Batch { session, events, expect: fields.whole("expect")? })
}

fn read_batch_event(value: JsonRef<'_>) -> Result<NewEvent> {
    if value.kind() != JsonKind::Object {
        return Err(bad("it is no object"));
    }
    let event = read_event(Fields(value))?;
    let mut extra = String::from("{");
    for (key, member) in value.members() {
        if ENVELOPE.iter().any(|name| key.eq_str(name)) {
            continue;
        }
        if extra.len() > 1 {
            extra.push(',');
        }
        extra.push('"');
        extra.push_str(key.raw_inner());
        extra.push_str("\":");
        extra.push_str(member.raw());
    }
    if extra.len() == 1 {
        return Ok(event);
    }
    extra.push('}');
    event.with_extra(&extra)
}

fn read_event(fields: Fields<'_>) -> Result<NewEvent> {
    let event_type = fields.text("type")?.ok_or_else(|| bad("\"type\" is missing"))?;
    let data = fields.0.get("data").ok_or_else(|| bad("\"data\" is missing"))?;
    let mut event = NewEvent::new(event_type, JsonText::from(data));
    if let Some(value) = fields.given("surfaceOp") {
        let op = SurfaceOp::from_json(value).map_err(|why| Error::new(ErrorKind::Marker, why))?;
        if let Some(op) = op {
            event = event.with_surface_op(op);
        }
    }
    if let Some(value) = fields.given("sourceEventSeqs") {
        event = event.with_sources(read_sources(value)?);
    }
    if let Some(time) = fields.time("time")? {
        event = event.with_time(time);
    }
    Ok(event)
}

fn read_sources(value: JsonRef<'_>) -> Result<Vec<u64>> {
    let wrong = || {
        let text = "sourceEventSeqs must be an array of integers >= 0, each an earlier event of the session";
        Error::new(ErrorKind::Sources, text)
    };
    if value.kind() != JsonKind::Array {
        return Err(wrong());
    }
    value.elements().map(|element| element.as_u64().ok_or_else(wrong)).collect()
}

/// The members of a request.
#[derive(Clone, Copy)]
struct Fields<'a>(JsonRef<'a>);

impl<'a> Fields<'a> {
    /// Refuses members beside `op`, `tag` and `known`.
    fn only(&self, known: &[&str]) -> Result<()> {
        for (key, _) in self.0.members() {
            if !["op", "tag"].iter().chain(known).any(|name| key.eq_str(name)) {
                let key = key.to_utf8_lossy();
                return Err(bad(format!(
                    "no such key here: {key:?} (fields of an event's envelope go into \"extra\")"
                )));
            }
        }
        Ok(())
    }

    fn given(&self, key: &str) -> Option<JsonRef<'a>> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<Option<String>> {
        let Some(value) = self.given(key) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| bad(format!("{key:?} is no string")))?;
        match text.to_string_lossless() {
            Some(text) => Ok(Some(text.into_owned())),
            None => Err(bad(format!("{key:?} holds a lone surrogate"))),
        }
    }

    fn whole(&self, key: &str) -> Result<Option<u64>> {
        let Some(value) = self.given(key) else { return Ok(None) };
        value.as_u64().map(Some).ok_or_else(|| bad(format!("{key:?} is no whole number")))
    }

    fn flag(&self, key: &str) -> Result<bool> {
        let Some(value) = self.given(key) else { return Ok(false) };
        value.as_bool().ok_or_else(|| bad(format!("{key:?} is neither true nor false")))
    }

    fn time(&self, key: &str) -> Result<Option<Time>> {
        let Some(value) = self.given(key) else { return Ok(None) };
        let time = Some(value).filter(|value| value.kind() == JsonKind::Number);
        let time = time.and_then(|value| Time::parse_json(value.raw()));
        let wrong = || Error::new(ErrorKind::InvalidValue, format!("{key:?} is no number of milliseconds"));
        time.map(Some).ok_or_else(wrong)
    }

    fn session(&self) -> Result<String> {
        self.text("session")?.ok_or_else(|| bad("\"session\" is missing"))
    }

    fn only_session(&self) -> Result<String> {
        self.only(&["session"])?;
        self.session()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Result<Request> {
        parse(line.as_bytes()).unwrap().request
    }

    fn kind(line: &str) -> ErrorKind {
        request(line).unwrap_err().kind()
    }

    #[test]
    fn data_is_the_lines_own_text() {
        let line = r#"{"op":"append","session":"s","type":"x","data":{"b":1.50, "a":"\ud800\u0041","b":-0}}"#;
        let Ok(Request::Append { event, session, expect }) = request(line) else { panic!() };
        assert_eq!(event.data().as_str(), r#"{"b":1.50, "a":"\ud800\u0041","b":-0}"#);
        assert_eq!((session.as_str(), event.event_type(), expect), ("s", "x", None));
        let line = r#"{"op":"append","session":"s","type":"x","data":null,"expect":3.0}"#;
        let Ok(Request::Append { event, expect, .. }) = request(line) else { panic!() };
        assert_eq!((event.data().as_str(), expect), ("null", Some(3)));
    }

    #[test]
    fn null_stands_for_missing_and_the_last_duplicate_counts() {
        let line = r#"{"op":"stat","op":"append","session":"s","type":"user/message","data":1,"surfaceOp":null,
            "sourceEventSeqs":null,"time":null,"extra":null,"expect":null}"#;
        let Ok(Request::Append { event, expect, .. }) = request(&line.replace('\n', " ")) else { panic!() };
        assert_eq!((event.surface_op(), event.sources(), event.extra(), expect), (None, None, None, None));
        assert!(event.time().is_none());
        let Ok(Request::Create { id: None, cwd: None, parent: None, created_at: None }) =
            request(r#"{"op":"create","id":null}"#)
        else {
            panic!()
        };
    }

    #[test]
    fn unknown_fields_of_a_batchs_event_are_kept_as_spelled() {
        let line = r#"{"op":"batch","session":"s","events":[
            {"type":"x","data":1},
            {"origin":{"a":1.0},"type":"user/message","data":2,"surfaceOp":{"op":"replace","start":1,"end":2},
             "sourceEventSeqs":[0,2,1],"time":1.5,"k\u0041":"v","origin":2}]}"#;
        let Ok(Request::Batch { events, expect: None, .. }) = request(&line.replace('\n', " ")) else {
            panic!()
        };
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].extra(), None);
        assert_eq!(events[1].extra(), Some(r#""origin":{"a":1.0},"k\u0041":"v","origin":2"#));
        assert_eq!(events[1].sources(), Some(&[0, 2, 1][..]));
        assert_eq!(events[1].surface_op(), Some(SurfaceOp::Replace { start: 1, end: 2 }));
        assert_eq!(events[1].time().unwrap().spelling(), "1.5");
    }

    #[test]
    fn lines_that_are_no_requests() {
        for line in [
            "x",
            "{",
            "[]",
            "1",
            "null",
            "{}",
            r#"{"op":1}"#,
            r#"{"op":"drop"}"#,
            r#"{"op":"stat"}"#,
            r#"{"op":"stat","session":7}"#,
            r#"{"op":"stat","session":"\ud800"}"#,
            r#"{"op":"stat","session":"s","expects":1}"#,
            r#"{"op":"append","session":"s","type":"x"}"#,
            r#"{"op":"append","session":"s","data":1}"#,
            r#"{"op":"append","session":"s","type":"x","data":1,"expect":-1}"#,
            r#"{"op":"append","session":"s","type":"x","data":1,"origin":1}"#,
            r#"{"op":"batch","session":"s","events":{}}"#,
            r#"{"op":"batch","session":"s","events":[1]}"#,
            r#"{"op":"fork","session":"s","closeOpenTurn":"yes"}"#,
            r#"{"op":"flush"} {"op":"flush"}"#,
        ] {
            assert_eq!(kind(line), ErrorKind::BadLine, "{line}");
        }
        assert_eq!(parse(b"\xff{}").unwrap().request.unwrap_err().kind(), ErrorKind::BadLine);
        assert!(parse(b"").is_none() && parse(b" \t\r").is_none());
    }

    #[test]
    fn what_is_wrong_with_an_event_has_its_own_kind() {
        let append = |more: &str| format!(r#"{{"op":"append","session":"s","type":"x","data":1,{more}}}"#);
        assert_eq!(kind(&append(r#""surfaceOp":"prepend""#)), ErrorKind::Marker);
        assert_eq!(kind(&append(r#""sourceEventSeqs":[-1]"#)), ErrorKind::Sources);
        assert_eq!(kind(&append(r#""sourceEventSeqs":0"#)), ErrorKind::Sources);
        assert_eq!(kind(&append(r#""time":"now""#)), ErrorKind::InvalidValue);
        assert_eq!(kind(&append(r#""extra":[]"#)), ErrorKind::InvalidValue);
        assert_eq!(kind(&append(r#""extra":{"seq":1}"#)), ErrorKind::InvalidValue);
        let error = request(r#"{"op":"batch","session":"s","events":[{"type":"x","data":1,"surfaceOp":2}]}"#);
        assert!(error.unwrap_err().to_string().contains("events[0]"));
    }

    #[test]
    fn the_tag_comes_back_whenever_it_can_be_read() {
        let tag = |line: &str| parse(line.as_bytes()).unwrap().tag;
        assert_eq!(tag(r#"{"op":"drop","tag": [1, 2.0] }"#).as_deref(), Some("[1, 2.0]"));
        assert_eq!(tag(r#"{"tag":null}"#).as_deref(), Some("null"));
        assert_eq!(tag(r#"{"tag":1"#), None);
        let line = r#"{"op":"append","tag":"t","session":"s","type":"x","data":[1e400]}"#;
        assert_eq!(tag(line).as_deref(), Some("\"t\""));
        let error = request(line).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidValue);
        assert!(error.to_string().contains("$.data[0]"), "{error}");
    }
}
