//! Blocks: what the content of a message is made of.

use super::super::JsonText;

open_set! {
    /// A piece of a message.
    Block by "type" {
        /// Text.
        Text(Text) = "text",
        /// The model's reasoning.
        Reasoning(Reasoning) = "reasoning",
        /// A call that the model asks for.
        ToolCall(ToolCallBlock) = "tool-call",
        /// What a call came to.
        ToolResult(ToolResultBlock) = "tool-result",
        /// An image.
        Image(Image) = "image",
    }
}

record! {
    /// Text.
    Text {
        /// The text.
        text: String = "text",
        /// A hint for the provider's cache.
        cache: Option<JsonText> = "cache",
    }
    new(text: impl Into<String>) without(cache)
}

record! {
    /// The model's reasoning.
    Reasoning {
        /// The text.
        text: String = "text",
    }
    new(text: impl Into<String>)
}

record! {
    /// A call that the model asks for.
    ToolCallBlock {
        /// The call's id.
        id: String = "id",
        /// The tool's name.
        name: String = "name",
        /// The arguments as the model wrote them; they need not be valid JSON.
        arguments: String = "arguments",
    }
    new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>)
}

record! {
    /// What a call came to.
    ToolResultBlock {
        /// The call's id.
        tool_call_id: String = "toolCallId",
        /// The content.
        content: Vec<Block> = "content",
        /// Whether the call failed.
        is_error: Option<bool> = "isError",
        /// A hint for the provider's cache.
        cache: Option<JsonText> = "cache",
    }
    new(tool_call_id: impl Into<String>, content: Vec<Block>) without(is_error, cache)
}

record! {
    /// An image.
    Image {
        /// Where it is, or the image itself as a `data:` URL.
        url: String = "url",
        /// Its media type.
        mime_type: Option<String> = "mimeType",
        /// A hint for the provider's cache.
        cache: Option<JsonText> = "cache",
    }
    new(url: impl Into<String>) without(mime_type, cache)
}

impl Block {
    /// Text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text::new(text))
    }

    /// The model's reasoning.
    #[must_use]
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::Reasoning(Reasoning::new(text))
    }

    /// A call that the model asks for.
    #[must_use]
    pub fn tool_call(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self::ToolCall(ToolCallBlock::new(id, name, arguments))
    }

    /// What a call came to.
    #[must_use]
    pub fn tool_result(call_id: impl Into<String>, content: Vec<Block>) -> Self {
        Self::ToolResult(ToolResultBlock::new(call_id, content))
    }

    /// An image.
    #[must_use]
    pub fn image(url: impl Into<String>) -> Self {
        Self::Image(Image::new(url))
    }
}
