//! Event types: the eleven known names, their classes, and every other name.
//!
//! Always holds: a known name costs no allocation. Which types carry a surface marker is decided here alone.

use std::fmt;
use std::sync::Arc;

use super::Event;

/// What the engine knows of an event's type. The numbers are those of the stored format.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// `assistant/chunk`
    Chunk = 0,
    /// Any type that is not one of the eleven.
    Other = 1,
    /// `turn/start`
    TurnStart = 2,
    /// `turn/end`
    TurnEnd = 3,
    /// `step/start`
    StepStart = 4,
    /// `step/end`
    StepEnd = 5,
    /// `tool/call`
    ToolCall = 6,
    /// `user/message`
    UserMessage = 7,
    /// `assistant/message`
    AssistantMessage = 8,
    /// `tool/result`
    ToolResult = 9,
    /// `context/message`
    ContextMessage = 10,
    /// `steering/message`
    SteeringMessage = 11,
}

impl Class {
    /// Every class, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::Chunk,
        Self::Other,
        Self::TurnStart,
        Self::TurnEnd,
        Self::StepStart,
        Self::StepEnd,
        Self::ToolCall,
        Self::UserMessage,
        Self::AssistantMessage,
        Self::ToolResult,
        Self::ContextMessage,
        Self::SteeringMessage,
    ];

    /// The class of an event type.
    #[must_use]
    pub fn of(event_type: &str) -> Self {
        match event_type {
            "assistant/chunk" => Self::Chunk,
            "turn/start" => Self::TurnStart,
            "turn/end" => Self::TurnEnd,
            "step/start" => Self::StepStart,
            "step/end" => Self::StepEnd,
            "tool/call" => Self::ToolCall,
            "user/message" => Self::UserMessage,
            "assistant/message" => Self::AssistantMessage,
            "tool/result" => Self::ToolResult,
            "context/message" => Self::ContextMessage,
            "steering/message" => Self::SteeringMessage,
            _ => Self::Other,
        }
    }

    /// The type's name; `None` for [`Class::Other`].
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Chunk => Some("assistant/chunk"),
            Self::Other => None,
            Self::TurnStart => Some("turn/start"),
            Self::TurnEnd => Some("turn/end"),
            Self::StepStart => Some("step/start"),
            Self::StepEnd => Some("step/end"),
            Self::ToolCall => Some("tool/call"),
            Self::UserMessage => Some("user/message"),
            Self::AssistantMessage => Some("assistant/message"),
            Self::ToolResult => Some("tool/result"),
            Self::ContextMessage => Some("context/message"),
            Self::SteeringMessage => Some("steering/message"),
        }
    }

    /// Whether events of this class make messages and so carry a surface marker (A2).
    #[must_use]
    pub const fn is_surface(self) -> bool {
        matches!(
            self,
            Self::UserMessage
                | Self::AssistantMessage
                | Self::ToolResult
                | Self::ContextMessage
                | Self::SteeringMessage
        )
    }

    /// The class of a stored number.
    #[must_use]
    pub fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// Whether events of this type make messages, and so must carry a surface marker (A2).
#[must_use]
pub fn is_surface_eligible(event_type: &str) -> bool {
    Class::of(event_type).is_surface()
}

/// Whether the event is a node of the surface: its type makes messages and it carries a marker.
#[must_use]
pub fn is_surface_event(event: &Event) -> bool {
    event.class().is_surface() && event.surface_op().is_some()
}

/// An event's type: one of the eleven, or any other name.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EventType(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Known(Class, &'static str),
    Other(Arc<str>),
}

impl EventType {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Known(_, name) => name,
            Repr::Other(name) => name,
        }
    }

    /// The class.
    #[must_use]
    pub fn class(&self) -> Class {
        match &self.0 {
            Repr::Known(class, _) => *class,
            Repr::Other(_) => Class::Other,
        }
    }

    fn known(name: &str) -> Option<Self> {
        let class = Class::of(name);
        class.name().map(|name| Self(Repr::Known(class, name)))
    }
}

impl From<&str> for EventType {
    fn from(name: &str) -> Self {
        Self::known(name).unwrap_or_else(|| Self(Repr::Other(name.into())))
    }
}

impl From<String> for EventType {
    fn from(name: String) -> Self {
        Self::from(name.as_str())
    }
}

impl From<&String> for EventType {
    fn from(name: &String) -> Self {
        Self::from(name.as_str())
    }
}

impl From<Arc<str>> for EventType {
    fn from(name: Arc<str>) -> Self {
        Self::known(&name).unwrap_or(Self(Repr::Other(name)))
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_numbers_and_classes_agree() {
        for (number, class) in (0_u8..).zip(Class::ALL) {
            assert_eq!(Class::from_u8(number), Some(class));
            assert_eq!(class as u8, number);
            if let Some(name) = class.name() {
                assert_eq!(Class::of(name), class);
                assert_eq!(EventType::from(name).as_str(), name);
                assert_eq!(EventType::from(name).class(), class);
            }
        }
        assert_eq!(Class::from_u8(12), None);
    }

    #[test]
    fn five_types_make_messages() {
        let surface: Vec<_> =
            Class::ALL.into_iter().filter(|c| c.is_surface()).filter_map(Class::name).collect();
        assert_eq!(
            surface,
            ["user/message", "assistant/message", "tool/result", "context/message", "steering/message"]
        );
        assert!(!is_surface_eligible("user/messages"));
        assert_eq!(EventType::from("x/y").class(), Class::Other);
    }
}
