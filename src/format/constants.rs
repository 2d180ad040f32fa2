//! The numbers of format version 1. Always: `format-spec/` says the same, a test compares them. Never: tunables.

/// What a device writes whole or not at all; the only assumption about devices.
pub(crate) const SECTOR: usize = 512;
/// The unit of padded frames, of CONTROL's slots and of block checksums.
pub(crate) const PAGE: usize = 4096;
/// Frames start at multiples of this.
pub(crate) const ALIGN: usize = 8;

/// The version of each kind of file; bumped one by one, refused by name when unknown.
pub(crate) const SEGMENT_VERSION: u16 = 1;
pub(crate) const FRAME_VERSION: u8 = 1;
pub(crate) const CONTROL_VERSION: u16 = 1;
pub(crate) const LIVE_VERSION: u16 = 1;

/// The 0xFF of each magic cannot occur in UTF-8, so no stored text looks like one.
pub(crate) const SEGMENT_MAGIC: [u8; 8] = *b"\xFFSLSEG\r\n";
pub(crate) const FRAME_MAGIC: [u8; 4] = *b"\xFFSLF";
pub(crate) const CONTROL_MAGIC: [u8; 8] = *b"\xFFSLCTL\r\n";
pub(crate) const LIVE_MAGIC: [u8; 8] = *b"\xFFSLLIV\r\n";

/// Length of a segment header; also the offset of a segment's first frame.
pub(crate) const SEGMENT_HEADER_LEN: usize = 512;
/// The first frame of a segment starts here.
pub(crate) const FIRST_FRAME: u32 = 512;
/// Length of the frame header that version 1 writes; a reader takes longer ones.
pub(crate) const FRAME_HEADER_LEN: usize = 64;
/// Bytes of a frame header behind this length are covered by its CRC and ignored (F6: the header may grow).
pub(crate) const MAX_FRAME_HEADER_LEN: usize = SECTOR;
/// Where the header CRC of a frame stands, in every version.
pub(crate) const FRAME_CRC_AT: usize = 60;
/// Fills a frame up to the next place where one may start; not zero, so that F8 holds.
pub(crate) const PAD_BYTE: u8 = 0x5A;

/// Limit of records + table of one frame: 160 MiB. A batch is at most 128 MiB (F10), the rest is its overhead.
pub(crate) const MAX_BODY_LEN: u32 = 160 << 20;
/// Limit of one event's payload as stored, and of the text it was made from: 64 MiB.
pub(crate) const MAX_PAYLOAD_LEN: usize = 64 << 20;
/// Limit of one batch as encoded: 128 MiB.
pub(crate) const MAX_BATCH_LEN: usize = 128 << 20;
/// Limit of a session id in bytes of UTF-8.
pub(crate) const MAX_ID_LEN: usize = 1024;
/// Limit of an event type in bytes of UTF-8.
pub(crate) const MAX_TYPE_LEN: usize = 1024;

/// Length of the CRC field of a record.
pub(crate) const RECORD_CRC_LEN: usize = 4;
/// The shortest record: its length, its CRC, no payload, two bytes and a number of metadata, the metadata's length.
pub(crate) const MIN_RECORD_LEN: usize = 1 + RECORD_CRC_LEN + 2 + 1;
/// The longest metadata: an event that replaces, with every number at its longest.
pub(crate) const MAX_META_LEN: usize = 2 + 1 + 9 + 9 + 6 + 9 + 9;

/// The kinds of frames. Bit 7: a reader that does not know the kind passes over the frame.
pub(crate) mod frame_kind {
    /// Records of sessions.
    pub(crate) const DATA: u8 = 1;
    /// One IndexPart record: what the segment got since its previous index frame (D1).
    pub(crate) const INDEX: u8 = 2;
    /// The last frame of a segment that was ended in order.
    pub(crate) const SEAL: u8 = 3;
    /// A clean close: nothing follows, or a continue frame.
    pub(crate) const CLOSE: u8 = 4;
    /// A writer goes on in this segment under a new epoch (F11).
    pub(crate) const CONTINUE: u8 = 5;
    /// Carries nothing but a newer durable-up-to (E1).
    pub(crate) const WITNESS: u8 = 6;
    /// Every kind of version 1.
    pub(crate) const ALL: [u8; 6] = [DATA, INDEX, SEAL, CLOSE, CONTINUE, WITNESS];
}

/// The bit of frame and record kinds that lets an older reader pass over them.
pub(crate) const MAY_SKIP: u8 = 0x80;

/// The kinds of records, first byte of the metadata.
pub(crate) mod record_kind {
    pub(crate) const EVENT: u8 = 1;
    pub(crate) const CREATE: u8 = 2;
    pub(crate) const FORK: u8 = 3;
    pub(crate) const DELETE: u8 = 4;
    pub(crate) const PUBLISH: u8 = 5;
    pub(crate) const DAMAGE: u8 = 6;
    pub(crate) const ACCEPT_LOSS: u8 = 7;
    /// Reserved for log records of retired segments; version 1 refuses them.
    pub(crate) const RETIRE: u8 = 9;
    /// Reserved for log records of replaced segments; version 1 refuses them.
    pub(crate) const REPLACE: u8 = 10;
    pub(crate) const INDEX_PART: u8 = 0x88;
}

/// Bits of the second byte of the metadata.
pub(crate) mod record_flag {
    /// The next record of the frame belongs to the same batch.
    pub(crate) const MORE: u8 = 1;
    /// Create and Fork: the session is invisible until its Publish record (F10).
    pub(crate) const STAGED: u8 = 2;
    /// Event: the seqs that it replaces follow in the metadata.
    pub(crate) const REPLACE: u8 = 4;
    /// Event: the time is no integer in 0..2^48; its spelling is in the payload.
    pub(crate) const TIME_TEXT: u8 = 8;
    /// Fork: a turn is open at the cut.
    pub(crate) const TURN_OPEN: u8 = 16;
    /// All of version 1.
    pub(crate) const KNOWN: u8 = MORE | STAGED | REPLACE | TIME_TEXT | TURN_OPEN;
}

/// How the payload of an event is coded: low half of the shape byte.
pub(crate) mod coding {
    pub(crate) const VERBATIM: u8 = 0;
    pub(crate) const PLAIN: u8 = 1;
    pub(crate) const CHUNK: u8 = 2;
}

/// Bits of the options in a segment header.
pub(crate) mod segment_option {
    /// Frames end at multiples of [`super::PAGE`].
    pub(crate) const PADDED: u32 = 1;
}

const _: () = assert!(SEGMENT_HEADER_LEN == SECTOR && FIRST_FRAME as usize == SEGMENT_HEADER_LEN);
const _: () = assert!(FRAME_HEADER_LEN.is_multiple_of(ALIGN) && SECTOR.is_multiple_of(FRAME_HEADER_LEN));
const _: () = assert!(FRAME_CRC_AT + 4 == FRAME_HEADER_LEN);
const _: () = assert!(PAGE.is_multiple_of(SECTOR) && PAGE < u16::MAX as usize);
const _: () = assert!(MAX_META_LEN <= u8::MAX as usize);
const _: () = assert!(MAX_BATCH_LEN < MAX_BODY_LEN as usize && MAX_PAYLOAD_LEN < MAX_BATCH_LEN);
