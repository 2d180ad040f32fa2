//! The message and the call that an event's data carries, wherever it carries them (V5).
//!
//! Older logs have content, call id and error flag in `data` itself, newer ones in `data.message`. What is not
//! there, or of another type, is simply not there: nothing here fails or guesses.

use super::{JsonKind, JsonRef, JsonStr};

/// The data of an event, seen through the place where its message is.
#[derive(Clone, Copy)]
pub(crate) struct Body<'a> {
    data: JsonRef<'a>,
    message: Option<JsonRef<'a>>,
}

impl<'a> Body<'a> {
    pub(crate) fn new(data: JsonRef<'a>) -> Self {
        // A plugin's own field of that name does not hide a message that is in its place.
        let carries = |message: &JsonRef<'_>| {
            message.kind() == JsonKind::Object
                && (array(message.get("content")).is_some() || array(data.get("content")).is_none())
        };
        Self { data, message: data.get("message").filter(carries) }
    }

    /// The object `data.message`, where there is one.
    pub(crate) fn message(&self) -> Option<JsonRef<'a>> {
        self.message
    }

    /// A field of the data itself.
    pub(crate) fn field(&self, name: &str) -> Option<JsonRef<'a>> {
        self.data.get(name)
    }

    /// The blocks, if they are an array.
    pub(crate) fn content(&self) -> Option<JsonRef<'a>> {
        array(self.message.unwrap_or(self.data).get("content"))
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
            None => self.data.get("callId")?.as_str(),
        }
    }

    /// Whether a tool/result says that it is an error.
    pub(crate) fn is_error(&self) -> Option<bool> {
        self.result_block().unwrap_or(self.data).get("isError")?.as_bool()
    }

    /// The `error.code` of a tool/result.
    pub(crate) fn error_code(&self) -> Option<JsonStr<'a>> {
        self.data.get("error")?.get("code")?.as_str()
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
