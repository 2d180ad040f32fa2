//! The one way from events to LLM messages (M).
//!
//! A message borrows the bytes of its event's data wherever the data has them as the message needs them. Neighbours
//! are never merged, chunks never parsed, and an event whose data cannot be read derives nothing.

use std::borrow::Cow;
use std::ops::Range;

use super::body::Body;
use super::literal::{literal, literal_of};
use super::{Class, Event, JsonKind, JsonRef, JsonText};

/// A message for a model: a role and content blocks.
#[derive(Debug, Clone)]
pub struct Message {
    data: JsonText,
    role: Piece,
    content: Piece,
}

/// A JSON text that a message is made of.
#[derive(Debug, Clone)]
enum Piece {
    /// Where it lies in the data.
    Slice(Range<usize>),
    Fixed(&'static str),
    Built(Box<str>),
}

impl Piece {
    fn new(data: &JsonText, text: Cow<'_, str>) -> Self {
        let text = match text {
            Cow::Owned(text) => return Self::Built(text.into()),
            Cow::Borrowed("\"user\"") => return Self::Fixed("\"user\""),
            Cow::Borrowed("\"assistant\"") => return Self::Fixed("\"assistant\""),
            Cow::Borrowed(text) => text,
        };
        // A borrowed part lies inside the data: where, the addresses tell.
        let start = text.as_ptr().addr().checked_sub(data.as_str().as_ptr().addr());
        let range = start.map(|start| start..start.saturating_add(text.len()));
        let is_there = |range: &Range<usize>| data.as_str().get(range.clone()) == Some(text);
        range.filter(is_there).map_or_else(|| Self::Built(text.into()), Self::Slice)
    }
}

impl Message {
    /// The role: `user` or `assistant`, or what a `data.message` says. A lone surrogate in it becomes U+FFFD.
    #[must_use]
    pub fn role(&self) -> Cow<'_, str> {
        match JsonRef::new_validated(self.role_json()).as_str() {
            Some(role) => Cow::Owned(role.to_utf8_lossy().into_owned()),
            None => Cow::Borrowed(self.role_json()),
        }
    }

    /// The role as the JSON string literal that the event has.
    #[must_use]
    pub fn role_json(&self) -> &str {
        self.piece(&self.role)
    }

    /// The content blocks as JSON text: an array.
    #[must_use]
    pub fn content_json(&self) -> &str {
        self.piece(&self.content)
    }

    /// The content blocks.
    #[must_use]
    pub fn content(&self) -> JsonRef<'_> {
        JsonRef::new_validated(self.content_json())
    }

    /// `{"role":…,"content":…}`, without a line break.
    #[must_use]
    pub fn to_line(&self) -> String {
        let (role, content) = (self.role_json(), self.content_json());
        ["{\"role\":", role, ",\"content\":", content, "}"].concat()
    }

    fn piece<'a>(&'a self, piece: &'a Piece) -> &'a str {
        match piece {
            Piece::Slice(range) => self.data.as_str().get(range.clone()).unwrap_or("null"),
            Piece::Fixed(text) => text,
            Piece::Built(text) => text,
        }
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.role_json() == other.role_json() && self.content_json() == other.content_json()
    }
}

impl Eq for Message {}

/// The message that a surface event makes, if it makes one (M). Whether the event is on the surface is not asked.
#[must_use]
pub fn derive_message(event: &Event) -> Option<Message> {
    let data = event.data();
    let parts = read(event.class(), data.value()).ok().flatten()?;
    let (role, content) = (Piece::new(data, parts.role), Piece::new(data, parts.content));
    Some(Message { data: data.clone(), role, content })
}

/// What a message is made of, borrowed from the data where it can be.
pub(crate) struct Parts<'a> {
    role: Cow<'a, str>,
    content: Cow<'a, str>,
}

/// The message of an event of `class` with this `data`; nothing for other types and for messages that are skipped.
///
/// # Errors
/// What could not be read, in words (rule M).
pub(crate) fn read(class: Class, data: JsonRef<'_>) -> Result<Option<Parts<'_>>, &'static str> {
    if !class.is_surface() {
        return Ok(None);
    }
    let body = Body::new(data);
    let content = body.content().ok_or("its content is no array")?;
    let is_empty = content.elements().next().is_none();
    let user = Cow::Borrowed("\"user\"");
    let (role, content) = match (body.message(), class) {
        (Some(_), _) | (None, Class::AssistantMessage) if is_empty => return Ok(None),
        (Some(message), _) => {
            let role = message.get("role").filter(|role| role.kind() == JsonKind::String);
            (role.ok_or("its message has no role")?.raw().into(), content.raw().into())
        }
        (None, Class::AssistantMessage) => (Cow::Borrowed("\"assistant\""), content.raw().into()),
        (None, Class::UserMessage) => (user, content.raw().into()),
        (None, Class::ToolResult) => (user, tool_result(&body, content)?.into()),
        (None, Class::SteeringMessage) => (user, framed("steering", &body, content)?.into()),
        (None, _) => (user, framed("context", &body, content)?.into()),
    };
    Ok(Some(Parts { role, content }))
}

/// One tool-result block around the content.
fn tool_result(body: &Body<'_>, content: JsonRef<'_>) -> Result<String, &'static str> {
    let id = body.field("callId").filter(|id| id.kind() == JsonKind::String);
    let id = id.ok_or("its callId is no string")?;
    let is_error = body.is_error().ok_or("its isError is no boolean")?;
    let parts = [
        "[{\"type\":\"tool-result\",\"toolCallId\":",
        id.raw(),
        ",\"content\":",
        content.raw(),
        if is_error { ",\"isError\":true}]" } else { ",\"isError\":false}]" },
    ];
    Ok(parts.concat())
}

/// The content between two text blocks that name where it comes from.
fn framed(tag: &str, body: &Body<'_>, content: JsonRef<'_>) -> Result<String, &'static str> {
    let kind = body.field("source").and_then(|source| source.get("kind")?.as_str());
    let kind = literal(kind.ok_or("its source has no kind")?);
    let open = literal_of(&format!("<{tag} source={kind}>"));
    let close = literal_of(&format!("</{tag}>"));
    let array = content.raw();
    let blocks = array.get(1..array.len().saturating_sub(1)).unwrap_or_default();
    let comma = if content.elements().next().is_none() { "" } else { "," };
    let parts = [
        "[{\"type\":\"text\",\"text\":",
        open.as_str(),
        "},",
        blocks,
        comma,
        "{\"type\":\"text\",\"text\":",
        close.as_str(),
        "}]",
    ];
    Ok(parts.concat())
}

#[cfg(test)]
mod tests;
