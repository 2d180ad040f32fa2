//! The pure domain: what a session's events are and what follows from them.
//!
//! Always holds: nothing here knows files, clocks, randomness or threads; time and ids come in as arguments.
//! The rules are those of the semantics (V vocabulary, J JSON, H header, A append, S surface, M messages,
//! R repair, I invariants). It never parses more of a payload than a question needs.

mod append;
mod body;
mod canonical;
pub(crate) mod chunk_text;
#[cfg(doctest)]
mod compile_fail;
mod derive;
mod envelope;
mod exact;
mod header;
mod invariants;
mod json;
mod kind;
mod literal;
mod new_event;
mod repair;
mod stored;
mod surface;
mod surface_op;
mod time;
mod typed;
mod vocabulary;

pub use append::{MarkerError, SourcesError, check_append};
pub(crate) use append::{Staged, check_event};
pub use derive::{Message, derive_message};
pub use envelope::{Envelope, EnvelopeFault};
pub use header::{Header, HeaderNote};
pub(crate) use invariants::Checkpoint;
pub use invariants::{Checker, Rule, Violation, check};
pub use json::{
    Elements, JsonError, JsonErrorKind, JsonKind, JsonRef, JsonStr, JsonText, MAX_DEPTH, MAX_TYPED_DEPTH,
    Members, is_json_value,
};
pub(crate) use json::{is_kept_as_it_is, is_string_content};
pub use kind::{Class, EventType, is_surface_eligible, is_surface_event};
pub use new_event::NewEvent;
pub use repair::RepairState;
pub(crate) use stored::LineParts;
pub use stored::{Event, ParsedLine};
pub use surface::{ReplaceError, Shadows, Surface, SurfaceError, SurfaceNode};
pub use surface_op::{SurfaceIntent, SurfaceOp};
pub use time::Time;
pub use typed::{PlainEvent, SurfaceEvent, TypedEvent};
pub use vocabulary::{
    Aborted, AgentSource, AssistantChunk, AssistantMessage, Block, BlockEnd, BlockStart, Chunk,
    ContextMessage, Extra, Finish, FinishReason, FromSource, Image, Kind, OpenSet, PluginSource, Reasoning,
    ReasoningDelta, Source, SteeringMessage, StepEnd, StepStart, Text, TextDelta, ToolCall, ToolCallBlock,
    ToolCallDelta, ToolError, ToolResult, ToolResultBlock, Trigger, TurnEnd, TurnEndReason, TurnError,
    TurnStart, Usage, UsageChunk, UserMessage,
};

/// The one version of a session's header (H): another is refused by name.
pub const SESSION_FORMAT_VERSION: u64 = 0;
/// The one version of the SQLite layout (X3): another is refused by name.
pub const SQLITE_SCHEMA_VERSION: u32 = 4;
/// The longest session id, in bytes of UTF-8.
pub const MAX_ID_BYTES: usize = 1024;
/// The longest event type, in bytes of UTF-8.
pub const MAX_TYPE_BYTES: usize = 1024;
/// The largest payload of one event, in bytes: data, sources and unknown fields together.
pub const MAX_PAYLOAD_BYTES: usize = 64 << 20;
/// The largest batch, in encoded bytes.
pub const MAX_BATCH_BYTES: usize = 128 << 20;
