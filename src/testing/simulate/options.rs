//! How a simulation opens its stores.

use std::sync::Arc;

use crate::StoreOptions;
use crate::disk::Disk;
use crate::rt::Runtime;
use crate::testing::{SeededRuntime, SimDisk};

use super::script::Script;

pub(super) fn options(script: &Script, disk: &SimDisk, runtime: Arc<dyn Runtime>) -> StoreOptions {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    StoreOptions::new()
        .create(true)
        .segment_bytes(script.segment)
        .unflushed_bytes(script.unflushed)
        .padded(script.padded)
        .maps(script.maps)
        .open_files(script.files)
        .fork_depth(script.depth)
        .disk(disk)
        .runtime(runtime)
}

/// A runtime without threads, for what is judged on the side.
pub(super) fn seeded(seed: u64) -> Arc<SeededRuntime> {
    Arc::new(SeededRuntime::new(seed))
}
