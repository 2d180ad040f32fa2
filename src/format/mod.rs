//! Bytes and structs of format version 1, as `format-spec/` defines them.
//!
//! Always: pure functions over `&[u8]`; every byte that a decoder believes was under a checksum that passed, or is one
//! of the few that lead to the checksum; allocation is in proportion to the input. Never: files, clocks, randomness,
//! threads, panics on input, a jump by a length that nothing vouches for.

// The engine above takes up these names one after the other.
#![allow(dead_code)]

pub(crate) mod checksum;
pub(crate) mod constants;
pub(crate) mod control;
pub(crate) mod frame;
pub(crate) mod frame_builder;
pub(crate) mod layout;
pub(crate) mod live;
pub(crate) mod lock_info;
pub(crate) mod lsn;
pub(crate) mod meta;
pub(crate) mod names;
pub(crate) mod record;
pub(crate) mod scan;
pub(crate) mod segment_header;
pub(crate) mod varint;
