//! The face: stores, sessions, their lifecycle, listeners, options and reports.
//!
//! Always: an append is checked and encoded outside every lock, ordered under its session's lock, and handed to the
//! log, which makes no system call for it (A1, C1). A refused call changes nothing (A3). Locks are taken in this
//! order: session, then whatever the log takes; the table of live sessions is never held together with either.
//! Never: a lock is held at a disk call, at a wait, or while a listener runs (T3).

mod core;
mod counters;
mod create;
mod delete;
mod delivery;
mod draft;
mod engine;
mod fork;
mod import;
mod inside;
mod known;
mod lifecycle;
mod listeners;
mod live;
mod memory;
mod messages;
mod options;
mod pending;
mod place;
mod provenance;
mod reader;
mod records;
mod repair_at;
mod resume;
mod rules;
mod session;
mod stage;
mod stat;
#[allow(clippy::module_inception)]
mod store;
mod subscription;
mod ticket;

pub use counters::Counters;
pub use create::{CreateOptions, MAX_HEADER_BYTES};
pub use fork::{ForkOptions, MAX_FORK_DEPTH};
pub use import::{Import, Published};
pub use lifecycle::{DetachGuard, Prepared};
pub use listeners::{Flushing, ListenerId, Origin};
pub use memory::MemorySession;
pub use options::{Invariants, MAX_SEGMENT_BYTES, MIN_SEGMENT_BYTES, StoreOptions};
pub use place::Events;
pub use provenance::Provenance;
pub use reader::SessionReader;
pub use resume::{ResumeOptions, Resumed};
pub use session::{Appended, Session};
pub use stat::{Stat, Stored};
pub use store::SessionStore;
pub use subscription::{MAX_SUBSCRIPTION, Notice, Subscription};
pub use ticket::FlushTicket;

#[cfg(test)]
mod tests;
