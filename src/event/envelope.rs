//! An event line taken apart: where its envelope's members are, nothing copied.
//!
//! Always holds: the line was checked to be one JSON object in the same pass. Of duplicate members the last
//! counts. Whether a member has the right shape is asked later, one question a member.

use std::sync::Arc;

use super::json::{JsonError, JsonKind, JsonRef, JsonText, Member, scan_object, without_line_breaks};
use crate::error::{Error, ErrorKind, Result};

/// The members of an event line, borrowed from it.
#[derive(Debug, Clone, Default)]
pub struct Envelope<'a> {
    event_type: Option<JsonRef<'a>>,
    seq: Option<JsonRef<'a>>,
    time: Option<JsonRef<'a>>,
    data: Option<JsonRef<'a>>,
    sources: Option<JsonRef<'a>>,
    surface_op: Option<JsonRef<'a>>,
    extras: Vec<(&'a str, &'a str)>,
    broken: bool,
}

/// A member of an envelope that has not the shape it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeFault {
    pub(crate) kind: ErrorKind,
    pub(crate) field: &'static str,
    pub(crate) message: String,
}

impl EnvelopeFault {
    pub(crate) fn new(kind: ErrorKind, field: &'static str, message: impl Into<String>) -> Self {
        Self { kind, field, message: message.into() }
    }

    /// The class: [`Marker`](ErrorKind::Marker) for `surfaceOp`, [`Sources`](ErrorKind::Sources) for
    /// `sourceEventSeqs`, [`InvalidValue`](ErrorKind::InvalidValue) for the others.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The member's name.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// What is wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl From<EnvelopeFault> for Error {
    fn from(fault: EnvelopeFault) -> Self {
        Self::new(fault.kind, format!("event line: {}", fault.message))
    }
}

/// The names that the envelope itself uses.
pub(crate) const ENVELOPE_FIELDS: [&str; 6] = ["type", "seq", "time", "data", "sourceEventSeqs", "surfaceOp"];

impl<'a> Envelope<'a> {
    /// Takes `line` apart. It must be one JSON object without a LF; a CR between tokens is white space.
    ///
    /// # Errors
    /// [`InvalidJson`](ErrorKind::InvalidJson) or [`InvalidValue`](ErrorKind::InvalidValue), with the path
    /// and the byte.
    pub fn parse(line: &'a str) -> Result<Self> {
        let mut found = Self::default();
        let broken = scan_line(line, "event", |member| found.member(member))?;
        Ok(Self { broken, ..found })
    }

    fn member(&mut self, member: Member<'a>) {
        let slot = match &*member.name.to_utf8_lossy() {
            "type" => &mut self.event_type,
            "seq" => &mut self.seq,
            "time" => &mut self.time,
            "data" => &mut self.data,
            "sourceEventSeqs" => &mut self.sources,
            "surfaceOp" => &mut self.surface_op,
            _ => return self.extras.push((member.quoted, member.value)),
        };
        *slot = Some(JsonRef::new_validated(member.value));
    }

    /// The member `type`.
    #[must_use]
    pub fn event_type(&self) -> Option<JsonRef<'a>> {
        self.event_type
    }

    /// The member `seq`.
    #[must_use]
    pub fn seq(&self) -> Option<JsonRef<'a>> {
        self.seq
    }

    /// The member `time`.
    #[must_use]
    pub fn time(&self) -> Option<JsonRef<'a>> {
        self.time
    }

    /// The member `data`.
    #[must_use]
    pub fn data(&self) -> Option<JsonRef<'a>> {
        self.data
    }

    /// The text of `data`.
    pub(crate) fn data_text(&self) -> Option<JsonText> {
        let data = self.data?;
        // The scan has seen whether there is anything to replace, so that large payloads are not searched.
        Some(if self.broken {
            JsonText::of_checked(data)
        } else {
            JsonText::from_validated(data.raw().into())
        })
    }

    /// The member `sourceEventSeqs`.
    #[must_use]
    pub fn sources(&self) -> Option<JsonRef<'a>> {
        self.sources
    }

    /// The member `surfaceOp`.
    #[must_use]
    pub fn surface_op(&self) -> Option<JsonRef<'a>> {
        self.surface_op
    }

    /// The other members as text, `"k":v,"l":w`, without line breaks (V2).
    pub(crate) fn extra_text(&self) -> Option<String> {
        join_members(self.extras.iter().copied())
    }
}

/// Takes a line of the interchange format apart, `what` being its name in errors; whether it has a CR
/// between tokens.
pub(crate) fn scan_line<'a>(line: &'a str, what: &str, member: impl FnMut(Member<'a>)) -> Result<bool> {
    let broken = scan_object(line, member).map_err(|fault| {
        let error = Error::from(JsonError::at(line, fault));
        let kind = error.kind();
        error.wrap(kind, format!("{what} line"))
    })?;
    if broken && line.contains('\n') {
        return Err(Error::new(ErrorKind::InvalidJson, format!("{what} line: a line break inside the line")));
    }
    Ok(broken)
}

/// Members as text, `"k":v,"l":w`; names come with their quotes.
pub(crate) fn join_members<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let mut text: Option<String> = None;
    for (name, value) in members {
        let out = match &mut text {
            Some(out) => {
                out.push(',');
                out
            }
            None => text.insert(String::new()),
        };
        out.push_str(name);
        out.push(':');
        out.push_str(&without_line_breaks(value));
    }
    text
}

/// The members of `object` as text, none of which may be one of `taken`.
pub(crate) fn extra_members(object: &str, taken: &[&str]) -> Result<Option<Arc<str>>> {
    let text = JsonText::parse(object)?;
    if text.value().kind() != JsonKind::Object {
        return Err(Error::new(ErrorKind::InvalidValue, "extra fields must be a JSON object"));
    }
    let mut members = Vec::new();
    let _ = scan_object(&text, |member| members.push(member));
    for member in &members {
        if let Some(field) = taken.iter().find(|field| member.name.eq_str(field)) {
            let text = format!("the extra field {field:?} is one of the engine's own");
            return Err(Error::new(ErrorKind::InvalidValue, text));
        }
    }
    Ok(join_members(members.iter().map(|m| (m.quoted, m.value))).map(Arc::from))
}

/// Reads a `sourceEventSeqs` member: an array of integers >= 0 (A4).
///
/// # Errors
/// What the member should have been.
pub(crate) fn sources_from_json(value: JsonRef<'_>) -> std::result::Result<Vec<u64>, String> {
    if value.kind() != JsonKind::Array {
        return Err("sourceEventSeqs must be an array of integers >= 0".into());
    }
    let mut seqs = Vec::new();
    for element in value.elements() {
        match element.as_u64() {
            Some(seq) => seqs.push(seq),
            None => {
                let shown: String = element.raw().chars().take(40).collect();
                return Err(format!("sourceEventSeqs must hold integers >= 0, found {shown}"));
            }
        }
    }
    Ok(seqs)
}
