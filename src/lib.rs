//! sessionlog: an embedded storage engine for the sessions of AI agents.
//!
//! A *session* is one agent's whole history: a [`Header`] and an append-only list of [`Event`]s. A *store* is a
//! directory that holds any number of sessions in one shared, checksummed, append-only log, so that the flushes of all
//! sessions that wait become one write and one `fdatasync`.
//!
//! # Map
//!
//! - [`SessionStore`] is the store: [`create`](SessionStore::create), [`resume`](SessionStore::resume),
//!   [`fork`](SessionStore::fork), [`delete`](SessionStore::delete), [`stored`](SessionStore::stored),
//!   [`verify`](SessionStore::verify), [`backup`](SessionStore::backup). [`StoreOptions`] opens it, for writing or for
//!   reading beside a live writer.
//! - [`Session`] appends and reads: typed ([`append_event`](Session::append_event),
//!   [`append_message`](Session::append_message)) or as type and raw JSON ([`append`](Session::append)),
//!   [`flush`](Session::flush), [`derive_messages`](Session::derive_messages), [`surface`](Session::surface),
//!   [`subscribe`](Session::subscribe). [`SessionReader`] only reads; [`MemorySession`] has no store at all.
//! - [`event`] is the domain without any I/O: the vocabulary, lossless JSON, the surface, messages, repair and the
//!   invariants, for use without a store too.
//! - [`interop`] moves sessions in and out: JSONL files and SQLite databases.
//! - [`disk`] and [`rt`] are the seams to the operating system, to be replaced in tests.
//!
//! # Example
//!
//! ```
//! use sessionlog::{CreateOptions, NewEvent, SessionStore, SurfaceOp};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("store");
//! let store = SessionStore::open_writer(&path)?;
//! let session = store.create(CreateOptions::new().cwd("/srv/project"))?;
//! let data = r#"{"content":[{"type":"text","text":"Hello"}],"source":{"kind":"user"}}"#;
//! let appended = session.append(NewEvent::raw("user/message", data)?.with_surface_op(SurfaceOp::Append))?;
//! session.flush()?; // what was appended is on the device
//!
//! assert_eq!(appended.seq, 0);
//! assert_eq!(session.event(0)?.data().as_str(), data); // byte for byte
//! assert_eq!(
//!     session.derive_messages()?[0].to_line(),
//!     r#"{"role":"user","content":[{"type":"text","text":"Hello"}]}"#
//! );
//! store.close()?;
//! # Ok(()) }
//! ```
//!
//! # What holds
//!
//! An append is checked whole before anything changes, is visible at once, and never waits for I/O. It is durable when a
//! flush that began after it has returned ([`Durability`]); without one it reaches the page cache within milliseconds.
//! Payloads are JSON text and come back byte for byte. Damage is an error with its place ([`ErrorKind::Corrupt`]), never
//! wrong or missing data. After a failed write or sync the writer is poisoned and the store has to be opened again.
//! The library reports by values and by `tracing` events; it never prints, and no input makes it panic.
//!
//! # Limits
//!
//! Id and type [1,024 bytes](event::MAX_ID_BYTES), payload [64 MiB](event::MAX_PAYLOAD_BYTES), batch
//! [128 MiB](event::MAX_BATCH_BYTES), header [1 MiB](MAX_HEADER_BYTES), JSON nesting [65,536](event::MAX_DEPTH), typed data
//! [512](event::MAX_TYPED_DEPTH). One writer per store over all processes. Linux is the platform that is tested.

pub mod disk;
mod error;
pub mod event;
mod format;
pub mod interop;
mod log;
#[cfg(feature = "mutation")]
pub mod mutation;
#[cfg(not(feature = "mutation"))]
#[allow(unreachable_pub)] // It is public with the feature.
mod mutation;
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
    MIN_SEGMENT_BYTES, MemorySession, Notice, Origin, Prepared, Provenance, Published, ResumeOptions,
    Resumed, Session, SessionReader, SessionStore, Stat, StoreOptions, Stored, Subscription,
};

pub use error::{Error, ErrorKind, Result};

// README's example is compiled and run like those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
