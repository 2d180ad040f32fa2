//! The message and the call that an event's data carries, wherever it carries them (V5).
//!
//! Older logs have content, call id and error flag in `data` itself, newer ones in `data.message`. What is not
//! there, or of another type, is simply not there: nothing here fails or guesses.

use super::{JsonKind, JsonRef, JsonStr};

/// The data of an event, seen through the place where its message is. Its members are looked at once.
#[derive(Clone, Copy, Default)]
pub(crate) struct Body<'a> {
    /// The turn that the event names.
    pub(crate) turn: Option<JsonRef<'a>>,
    /// The step that the event names.
    pub(crate) step: Option<JsonRef<'a>>,
    content: Option<JsonRef<'a>>,
    call_id: Option<JsonRef<'a>>,
    is_error: Option<JsonRef<'a>>,
    error: Option<JsonRef<'a>>,
    source: Option<JsonRef<'a>>,
    message: Option<JsonRef<'a>>,
}

impl<'a> Body<'a> {
    pub(crate) fn new(data: JsonRef<'a>) -> Self {
        let mut body = Self::default();
        for (name, value) in data.members() {
            // Of duplicates the last counts.
            let field = match &*name.to_utf8_lossy() {
                "turn" => &mut body.turn,
                "step" => &mut body.step,
                "content" => &mut body.content,
                "callId" => &mut body.call_id,
                "isError" => &mut body.is_error,
                "error" => &mut body.error,
                "source" => &mut body.source,
                "message" => &mut body.message,
                _ => continue,
            };
            *field = Some(value);
        }
        // A plugin's own field of that name does not hide a message that is in its place.
        let content = array(body.content);
        body.message = body.message.filter(|message| {
            message.kind() == JsonKind::Object
                && (array(message.get("content")).is_some() || content.is_none())
        });
        body
    }

    /// The kind of the data's `source`.
    pub(crate) fn source_kind(&self) -> Option<JsonStr<'a>> {
        self.source?.get("kind")?.as_str()
    }

    /// The data's own `callId`, if it is a string.
    pub(crate) fn own_call_id(&self) -> Option<JsonRef<'a>> {
        self.call_id.filter(|id| id.kind() == JsonKind::String)
    }

    /// The object `data.message`, where there is one.
    pub(crate) fn message(&self) -> Option<JsonRef<'a>> {
        self.message
    }

    /// The blocks, if they are an array.
    pub(crate) fn content(&self) -> Option<JsonRef<'a>> {
        array(match self.message {
            Some(message) => message.get("content"),
            None => self.content,
        })
    }

    /// The ids of the tool calls that an assistant message asks for, in their order.
    pub(crate) fn calls(&self) -> impl Iterator<Item = JsonStr<'a>> + use<'a> {
        let blocks = self.content().into_iter().flat_map(|content| content.elements());
        blocks.filter(|block| is_block(*block, "tool-call")).filter_map(|block| block.get("id")?.as_str())
    }

    /// The id of the call that a tool/call or tool/result is about.
    pub(crate) fn call_id(&self) -> Option<JsonStr<'a>> {
        match self.result_block() {
            Some(block) => block.get("toolCallId")?.as_str(),
            None => self.call_id?.as_str(),
        }
    }

    /// Whether a tool/result says that it is an error.
    pub(crate) fn is_error(&self) -> Option<bool> {
        match self.result_block() {
            Some(block) => block.get("isError")?.as_bool(),
            None => self.is_error?.as_bool(),
        }
    }

    /// The `error.code` of a tool/result.
    pub(crate) fn error_code(&self) -> Option<JsonStr<'a>> {
        self.error?.get("code")?.as_str()
    }

    fn result_block(&self) -> Option<JsonRef<'a>> {
        let content = array(self.message?.get("content"))?;
        content.elements().find(|block| is_block(*block, "tool-result"))
    }
}

fn array(value: Option<JsonRef<'_>>) -> Option<JsonRef<'_>> {
    value.filter(|value| value.kind() == JsonKind::Array)
}

fn is_block(block: JsonRef<'_>, name: &str) -> bool {
    block.get("type").and_then(|kind| kind.as_str()).is_some_and(|kind| kind == *name)
}
