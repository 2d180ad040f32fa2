//! The written format against the code: tables, constants, golden vectors, the worked example.
//!
//! `SESSIONLOG_BLESS=1 cargo test --lib format::tests` writes vectors, manifest and example anew; a change in what it
//! writes is a change of the format.

mod derived;
mod derived_samples;
mod derived_spec;
mod describe;
mod example;
mod samples;
mod spec;
mod vectors;

use std::path::PathBuf;

/// A path under `format-spec/`.
fn spec_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("format-spec").join(name)
}

/// The text of a page of `format-spec/`.
fn page(name: &str) -> String {
    let path = spec_path(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn blessing() -> bool {
    std::env::var_os("SESSIONLOG_BLESS").is_some_and(|value| value == "1")
}
