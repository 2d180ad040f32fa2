//! What the fuzz targets run: arbitrary bytes into each decoder, the scanner, and whole stores (G7).
//!
//! Always: the same input does the same; the first bytes say how the rest is used, so that every input means something;
//! a body panics only where a promise is broken. On wish it makes the checksums of its input right first, since no
//! fuzzer guesses them and everything of interest lies behind them. Never: a clock; threads only
//! one at a time, as a seed says; files only where SQLite needs them.

mod crowd;
mod directory;
mod forge;
mod frame;
mod grammar;
mod index;
mod input;
mod json;
mod jsonl;
mod packed;
mod record;
mod round_trip;
mod seeds;
mod segment;
mod simulation;
mod small_store;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod surface;
mod transcript;

pub use crowd::Crowd;
pub use directory::directory_open;
pub use frame::frame_decode;
pub use index::index_open;
pub use json::json_value;
pub use jsonl::jsonl_import;
pub use packed::packed_chunk;
pub use record::record_decode;
pub use round_trip::round_trip;
pub use seeds::{Seed, seeds};
pub use segment::segment_scan;
pub use simulation::simulation;
#[cfg(feature = "sqlite")]
pub use sqlite::sqlite_import;
pub use store::{store_damaged, store_open};
pub use surface::surface_fold;
pub use transcript::transcript;

/// A body, as the fuzz targets and the replay of kept inputs call it.
pub type Body = fn(&[u8]);

/// Every target by the name of its fuzz target and of its folder of kept inputs.
pub const TARGETS: &[(&str, Body)] = &[
    ("directory_open", directory_open),
    ("frame_decode", frame_decode),
    ("index_open", index_open),
    ("json_value", json_value),
    ("jsonl_import", jsonl_import),
    ("packed_chunk", packed_chunk),
    ("record_decode", record_decode),
    ("round_trip", round_trip),
    ("segment_scan", segment_scan),
    ("simulation", simulation),
    #[cfg(feature = "sqlite")]
    ("sqlite_import", sqlite_import),
    ("store_open", store_open),
    ("surface_fold", surface_fold),
    ("transcript", transcript),
];

/// What the longest list of sources takes, a million of eight bytes: a few bytes spell it, as a run.
const LONGEST_LIST: usize = 8 << 20;

/// How many bytes a body may have allocated at a time for an input of `len` bytes: 16 times the input, 16 MiB, and four of
/// the longest lists of sources, whose length the format bounds and not the input.
#[must_use]
pub const fn allocation_bound(len: usize) -> usize {
    len.saturating_mul(16).saturating_add((16 << 20) + 4 * LONGEST_LIST)
}
