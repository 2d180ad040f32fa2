//! What must not compile (A2, V4), each beside the nearest program that does: the two differ in the line that
//! is marked, so that the second fails for that line and for nothing else.
//!
//! These are doc tests, not compared texts, because the wording of compilers changes.

/// A message needs a marker (A2).
///
/// ```
/// use sessionlog::event::{NewEvent, Source, SurfaceOp, UserMessage};
/// let message = UserMessage::new(vec![], Source::user());
/// NewEvent::message(&message, SurfaceOp::Append).unwrap(); // differs
/// ```
///
/// ```compile_fail,E0277
/// use sessionlog::event::{NewEvent, Source, SurfaceOp, UserMessage};
/// let message = UserMessage::new(vec![], Source::user());
/// NewEvent::plain(&message).unwrap(); // differs
/// ```
pub struct MessageWithoutMarker;

/// No other type takes a marker (A2).
///
/// ```
/// use sessionlog::event::{NewEvent, StepStart, SurfaceOp};
/// NewEvent::plain(&StepStart::new(1, 1)).unwrap(); // differs
/// ```
///
/// ```compile_fail,E0277
/// use sessionlog::event::{NewEvent, StepStart, SurfaceOp};
/// NewEvent::message(&StepStart::new(1, 1), SurfaceOp::Append).unwrap(); // differs
/// ```
pub struct MarkerOnAnotherType;

/// A plugin's event is never a message: not by name, appended or read (A2, V4).
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # use sessionlog::event::{Event, NewEvent, PlainEvent};
/// # #[derive(Serialize, Deserialize)] struct Mine {}
/// impl PlainEvent for Mine { const TYPE: &'static str = "mine/message"; } // differs
/// NewEvent::plain(&Mine {}).unwrap();
/// let event = Event::parse_line(r#"{"type":"mine/message","seq":0,"time":0,"data":{}}"#).unwrap();
/// event.read::<Mine>().unwrap();
/// ```
///
/// ```compile_fail,E0080
/// # use serde::{Deserialize, Serialize};
/// # use sessionlog::event::{Event, NewEvent, PlainEvent};
/// # #[derive(Serialize, Deserialize)] struct Mine {}
/// impl PlainEvent for Mine { const TYPE: &'static str = "user/message"; } // differs
/// NewEvent::plain(&Mine {}).unwrap();
/// ```
///
/// ```compile_fail,E0080
/// # use serde::{Deserialize, Serialize};
/// # use sessionlog::event::{Event, NewEvent, PlainEvent};
/// # #[derive(Serialize, Deserialize)] struct Mine {}
/// impl PlainEvent for Mine { const TYPE: &'static str = "tool/result"; } // differs
/// let event = Event::parse_line(r#"{"type":"mine/message","seq":0,"time":0,"data":{}}"#).unwrap();
/// event.read::<Mine>().unwrap();
/// ```
pub struct PluginTakesAMessageType;

/// Nor by trait: the five are fixed (V4).
///
/// ```compile_fail,E0277
/// # use serde::{Deserialize, Serialize};
/// # use sessionlog::event::{PlainEvent, SurfaceEvent};
/// # #[derive(Serialize, Deserialize)] struct Mine {}
/// impl SurfaceEvent for Mine { const TYPE: &'static str = "mine/message"; } // differs
/// ```
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # use sessionlog::event::{PlainEvent, SurfaceEvent};
/// # #[derive(Serialize, Deserialize)] struct Mine {}
/// impl PlainEvent for Mine { const TYPE: &'static str = "mine/message"; } // differs
/// ```
pub struct PluginMakesAMessage;

/// An event type has a name within its limit.
///
/// ```compile_fail,E0080
/// # use serde::{Deserialize, Serialize};
/// # use sessionlog::event::{NewEvent, PlainEvent};
/// # #[derive(Serialize, Deserialize)] struct Mine {}
/// impl PlainEvent for Mine { const TYPE: &'static str = ""; }
/// NewEvent::plain(&Mine {}).unwrap();
/// ```
pub struct NamelessType;

/// A plugin's kind goes into the set it was declared for, under a name that is not taken (V4).
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # use sessionlog::event::{Kind, OpenSet, Source, Trigger};
/// # #[derive(Serialize, Deserialize)] struct Mine {}
/// impl Kind<Trigger> for Mine { const NAME: &'static str = "mine"; } // differs
/// let trigger = Trigger::declare(&Mine {}).unwrap();
/// trigger.read::<Mine>().unwrap().unwrap();
/// ```
///
/// ```compile_fail,E0277
/// # use serde::{Deserialize, Serialize};
/// # use sessionlog::event::{Kind, OpenSet, Source, Trigger};
/// # #[derive(Serialize, Deserialize)] struct Mine {}
/// impl Kind<Source> for Mine { const NAME: &'static str = "mine"; } // differs
/// let trigger = Trigger::declare(&Mine {}).unwrap();
/// ```
///
/// ```compile_fail,E0080
/// # use serde::{Deserialize, Serialize};
/// # use sessionlog::event::{Kind, OpenSet, Source, Trigger};
/// # #[derive(Serialize, Deserialize)] struct Mine {}
/// impl Kind<Trigger> for Mine { const NAME: &'static str = "continuation"; } // differs
/// let trigger = Trigger::declare(&Mine {}).unwrap();
/// ```
pub struct KindOfAnotherSet;

/// Sets stay open: a match needs an arm for kinds that are added later (V4).
///
/// ```
/// # use sessionlog::event::Source;
/// match Source::user() {
///     Source::User(_) | Source::Plugin(_) | Source::Agent(_) | Source::Other(_) => {}
///     _ => {} // differs
/// }
/// ```
///
/// ```compile_fail,E0004
/// # use sessionlog::event::Source;
/// match Source::user() {
///     Source::User(_) | Source::Plugin(_) | Source::Agent(_) | Source::Other(_) => {}
/// }
/// ```
pub struct MatchWithoutTheRest;
