//! The one way from events to LLM messages (M).
//!
//! A message borrows the bytes of its event's data wherever the data has them as the message needs them. Neighbours
//! are never merged, chunks never parsed, and an event whose data cannot be read derives nothing.

use std::borrow::Cow;
use std::ops::Range;

use super::body::Body;
use super::literal::{literal, literal_of};
use super::{Class, Event, JsonKind, JsonRef, JsonStr, JsonText};

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
    Ok(shape(class, &Body::new(data))?.map(Shape::into_parts))
}

/// What an event's data makes a message of, nothing built yet.
pub(crate) enum Shape<'a> {
    /// The message is there as it is.
    Whole { role: &'a str, content: JsonRef<'a> },
    /// One tool-result block around the content.
    ToolResult { id: JsonRef<'a>, content: JsonRef<'a>, is_error: bool },
    /// The content between two text blocks that name where it comes from.
    Framed { tag: &'static str, kind: JsonStr<'a>, content: JsonRef<'a> },
}

/// As [`read`], of data that was looked at, and nothing is built.
///
/// # Errors
/// As [`read`].
pub(crate) fn shape<'a>(class: Class, body: &Body<'a>) -> Result<Option<Shape<'a>>, &'static str> {
    if !class.is_surface() {
        return Ok(None);
    }
    let content = body.content().ok_or("its content is no array")?;
    let is_empty = content.is_empty_array();
    let framed = |tag| {
        let kind = body.source_kind().ok_or("its source has no kind")?;
        Ok::<_, &'static str>(Shape::Framed { tag, kind, content })
    };
    Ok(Some(match (body.message(), class) {
        (Some(_), _) | (None, Class::AssistantMessage) if is_empty => return Ok(None),
        (Some(message), _) => {
            let role = message.get("role").filter(|role| role.kind() == JsonKind::String);
            Shape::Whole { role: role.ok_or("its message has no role")?.raw(), content }
        }
        (None, Class::AssistantMessage) => Shape::Whole { role: "\"assistant\"", content },
        (None, Class::UserMessage) => Shape::Whole { role: "\"user\"", content },
        (None, Class::ToolResult) => {
            let id = body.own_call_id().ok_or("its callId is no string")?;
            let is_error = body.is_error().ok_or("its isError is no boolean")?;
            Shape::ToolResult { id, content, is_error }
        }
        (None, Class::SteeringMessage) => framed("steering")?,
        (None, _) => framed("context")?,
    }))
}

impl<'a> Shape<'a> {
    fn into_parts(self) -> Parts<'a> {
        let user = Cow::Borrowed("\"user\"");
        match self {
            Self::Whole { role, content } => Parts { role: role.into(), content: content.raw().into() },
            Self::ToolResult { id, content, is_error } => {
                Parts { role: user, content: tool_result(id, content, is_error).into() }
            }
            Self::Framed { tag, kind, content } => {
                Parts { role: user, content: framed(tag, kind, content).into() }
            }
        }
    }
}

fn tool_result(id: JsonRef<'_>, content: JsonRef<'_>, is_error: bool) -> String {
    let parts = [
        "[{\"type\":\"tool-result\",\"toolCallId\":",
        id.raw(),
        ",\"content\":",
        content.raw(),
        if is_error { ",\"isError\":true}]" } else { ",\"isError\":false}]" },
    ];
    parts.concat()
}

fn framed(tag: &str, kind: JsonStr<'_>, content: JsonRef<'_>) -> String {
    let kind = literal(kind);
    let open = literal_of(&format!("<{tag} source={kind}>"));
    let close = literal_of(&format!("</{tag}>"));
    let array = content.raw();
    let blocks = array.get(1..array.len().saturating_sub(1)).unwrap_or_default();
    let comma = if content.is_empty_array() { "" } else { "," };
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
    parts.concat()
}

#[cfg(test)]
mod tests;
