//! What the fuzz targets run: arbitrary bytes into each decoder, the scanner, and whole stores (G7).
//!
//! Always: the same input does the same; the first bytes say how the rest is used, so that every input means something;
//! a body panics only where a promise is broken. On wish it makes the checksums of its input right first, since no
//! fuzzer guesses them and everything of interest lies behind them. Never: files, clocks, threads.

mod crowd;
mod directory;
mod forge;
mod frame;
mod index;
mod input;
mod json;
mod jsonl;
mod record;
mod seeds;
mod segment;
mod small_store;
mod store;

pub use crowd::Crowd;
pub use directory::directory_open;
pub use frame::frame_decode;
pub use index::index_open;
pub use json::json_value;
pub use jsonl::jsonl_import;
pub use record::record_decode;
pub use seeds::{Seed, seeds};
pub use segment::segment_scan;
pub use store::{store_damaged, store_open};

/// A body, as the fuzz targets and the replay of kept inputs call it.
pub type Body = fn(&[u8]);

/// Every target by the name of its fuzz target and of its folder of kept inputs.
pub const TARGETS: [(&str, Body); 8] = [
    ("directory_open", directory_open),
    ("frame_decode", frame_decode),
    ("index_open", index_open),
    ("json_value", json_value),
    ("jsonl_import", jsonl_import),
    ("record_decode", record_decode),
    ("segment_scan", segment_scan),
    ("store_open", store_open),
];

/// How many bytes a body may have allocated at a time for an input of `len` bytes: 16 times the input and 16 MiB.
#[must_use]
pub const fn allocation_bound(len: usize) -> usize {
    len.saturating_mul(16).saturating_add(16 << 20)
}
