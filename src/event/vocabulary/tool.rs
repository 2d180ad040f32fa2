//! Tools: `tool/call` and `tool/result`.

use super::Block;

record! {
    /// `tool/call`: a call that the model asked for is started.
    ToolCall {
        /// The turn's number.
        turn: u64 = "turn",
        /// The step's number.
        step: u64 = "step",
        /// The call's id, given by the model.
        call_id: String = "callId",
        /// The tool's name.
        name: String = "name",
        /// The arguments as the model wrote them; they need not be valid JSON.
        arguments: String = "arguments",
    }
    new(
        turn: u64,
        step: u64,
        call_id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>
    )
}

record! {
    /// `tool/result`: what a call came to.
    ToolResult {
        /// The turn's number.
        turn: u64 = "turn",
        /// The step's number.
        step: u64 = "step",
        /// The call's id.
        call_id: String = "callId",
        /// The content.
        content: Vec<Block> = "content",
        /// Whether the call failed.
        is_error: bool = "isError",
        /// How it failed, for programs.
        error: Option<ToolError> = "error",
    }
    new(turn: u64, step: u64, call_id: impl Into<String>, content: Vec<Block>, is_error: bool) without(error)
}

record! {
    /// How a call failed.
    ToolError {
        /// The error's name.
        name: String = "name",
        /// The error's code.
        code: String = "code",
    }
    new(name: impl Into<String>, code: impl Into<String>)
}
