//! Chunks: an answer as it streams in, `assistant/chunk`.

use super::{Block, Extra, Usage};

record! {
    /// `assistant/chunk`: a piece of the model's answer.
    AssistantChunk {
        /// The turn's number.
        turn: u64 = "turn",
        /// The step's number.
        step: u64 = "step",
        /// The piece.
        chunk: Chunk = "chunk",
    }
    new(turn: u64, step: u64, chunk: Chunk)
}

open_set! {
    /// A piece of a streamed answer.
    Chunk by "type" {
        /// A block begins.
        BlockStart(BlockStart) = "block-start",
        /// More text.
        TextDelta(TextDelta) = "text-delta",
        /// More reasoning.
        ReasoningDelta(ReasoningDelta) = "reasoning-delta",
        /// More of a call's arguments.
        ToolCallDelta(ToolCallDelta) = "tool-call-delta",
        /// A block is complete.
        BlockEnd(BlockEnd) = "block-end",
        /// What the answer cost.
        Usage(UsageChunk) = "usage",
        /// The answer is complete.
        Finish(Finish) = "finish",
    }
}

record! {
    /// A block begins.
    BlockStart {
        /// The block's place in the message, from 0.
        index: u64 = "index",
        /// The type it will have.
        block_type: String = "blockType",
    }
    new(index: u64, block_type: impl Into<String>)
}

record! {
    /// More text.
    TextDelta {
        /// The block's place in the message.
        index: u64 = "index",
        /// The text to add.
        text: String = "text",
    }
    new(index: u64, text: impl Into<String>)
}

record! {
    /// More reasoning.
    ReasoningDelta {
        /// The block's place in the message.
        index: u64 = "index",
        /// The text to add.
        text: String = "text",
    }
    new(index: u64, text: impl Into<String>)
}

record! {
    /// More of a call's arguments.
    ToolCallDelta {
        /// The block's place in the message.
        index: u64 = "index",
        /// The call's id.
        id: String = "id",
        /// The tool's name.
        name: Option<String> = "name",
        /// The text to add.
        arguments_delta: String = "argumentsDelta",
    }
    new(index: u64, id: impl Into<String>, arguments_delta: impl Into<String>) without(name)
}

record! {
    /// A block is complete.
    BlockEnd {
        /// The block's place in the message.
        index: u64 = "index",
        /// The whole block.
        block: Block = "block",
    }
    new(index: u64, block: Block)
}

record! {
    /// What the answer cost.
    UsageChunk {
        /// In tokens.
        usage: Usage = "usage",
    }
    new(usage: Usage)
}

record! {
    /// The answer is complete.
    Finish {
        /// Why it ends here.
        reason: FinishReason = "reason",
    }
    new(reason: FinishReason)
}

open_set! {
    /// Why an answer ends.
    FinishReason by "kind" {
        /// The model is done.
        Stop(Extra) = "stop",
        /// The model waits for its calls.
        ToolCalls(Extra) = "tool-calls",
    }
}

impl Chunk {
    /// More text of the block at `index`.
    #[must_use]
    pub fn text(index: u64, text: impl Into<String>) -> Self {
        Self::TextDelta(TextDelta::new(index, text))
    }

    /// More reasoning of the block at `index`.
    #[must_use]
    pub fn reasoning(index: u64, text: impl Into<String>) -> Self {
        Self::ReasoningDelta(ReasoningDelta::new(index, text))
    }
}

impl FinishReason {
    /// The model is done.
    #[must_use]
    pub fn stop() -> Self {
        Self::Stop(Extra::new())
    }

    /// The model waits for its calls.
    #[must_use]
    pub fn tool_calls() -> Self {
        Self::ToolCalls(Extra::new())
    }
}
