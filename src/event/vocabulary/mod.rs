//! The vocabulary in Rust types: the eleven event types, and the open sets that they are made of (V).
//!
//! Always holds: reading and writing a value keeps every member it was given (V1): those that a type does
//! not know are in its `extra`, and a kind that a set does not know is its `Other`, text and all. Of
//! duplicate members the last counts, and 26.0 reads as 26. Nothing here is needed to store or to derive:
//! the engine itself never turns payloads into these types.
//!
//! They are read through serde_json (and so inside a plugin's own types), not inside `#[serde(flatten)]` or
//! an internally tagged enum, where serde has no text left to keep.

#[macro_use]
mod macros;

mod block;
mod chunk;
mod extra;
mod field;
mod message;
mod open_set;
mod source;
mod tool;
mod turn;

pub use block::{Block, Image, Reasoning, Text, ToolCallBlock, ToolResultBlock};
pub use chunk::{
    AssistantChunk, BlockEnd, BlockStart, Chunk, Finish, FinishReason, ReasoningDelta, TextDelta,
    ToolCallDelta, UsageChunk,
};
pub use extra::Extra;
pub use message::{AssistantMessage, ContextMessage, SteeringMessage, Usage, UserMessage};
pub(crate) use open_set::same as same_name;
pub use open_set::{Kind, OpenSet};
pub use source::{AgentSource, PluginSource, Source};
pub use tool::{ToolCall, ToolError, ToolResult};
pub use turn::{
    Aborted, FromSource, StepEnd, StepStart, Trigger, TurnEnd, TurnEndReason, TurnError, TurnStart,
};

#[cfg(test)]
mod tests;
