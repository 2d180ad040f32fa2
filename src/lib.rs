//! sessionlog: an embedded storage engine for the sessions of AI agents.

pub mod disk;
mod error;
pub mod event;
mod format;
pub mod interop;
mod log;
pub mod rt;
mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use event::{Event, EventType, JsonText, NewEvent, SurfaceIntent, SurfaceOp, Time};

pub use error::{Error, ErrorKind, Result};
