//! Messages: `user/message`, `context/message`, `steering/message`, `assistant/message`.

use super::{Block, Source};

record! {
    /// `user/message`: what the user, or somebody in the user's place, says.
    UserMessage {
        /// The content.
        content: Vec<Block> = "content",
        /// Who says it.
        source: Source = "source",
    }
    new(content: Vec<Block>, source: Source)
}

record! {
    /// `context/message`: something that the model should know.
    ContextMessage {
        /// The content.
        content: Vec<Block> = "content",
        /// Who says it.
        source: Source = "source",
    }
    new(content: Vec<Block>, source: Source)
}

record! {
    /// `steering/message`: something said while a turn is running.
    SteeringMessage {
        /// The turn's number.
        turn: u64 = "turn",
        /// The content.
        content: Vec<Block> = "content",
        /// Who says it.
        source: Source = "source",
    }
    new(turn: u64, content: Vec<Block>, source: Source)
}

record! {
    /// `assistant/message`: the model's answer of one step.
    AssistantMessage {
        /// The turn's number.
        turn: u64 = "turn",
        /// The step's number.
        step: u64 = "step",
        /// The content.
        content: Vec<Block> = "content",
        /// What the answer cost.
        usage: Option<Usage> = "usage",
    }
    new(turn: u64, step: u64, content: Vec<Block>) without(usage)
}

record! {
    /// What an answer cost, in tokens.
    Usage {
        /// Tokens read.
        input_tokens: u64 = "inputTokens",
        /// Tokens written.
        output_tokens: u64 = "outputTokens",
        /// Tokens read from the provider's cache.
        cache_read_tokens: Option<u64> = "cacheReadTokens",
        /// Tokens written to the provider's cache.
        cache_write_tokens: Option<u64> = "cacheWriteTokens",
        /// Tokens of reasoning.
        reasoning_tokens: Option<u64> = "reasoningTokens",
    }
    new(input_tokens: u64, output_tokens: u64)
        without(cache_read_tokens, cache_write_tokens, reasoning_tokens)
}
