//! The stores, each behind the same face: events are appended, and each is durable before the next.

mod fjall;
mod jsonl;
mod okaywal;
mod raft_engine;
mod redb;
mod sessionlog;
mod sqlite;

use std::error::Error;
use std::path::Path;

use crate::reading::Reading;

/// What can go wrong in any store.
pub type Fault = Box<dyn Error + Send + Sync>;

/// A store that is being written.
pub trait Writer {
    /// Appends the line of event `seq` of a session; it is durable when this returns.
    fn append(&mut self, session: u64, seq: u64, line: &str) -> Result<(), Fault>;
}

/// A store.
pub struct Store {
    /// Its name.
    pub name: &'static str,
    /// Opens it in an empty directory.
    pub create: fn(&Path) -> Result<Box<dyn Writer>, Fault>,
    /// Reads all of it after a crash.
    pub read: fn(&Path) -> Reading,
}

/// All of them.
pub const STORES: [Store; 7] = [
    Store { name: "sessionlog", create: sessionlog::create, read: sessionlog::read },
    Store { name: "SQLite WAL FULL", create: sqlite::create, read: sqlite::read },
    Store { name: "raft-engine", create: raft_engine::create, read: raft_engine::read },
    Store { name: "okaywal", create: okaywal::create, read: okaywal::read },
    Store { name: "fjall", create: fjall::create, read: fjall::read },
    Store { name: "redb", create: redb::create, read: redb::read },
    Store { name: "JSONL file", create: jsonl::create, read: jsonl::read },
];
