//! The frame header (F6), encoded and parsed by hand. Always: a field is believed only after the header CRC, which binds
//! it to store and segment; the caller learns where the frame says it stands and compares. Never: a read outside the
//! sector the header stands in.

use super::checksum::frame_header_crc;
use super::constants::{
    ALIGN, FRAME_CRC_AT, FRAME_HEADER_LEN, FRAME_MAGIC, FRAME_VERSION, MAX_BODY_LEN, MAX_FRAME_HEADER_LEN,
    MAY_SKIP, MIN_RECORD_LEN, PAGE, SECTOR, frame_kind,
};
use super::lsn::{Binding, Lsn};
use crate::mutation::{self, Mutation};
use std::fmt;

/// Where its fields stand.
pub(crate) mod fields {
    super::super::layout::layout! { 64;
        MAGIC 0 4 "magic";
        VERSION 4 1 "version";
        HEADER_LEN 5 1 "header length / 8";
        KIND 6 1 "kind";
        CODEC 7 1 "codec id";
        BODY_LEN 8 4 "body length";
        PAD_LEN 12 2 "pad length";
        KEY 14 2 "key id";
        RECORD_COUNT 16 4 "record count";
        TABLE_LEN 20 4 "table length";
        LSN 24 8 "LSN";
        EPOCH 32 8 "epoch";
        DURABLE 40 8 "durable up to";
        CHAIN 48 4 "chain";
        TABLE_CRC 52 4 "table CRC";
        RECORDS_CRC 56 4 "records CRC";
        CRC 60 4 "header CRC";
    }
}

/// The fields of a frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: u8,
    /// Length as read; version 1 writes 64.
    pub(crate) header_len: u16,
    pub(crate) codec: u8,
    pub(crate) key: u16,
    /// Records and table.
    pub(crate) body_len: u32,
    pub(crate) pad_len: u16,
    pub(crate) record_count: u32,
    pub(crate) table_len: u32,
    /// Where the frame stands.
    pub(crate) lsn: Lsn,
    pub(crate) epoch: u64,
    /// E1: everything before this place was durable before the frame was written.
    pub(crate) durable: Lsn,
    /// Header CRC of the frame before, or of the segment header.
    pub(crate) chain: u32,
    pub(crate) table_crc: u32,
    pub(crate) records_crc: u32,
}

/// Why bytes are no frame that may be believed at this place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameFault {
    /// The bytes end inside the header, which takes `need`.
    TooShort {
        need: usize,
    },
    BadMagic,
    /// The header length is below 64 or reaches over the sector's end.
    HeaderLength {
        found: usize,
    },
    BadHeaderCrc,
    /// From here on the header CRC has passed.
    Version {
        found: u8,
    },
    UnknownKind {
        kind: u8,
    },
    UnknownCodec {
        codec: u8,
    },
    UnknownKey {
        key: u16,
    },
    /// A value that no writer gives.
    Field(&'static str),
    /// The frame was written for another place.
    WrongPlace {
        found: Lsn,
    },
    /// An epoch that was over before this place was written.
    StaleEpoch {
        found: u64,
    },
    /// An epoch above every known one.
    UnknownEpoch {
        found: u64,
    },
    /// A new epoch without a continue frame, or a continue frame without a new epoch.
    EpochMark {
        found: u64,
    },
    /// It follows another frame than the one before it.
    Chain {
        expected: u32,
        found: u32,
    },
    /// It reaches over the segment's capacity or recorded end.
    PastEnd {
        end: u64,
    },
}

impl FrameFault {
    /// The header is whole but of a later format: to be refused by name, not treated as damage.
    pub(crate) fn is_unsupported(self) -> bool {
        matches!(
            self,
            Self::Version { .. }
                | Self::UnknownKind { .. }
                | Self::UnknownCodec { .. }
                | Self::UnknownKey { .. }
        )
    }
}

impl fmt::Display for FrameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { need } => write!(f, "the bytes end inside a frame header of {need} bytes"),
            Self::BadMagic => write!(f, "no frame begins here"),
            Self::HeaderLength { found } => write!(f, "frame header length {found} is impossible here"),
            Self::BadHeaderCrc => write!(f, "frame header checksum does not match"),
            Self::Version { found } => {
                write!(f, "frame version {found} is not known to this build, which reads version 1")
            }
            Self::UnknownKind { kind } => write!(f, "frame kind {kind} is not known to this build"),
            Self::UnknownCodec { codec } => write!(f, "codec {codec} is not known to this build"),
            Self::UnknownKey { key } => {
                write!(f, "the frame is encrypted with key {key}; this build reads none")
            }
            Self::Field(name) => write!(f, "frame header field \"{name}\" has an impossible value"),
            Self::WrongPlace { found } => write!(f, "the frame was written for {found}"),
            Self::StaleEpoch { found } => write!(f, "the frame is of epoch {found}, which was over"),
            Self::UnknownEpoch { found } => {
                write!(f, "the frame is of epoch {found}, which nothing announced")
            }
            Self::EpochMark { found } => write!(f, "epoch {found} does not fit a frame of this kind here"),
            Self::Chain { expected, found } => {
                write!(f, "the frame follows another one (chain {found:#010x}, expected {expected:#010x})")
            }
            Self::PastEnd { end } => write!(f, "the frame would end at {end}, behind the segment's end"),
        }
    }
}

impl FrameHeader {
    /// The header's bytes and their CRC. `header_len` is written as 64, whatever it says.
    pub(crate) fn encode(&self, binding: &Binding) -> ([u8; FRAME_HEADER_LEN], u32) {
        let mut buf = [0u8; FRAME_HEADER_LEN];
        fields::MAGIC.put(&mut buf, &FRAME_MAGIC);
        fields::VERSION.put(&mut buf, &[FRAME_VERSION]);
        fields::HEADER_LEN.put(&mut buf, &[HEADER_LEN_UNITS]);
        fields::KIND.put(&mut buf, &[self.kind]);
        fields::CODEC.put(&mut buf, &[self.codec]);
        fields::BODY_LEN.put(&mut buf, &self.body_len.to_le_bytes());
        fields::PAD_LEN.put(&mut buf, &self.pad_len.to_le_bytes());
        fields::KEY.put(&mut buf, &self.key.to_le_bytes());
        fields::RECORD_COUNT.put(&mut buf, &self.record_count.to_le_bytes());
        fields::TABLE_LEN.put(&mut buf, &self.table_len.to_le_bytes());
        fields::LSN.put(&mut buf, &self.lsn.0.to_le_bytes());
        fields::EPOCH.put(&mut buf, &self.epoch.to_le_bytes());
        fields::DURABLE.put(&mut buf, &self.durable.0.to_le_bytes());
        fields::CHAIN.put(&mut buf, &self.chain.to_le_bytes());
        fields::TABLE_CRC.put(&mut buf, &self.table_crc.to_le_bytes());
        fields::RECORDS_CRC.put(&mut buf, &self.records_crc.to_le_bytes());
        let sum = frame_header_crc(buf.get(..FRAME_CRC_AT).unwrap_or_default(), &[], binding);
        fields::CRC.put(&mut buf, &sum.to_le_bytes());
        (buf, sum)
    }

    /// The header at the front of `bytes`, and its CRC. Where it may stand is for the caller to check.
    pub(crate) fn decode(bytes: &[u8], binding: &Binding) -> Result<(Self, u32), FrameFault> {
        let buf = bytes.get(..FRAME_HEADER_LEN).ok_or(FrameFault::TooShort { need: FRAME_HEADER_LEN })?;
        if fields::MAGIC.get(buf) != FRAME_MAGIC {
            return Err(FrameFault::BadMagic);
        }
        let header_len = usize::from(fields::HEADER_LEN.u8(buf)) * ALIGN;
        if !(FRAME_HEADER_LEN..=MAX_FRAME_HEADER_LEN).contains(&header_len) {
            return Err(FrameFault::HeaderLength { found: header_len });
        }
        let extension =
            bytes.get(FRAME_HEADER_LEN..header_len).ok_or(FrameFault::TooShort { need: header_len })?;
        let sum = frame_header_crc(buf.get(..FRAME_CRC_AT).unwrap_or_default(), extension, binding);
        if sum != fields::CRC.u32(buf) && !mutation::is_on(Mutation::IgnoreHeaderCrc) {
            return Err(FrameFault::BadHeaderCrc);
        }
        let version = fields::VERSION.u8(buf);
        if version != FRAME_VERSION {
            return Err(FrameFault::Version { found: version });
        }
        let header = Self {
            kind: fields::KIND.u8(buf),
            header_len: u16::from(fields::HEADER_LEN.u8(buf)).saturating_mul(8),
            codec: fields::CODEC.u8(buf),
            key: fields::KEY.u16(buf),
            body_len: fields::BODY_LEN.u32(buf),
            pad_len: fields::PAD_LEN.u16(buf),
            record_count: fields::RECORD_COUNT.u32(buf),
            table_len: fields::TABLE_LEN.u32(buf),
            lsn: Lsn(fields::LSN.u64(buf)),
            epoch: fields::EPOCH.u64(buf),
            durable: Lsn(fields::DURABLE.u64(buf)),
            chain: fields::CHAIN.u32(buf),
            table_crc: fields::TABLE_CRC.u32(buf),
            records_crc: fields::RECORDS_CRC.u32(buf),
        };
        header.check()?;
        Ok((header, sum))
    }

    /// Header, body and pad in bytes.
    pub(crate) fn frame_len(&self) -> u64 {
        u64::from(self.header_len) + u64::from(self.body_len) + u64::from(self.pad_len)
    }

    /// Offset behind the frame; may lie above what a segment can hold until the caller compared it.
    pub(crate) fn end(&self) -> u64 {
        u64::from(self.lsn.offset()) + self.frame_len()
    }

    /// Length of all records together.
    pub(crate) fn records_len(&self) -> u32 {
        self.body_len.saturating_sub(self.table_len)
    }

    /// A reader that does not know the kind passes over the frame.
    pub(crate) fn may_skip(&self) -> bool {
        self.kind & MAY_SKIP != 0
    }

    /// The kind is one of version 1.
    pub(crate) fn is_known_kind(&self) -> bool {
        frame_kind::ALL.contains(&self.kind)
    }

    fn check(&self) -> Result<(), FrameFault> {
        if !self.is_known_kind() && !self.may_skip() {
            return Err(FrameFault::UnknownKind { kind: self.kind });
        }
        if self.is_known_kind() && self.codec != 0 {
            return Err(FrameFault::UnknownCodec { codec: self.codec });
        }
        if self.is_known_kind() && self.key != 0 {
            return Err(FrameFault::UnknownKey { key: self.key });
        }
        let rules = [
            (self.body_len <= MAX_BODY_LEN, fields::BODY_LEN),
            (self.table_len <= self.body_len, fields::TABLE_LEN),
            (self.count_fits(), fields::RECORD_COUNT),
            (usize::from(self.pad_len) < PAGE, fields::PAD_LEN),
            (self.epoch > 0, fields::EPOCH),
            (self.lsn.segment() > 0 && self.stands_in_a_sector(), fields::LSN),
            (self.durable <= self.lsn, fields::DURABLE),
            (self.end().is_multiple_of(ALIGN as u64) && may_start_at(self.end()), fields::PAD_LEN),
        ];
        let broken = rules.into_iter().find(|(holds, _)| !holds);
        broken.map_or(Ok(()), |(_, field)| Err(FrameFault::Field(field.name)))
    }

    /// Each record takes a byte of table at least and `MIN_RECORD_LEN` of records: bounds what a reader allocates.
    fn count_fits(&self) -> bool {
        let (count, least) = (u64::from(self.record_count), MIN_RECORD_LEN as u64);
        let by_kind = match self.kind {
            frame_kind::DATA => count > 0,
            frame_kind::INDEX => count == 1,
            frame_kind::SEAL | frame_kind::CLOSE | frame_kind::CONTINUE | frame_kind::WITNESS => count == 0,
            _ => true,
        };
        by_kind
            && count <= u64::from(self.table_len)
            && count * least <= u64::from(self.records_len())
            && (count > 0 || self.body_len == 0)
    }

    fn stands_in_a_sector(&self) -> bool {
        let at = u64::from(self.lsn.offset());
        let room = SECTOR as u64 - at % SECTOR as u64;
        at.is_multiple_of(ALIGN as u64) && u64::from(self.header_len) <= room
    }
}

/// Whether a 64-byte header at `offset` is aligned and stays inside one sector.
pub(crate) fn may_start_at(offset: u64) -> bool {
    offset.is_multiple_of(ALIGN as u64) && offset % SECTOR as u64 <= (SECTOR - FRAME_HEADER_LEN) as u64
}

/// The end of a frame whose body ends at `offset`: the next place where a frame may start.
pub(crate) fn padded_end(offset: u64, padded: bool) -> u64 {
    if padded {
        return offset.next_multiple_of(PAGE as u64);
    }
    let end = offset.next_multiple_of(ALIGN as u64);
    if may_start_at(end) { end } else { end.next_multiple_of(SECTOR as u64) }
}

const HEADER_LEN_UNITS: u8 = 8;
const _: () = assert!(HEADER_LEN_UNITS as usize * ALIGN == FRAME_HEADER_LEN);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::checksum::crc;
    use crate::format::lsn::StoreId;

    const BINDING: Binding = Binding { store: StoreId([3; 16]), salt: 5, epoch: 2 };

    fn sample() -> FrameHeader {
        FrameHeader {
            kind: frame_kind::DATA,
            header_len: 64,
            codec: 0,
            key: 0,
            body_len: 120,
            pad_len: 8,
            record_count: 3,
            table_len: 4,
            lsn: Lsn::new(2, 512),
            epoch: 6,
            durable: Lsn::new(1, 4096),
            chain: 0xAABB_CCDD,
            table_crc: 1,
            records_crc: 2,
        }
    }

    fn decoded(change: impl FnOnce(&mut FrameHeader)) -> Result<(FrameHeader, u32), FrameFault> {
        let mut header = sample();
        change(&mut header);
        FrameHeader::decode(&header.encode(&BINDING).0, &BINDING)
    }

    #[test]
    fn comes_back_only_under_its_own_binding() {
        let (bytes, sum) = sample().encode(&BINDING);
        assert_eq!(FrameHeader::decode(&bytes, &BINDING), Ok((sample(), sum)));
        let salt = Binding { salt: 6, ..BINDING };
        assert_eq!(FrameHeader::decode(&bytes, &salt), Err(FrameFault::BadHeaderCrc));
        let store = Binding { store: StoreId([4; 16]), ..BINDING };
        assert_eq!(FrameHeader::decode(&bytes, &store), Err(FrameFault::BadHeaderCrc));
        assert_eq!(FrameHeader::decode(&bytes[..63], &BINDING), Err(FrameFault::TooShort { need: 64 }));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let (bytes, _) = sample().encode(&BINDING);
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            // A header length that grew needs bytes to be believed in.
            bad.resize(512, 0);
            assert!(FrameHeader::decode(&bad, &BINDING).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_longer_header_is_read_and_its_rest_is_covered() {
        let mut long = sample().encode(&BINDING).0.to_vec();
        long[5] = 10;
        long.extend([1u8; 16]);
        let mut hashed = long[..60].to_vec();
        hashed.extend([1u8; 16]);
        hashed.extend(BINDING.salt.to_le_bytes());
        hashed.extend(BINDING.store.0);
        long[60..64].copy_from_slice(&crc(&hashed).to_le_bytes());
        let (header, _) = FrameHeader::decode(&long, &BINDING).unwrap();
        assert_eq!((header.header_len, header.frame_len()), (80, 208));
        assert_eq!(FrameHeader::decode(&long[..79], &BINDING), Err(FrameFault::TooShort { need: 80 }));
        long[70] ^= 1;
        assert_eq!(FrameHeader::decode(&long, &BINDING), Err(FrameFault::BadHeaderCrc));
    }

    #[test]
    fn later_formats_are_refused_by_name_and_skippable_kinds_are_not() {
        assert_eq!(decoded(|h| h.kind = 7), Err(FrameFault::UnknownKind { kind: 7 }));
        assert_eq!(decoded(|h| h.codec = 1), Err(FrameFault::UnknownCodec { codec: 1 }));
        assert_eq!(decoded(|h| h.key = 300), Err(FrameFault::UnknownKey { key: 300 }));
        assert!(FrameFault::UnknownKind { kind: 7 }.is_unsupported());
        let (header, _) = decoded(|h| (h.kind, h.codec, h.key) = (0x87, 1, 300)).unwrap();
        assert!(header.may_skip() && !header.is_known_kind());
    }

    #[test]
    fn impossible_values_are_named() {
        let name = |change: fn(&mut FrameHeader)| match decoded(change) {
            Err(FrameFault::Field(name)) => name,
            other => panic!("{other:?}"),
        };
        assert_eq!(name(|h| h.body_len = MAX_BODY_LEN + 1), "body length");
        assert_eq!(name(|h| h.table_len = 121), "table length");
        assert_eq!(name(|h| h.record_count = 5), "record count");
        assert_eq!(name(|h| h.record_count = 0), "record count");
        assert_eq!(name(|h| h.kind = frame_kind::SEAL), "record count");
        assert_eq!(name(|h| h.epoch = 0), "epoch");
        assert_eq!(name(|h| h.lsn = Lsn::new(2, 516)), "LSN");
        assert_eq!(name(|h| h.lsn = Lsn::new(2, 1016)), "LSN");
        assert_eq!(name(|h| h.lsn = Lsn::new(0, 512)), "LSN");
        assert_eq!(name(|h| h.durable = Lsn::new(2, 513)), "durable up to");
        assert_eq!(name(|h| h.pad_len = 9), "pad length");
        assert_eq!(name(|h| h.pad_len = 4096), "pad length");
    }

    #[test]
    fn ends_leave_room_for_a_header_in_one_sector() {
        for (offset, end) in [(512, 512), (513, 520), (960, 960), (961, 1024), (968, 1024), (1020, 1024)] {
            assert_eq!(padded_end(offset, false), end, "{offset}");
        }
        assert_eq!(padded_end(513, true), 4096);
        assert_eq!(padded_end(4096, true), 4096);
    }
}
