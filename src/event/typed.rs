//! The typed door (A2, V4): an event's type and its data as one Rust type.
//!
//! Always holds: what carries a surface marker and what must not are two traits, so that both mistakes of A2
//! are compile errors: a message cannot be appended without a marker, and nothing else can get one.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::vocabulary::{
    AssistantChunk, AssistantMessage, ContextMessage, SteeringMessage, StepEnd, StepStart, ToolCall,
    ToolResult, TurnEnd, TurnStart, UserMessage,
};
use super::{Event, JsonText, MAX_TYPE_BYTES, NewEvent, SurfaceIntent};
use crate::error::{Error, ErrorKind, Result};

/// An event that makes no message: six of ours, and those that plugins declare.
///
/// ```
/// # fn main() -> sessionlog::Result<()> {
/// use serde::{Deserialize, Serialize};
/// use sessionlog::event::{NewEvent, PlainEvent};
///
/// #[derive(Serialize, Deserialize)]
/// struct Approval { call: String, granted: bool }
/// impl PlainEvent for Approval { const TYPE: &'static str = "approval/decided"; }
///
/// let new = NewEvent::plain(&Approval { call: "c1".into(), granted: true })?;
/// assert_eq!(new.data().as_str(), r#"{"call":"c1","granted":true}"#);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event without a surface marker",
    note = "a message is appended with a surface intent (`append_message`); a plugin's own event implements `PlainEvent`"
)]
pub trait PlainEvent: Serialize + DeserializeOwned {
    /// The event type. One of the five that make messages, an empty name, or one beyond
    /// [`MAX_TYPE_BYTES`] is a compile error where the event is used.
    const TYPE: &'static str;
}

/// An event that makes a message, and so is appended with a [`SurfaceIntent`]: five types, and no others.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not make a message, so it takes no surface intent",
    note = "append it with `append_event`; the five types that make messages are fixed"
)]
pub trait SurfaceEvent: Serialize + DeserializeOwned + sealed::Message {
    /// The event type.
    const TYPE: &'static str;
}

/// An event that [`Event::read`] can read: every [`PlainEvent`] and every [`SurfaceEvent`].
pub trait TypedEvent: Serialize + DeserializeOwned + sealed::Typed {
    /// The event type.
    const NAME: &'static str;
}

mod sealed {
    #[allow(unreachable_pub)] // public in name only, to be a bound of a public trait
    pub trait Message {}
    #[allow(unreachable_pub)] // as above
    pub trait Typed {}
}

impl<T: PlainEvent> sealed::Typed for T {}
impl<T: PlainEvent> TypedEvent for T {
    const NAME: &'static str = checked_name(T::TYPE);
}

macro_rules! plain {
    ($($event:ident = $name:literal),*) => {$(
        impl PlainEvent for $event {
            const TYPE: &'static str = $name;
        }
    )*};
}

macro_rules! surface {
    ($($event:ident = $name:literal),*) => {
        $(
            impl sealed::Message for $event {}
            impl sealed::Typed for $event {}
            impl SurfaceEvent for $event {
                const TYPE: &'static str = $name;
            }
            impl TypedEvent for $event {
                const NAME: &'static str = $name;
            }
        )*
        const SURFACE_NAMES: &[&str] = &[$($name),*];
    };
}

plain!(
    TurnStart = "turn/start",
    TurnEnd = "turn/end",
    StepStart = "step/start",
    StepEnd = "step/end",
    AssistantChunk = "assistant/chunk",
    ToolCall = "tool/call"
);

surface!(
    UserMessage = "user/message",
    AssistantMessage = "assistant/message",
    ToolResult = "tool/result",
    ContextMessage = "context/message",
    SteeringMessage = "steering/message"
);

/// The name of a plain event, checked when the program that uses it is compiled.
const fn checked_name(name: &'static str) -> &'static str {
    assert!(!name.is_empty(), "an event type must have a name");
    assert!(name.len() <= MAX_TYPE_BYTES, "an event type's name is beyond MAX_TYPE_BYTES");
    let mut rest = SURFACE_NAMES;
    while let [first, tail @ ..] = rest {
        assert!(
            !super::vocabulary::same_name(name, first),
            "this event type makes messages, so it cannot be a PlainEvent (A2)"
        );
        rest = tail;
    }
    name
}

impl NewEvent {
    /// An event without a marker, typed.
    ///
    /// # Errors
    /// Those of [`JsonText::from_serialize`].
    pub fn plain<E: PlainEvent>(event: &E) -> Result<Self> {
        Ok(Self::new(const { checked_name(E::TYPE) }, JsonText::from_serialize(event)?))
    }

    /// A message, typed, with how it takes its place.
    ///
    /// # Errors
    /// Those of [`JsonText::from_serialize`].
    pub fn message<E: SurfaceEvent>(event: &E, intent: SurfaceIntent) -> Result<Self> {
        Ok(Self::new(E::TYPE, JsonText::from_serialize(event)?).with_surface_op(intent))
    }
}

impl Event {
    /// Whether the event is of the type that `T` reads.
    #[must_use]
    pub fn is<T: TypedEvent>(&self) -> bool {
        self.event_type() == T::NAME
    }

    /// The data as the Rust type of the event's type.
    ///
    /// # Errors
    /// [`InvalidValue`](ErrorKind::InvalidValue) when the event is of another type, or its data of another
    /// shape (the dynamic door does not check it).
    pub fn read<T: TypedEvent>(&self) -> Result<T> {
        if !self.is::<T>() {
            let text = format!("event {} is a {}, not a {}", self.seq(), self.event_type(), T::NAME);
            return Err(Error::new(ErrorKind::InvalidValue, text));
        }
        serde_json::from_str(self.data()).map_err(|e| {
            Error::new(ErrorKind::InvalidValue, format!("read event {} as {}: {e}", self.seq(), T::NAME))
        })
    }
}
