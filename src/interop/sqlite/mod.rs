//! SQLite databases of schema 4: any number of sessions in one file (rule X3).
//!
//! What always holds: events → database → events gives the same bytes, and so does database → events → database, row by
//! row. Somebody's database is only read: neither the file nor its folder changes. What is never done: reading another
//! schema version, trusting the database's own types, views or triggers, writing into a file that is there.
//!
//! # The mapping
//!
//! | column | holds | from a column to JSON |
//! |---|---|---|
//! | `sessions.id` | the header's `id` | a string |
//! | `sessions.version` | 0 | the number; another is refused |
//! | `sessions.created_at` | `createdAt` | the number |
//! | `sessions.cwd`, `parent_session` | `cwd`, `parentSession` | a string; NULL: no field |
//! | `sessions.seed_length` | `seedLength` | the number; NULL: no field |
//! | `events.session_id`, `seq` | the session and the event's place in it, from 0 | `seq` |
//! | `events.type`, `time` | `type`, `time` | a string, a number |
//! | `events.data` | the JSON text of `data`, byte for byte | as it is |
//! | `events.source_event_seqs`, `surface_op` | the JSON text of `sourceEventSeqs`, `surfaceOp` | as it is; NULL: no field |
//!
//! Line breaks between the tokens of a JSON text become spaces (V3).
//!
//! # What schema 4 has no place for
//!
//! Unknown fields, times that are no plain whole number of at most 53 bits, NULs in ids and types, odd header fields, and
//! spellings that a row cannot show ([`Misfit`]). The columns then hold the nearest value: a rounded time, U+FFFD for a
//! NUL or a lone surrogate, NULL for a header field of another type. The exact line is kept beside the rows, in a table
//! that other readers of schema 4 do not look at; it is made when the first such line comes:
//!
//! ```sql
//! CREATE TABLE sessionlog_lines (
//!   session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
//!   seq        INTEGER NOT NULL, -- the event's; -1: the header
//!   line       TEXT NOT NULL,    -- the line of the JSONL file, without LF
//!   PRIMARY KEY (session_id, seq)
//! ) STRICT;
//! ```
//!
//! A line is read only where it agrees with its row: each column is what the line would put there. Otherwise another
//! program has changed the row, which then counts, and the line is reported ([`IgnoredLines`]). With
//! [`strict`](SqliteOptions::strict) a session that needs such a line is refused instead.

mod cell;
mod connection;
mod database;
mod event_columns;
mod fault;
mod header_columns;
mod ids;
mod misfit;
mod private_copy;
mod put;
mod put_session;
mod row;
mod rows;
mod schema;
mod session;
mod source_file;
mod target;
mod writer;

pub use database::Database;
pub use ids::Ids;
pub use misfit::{Kept, Misfit};
pub use put::{Outcome, Put};
pub use session::{IgnoredLines, SqliteSession};
pub use source_file::is_database;
pub use writer::{SqliteOptions, Writer, WrittenDatabase};
