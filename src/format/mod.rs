//! Bytes and structs of format version 1, as `format-spec/` defines them.
//!
//! Always: pure functions over `&[u8]`; every byte that a decoder believes was under a checksum that passed, or is one
//! of the few that lead to the checksum; allocation is in proportion to the input. Never: files, clocks, randomness,
//! threads, panics on input, a jump by a length that nothing vouches for.

// The engine above takes up these names one after the other.
#![allow(dead_code, unused_imports)]

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
pub(crate) use frame_builder::{FinishedFrame, FrameBuilder, empty_frame};
pub(crate) use live::{DamageReason, LiveDamage, LiveSet, Member};
pub(crate) use lock_info::LockInfo;
pub(crate) use lsn::{Binding, Lsn, StoreId};
pub(crate) use meta::{EventMeta, Meta};
pub(crate) use record::{RecordDraft, RecordFault, RecordView, SealedRecord};
pub(crate) use scan::{
    Candidate, FrameStep, FrameView, LOOKAHEAD_OVERLAP, RecordDamage, ScanContext, find_candidate,
    has_zero_sector, is_zero, read_frame,
};
pub(crate) use segment_header::{Ending, HeaderFault, SegmentHeader};

#[cfg(test)]
mod tests;
