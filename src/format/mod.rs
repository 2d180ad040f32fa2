//! Bytes and structs of format version 1, as `format-spec/` defines them.
//!
//! Always: pure functions over `&[u8]`; every byte that a decoder believes was under a checksum that passed, or is one
//! of the few that lead to the checksum; allocation is in proportion to the input. Never: files, clocks, randomness,
//! threads, panics on input, a jump by a length that nothing vouches for.

// Some readers of the format serve its own tests, the spec and the fuzzing alone; in a test build none is unused.
#![cfg_attr(not(test), allow(dead_code))]

pub(crate) mod blocks;
pub(crate) mod checksum;
pub(crate) mod constants;
pub(crate) mod control;
pub(crate) mod directory;
pub(crate) mod frame;
pub(crate) mod frame_builder;
pub(crate) mod index;
pub(crate) mod layout;
pub(crate) mod live;
pub(crate) mod lock_info;
pub(crate) mod lsn;
pub(crate) mod meta;
pub(crate) mod names;
pub(crate) mod payload;
pub(crate) mod record;
pub(crate) mod scan;
pub(crate) mod segment_header;
pub(crate) mod varint;

pub(crate) use constants::{FIRST_FRAME, FRAME_HEADER_LEN, PAGE, SECTOR, SEGMENT_HEADER_LEN, frame_kind};
pub(crate) use control::{Control, ControlSlot, State};
pub(crate) use frame::{FrameFault, FrameHeader};
pub(crate) use frame_builder::{FrameBuilder, empty_frame};
pub(crate) use live::{DamageReason, LiveDamage, LiveSet, Member};
pub(crate) use lock_info::LockInfo;
pub(crate) use lsn::{Binding, Lsn, StoreId};
pub(crate) use meta::Meta;
pub(crate) use record::{RecordDraft, RecordFault};
pub(crate) use scan::{
    Candidate, DamagedBatch, FrameStep, FrameView, ScanContext, find_candidate, read_frame,
};
pub(crate) use segment_header::{Ending, SegmentHeader};

#[cfg(test)]
mod tests;
