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

pub use event::{
    Event, EventType, Header, JsonText, Message, NewEvent, SESSION_FORMAT_VERSION, SQLITE_SCHEMA_VERSION,
    SurfaceIntent, SurfaceNode, SurfaceOp, Time, is_surface_eligible, is_surface_event,
};
pub use log::{BackupReport, Cut, Durability, Finding, LogCounters, Loss, RecoveryReport, VerifySummary};
pub use store::{
    Appended, Counters, CreateOptions, DetachGuard, Events, FlushTicket, Flushing, ForkOptions, Import,
    Invariants, ListenerId, MAX_FORK_DEPTH, MAX_HEADER_BYTES, MAX_SEGMENT_BYTES, MAX_SUBSCRIPTION,
    MIN_SEGMENT_BYTES, MemorySession, Notice, Origin, Prepared, Provenance, ResumeOptions, Resumed, Session,
    SessionReader, SessionStore, Stat, StoreOptions, Stored, Subscription,
};

pub use error::{Error, ErrorKind, Result};
