//! Where the fields of a directory run stand: its header and its entries.

use super::RUN_MAGIC;
use crate::format::blocks::Layout;

/// The header sector.
pub(crate) mod header {
    crate::format::layout::layout! { 512;
        MAGIC 0 8 "magic";
        VERSION 8 2 "version";
        HEADER_LEN 10 2 "header length";
        REQUIRED 12 4 "required features";
        STORE 16 16 "store id";
        FROM 32 8 "from";
        TO 40 8 "to";
        ENTRY_COUNT 48 8 "entries";
        CHILD_COUNT 56 8 "children";
        NEXT_DENSE 64 8 "next dense id";
        BY_HASH 72 8 "by hash at";
        BY_DENSE 80 8 "by dense id at";
        CHILDREN 88 8 "children at";
        HEAP 96 8 "heap at";
        HEAP_LEN 104 8 "heap length";
        BLOCK_CRCS 112 8 "block CRCs at";
        FILE_LEN 120 8 "file length";
        BLOCK_CRCS_CRC 128 4 "CRC of the block CRCs";
        ZERO 132 376 "zero";
        CRC 508 4 "header CRC";
    }
}

/// One entry of the section `by hash`.
pub(crate) mod by_hash {
    crate::format::layout::layout! { 24;
        HASH 0 16 "hash of the id";
        DENSE 16 8 "dense id";
    }
}

/// One entry of the section `by dense id`.
pub(crate) mod by_dense {
    crate::format::layout::layout! { 128;
        DENSE 0 8 "dense id";
        HEAP_AT 8 8 "place in the heap";
        ID_LEN 16 4 "id length";
        HEADER_LEN 20 4 "header length";
        FLAGS 24 4 "flags";
        LAST_SEGMENT 28 4 "last segment";
        OWN_FIRST 32 8 "first own seq";
        NEXT_SEQ 40 8 "next seq";
        BYTES 48 8 "bytes";
        FIRST_TIME 56 8 "first time";
        LAST_TIME 64 8 "last time";
        PARENT 72 8 "parent";
        ANCESTOR 80 8 "ancestor";
        CUT 88 8 "cut";
        DAMAGE_FROM 96 8 "damage from";
        ACCEPTED 104 8 "accepted at";
        ZERO 112 16 "zero";
    }
}

/// One entry of the section `children`.
pub(crate) mod child {
    crate::format::layout::layout! { 16;
        PARENT 0 8 "parent";
        CHILD 8 8 "child";
    }
}

pub(crate) const HASH_LEN: usize = 24;
pub(crate) const ENTRY_LEN: usize = 128;
pub(crate) const CHILD_LEN: usize = 16;

/// What a run has in common with an index file.
pub(super) const BLOCKS: Layout = Layout {
    magic: RUN_MAGIC,
    crcs: header::BLOCK_CRCS,
    length: header::FILE_LEN,
    crcs_crc: header::BLOCK_CRCS_CRC,
    zeros: &[header::ZERO],
};
