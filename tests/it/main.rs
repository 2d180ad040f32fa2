//! The integration tests: one binary, a module a subject.

// A test panics to fail and prints what it ran; the library may do neither.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod cli_contract;
mod cli_damage;
mod cli_files;
mod cli_interchange;
#[cfg(feature = "sqlite")]
mod cli_sqlite;
mod conformance_invariants;
mod conformance_json;
mod conformance_repair;
mod conformance_surface;
mod conformance_surface_invalid;
mod counting_allocator;
mod crash;
mod event_lines;
mod folded;
mod fuzz_replay;
mod import_many;
// Only debug builds know where no other thread may come in.
#[cfg(debug_assertions)]
mod interleavings;
mod json_text;
mod jsonl;
#[cfg(debug_assertions)]
mod mutation;
mod real_disk;
mod record;
mod simulation;
#[cfg(feature = "sqlite")]
mod sqlite_files;
#[cfg(feature = "sqlite")]
mod sqlite_hostile;
#[cfg(feature = "sqlite")]
mod sqlite_logs;
#[cfg(feature = "sqlite")]
mod sqlite_round;
#[cfg(feature = "sqlite")]
mod sqlite_spec;
#[cfg(feature = "sqlite")]
mod sqlite_vectors;
#[cfg(feature = "sqlite")]
mod sqlite_write;
mod store_append;
mod store_continue;
mod store_continue_crash;
mod store_damage;
mod store_edges;
mod store_fixture;
mod store_fork;
mod store_import;
mod store_lifecycle;
mod store_listeners;
mod store_resume;
mod store_stat_delete;
mod store_threads;
mod tidy;
mod tool;
mod vectors;

/// G7 bounds what an input may make the library allocate.
#[global_allocator]
static ALLOCATOR: counting_allocator::Counting = counting_allocator::Counting;
