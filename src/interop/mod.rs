//! Ways in and out of the store: other programs' files.
//!
//! What always holds: everything here goes through the public face of the store, so an importer can break no
//! rule that an appending program could not. What is never done: writing closers, adding missing markers,
//! skipping a line without saying so.

mod draft;
mod export;
mod hole;
pub mod import;
pub mod jsonl;
mod offer;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod verdict;

pub use export::{Existing, ExportFate};
pub use hole::{Hole, HoleReason, Place};
pub use verdict::{Ending, Verdict};
