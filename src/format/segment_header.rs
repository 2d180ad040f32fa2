//! The sector in front of every segment (F3). Always: believed only as a whole, after its CRC; it says who wrote the
//! segment and how its predecessor ended. Never: rewritten.

use super::checksum::crc;
use super::constants::{FIRST_FRAME, SEGMENT_HEADER_LEN, SEGMENT_MAGIC, SEGMENT_VERSION, segment_option};
use super::lsn::{Binding, StoreId};
use std::fmt;

/// Where its fields stand.
pub(crate) mod fields {
    super::super::layout::layout! { 512;
        MAGIC 0 8 "magic";
        VERSION 8 2 "version";
        HEADER_LEN 10 2 "header length";
        REQUIRED 12 4 "required features";
        STORE 16 16 "store id";
        NUMBER 32 4 "segment number";
        PREVIOUS 36 4 "predecessor number";
        EPOCH 40 8 "epoch";
        SALT 48 8 "salt";
        PREVIOUS_END 56 4 "predecessor end";
        PREVIOUS_CHAIN 60 4 "predecessor chain";
        PREVIOUS_WHY 64 1 "predecessor ending";
        ZERO_A 65 7 "zero";
        NEXT_DENSE 72 8 "next dense id";
        CAPACITY 80 4 "capacity";
        OPTIONS 84 4 "options";
        ZERO_B 88 420 "zero";
        CRC 508 4 "header CRC";
    }
}

/// Why a segment ended, as its successor and its index say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Ending {
    /// There is no predecessor.
    #[default]
    None = 0,
    /// In order, by a seal frame.
    Sealed = 1,
    /// After a crash; whatever stood behind its end was torn and cut.
    Torn = 2,
    /// Damage stood at or behind its end.
    Damaged = 3,
}

impl Ending {
    pub(crate) fn from_u8(value: u8) -> Option<Self> {
        [Self::None, Self::Sealed, Self::Torn, Self::Damaged].into_iter().find(|e| *e as u8 == value)
    }
}

/// The fields of a segment header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) store: StoreId,
    pub(crate) number: u32,
    /// Predecessor's number, 0 = this is the first.
    pub(crate) previous: u32,
    pub(crate) epoch: u64,
    pub(crate) salt: u64,
    /// Offset behind the predecessor's last frame.
    pub(crate) previous_end: u32,
    /// Header CRC of the predecessor's last frame, or of its segment header if it has no frame.
    pub(crate) previous_chain: u32,
    pub(crate) previous_why: Ending,
    /// Every dense id handed out before this segment is below.
    pub(crate) next_dense: u64,
    /// No frame passes this offset.
    pub(crate) capacity: u32,
    /// Frames end at page borders.
    pub(crate) padded: bool,
}

/// Why bytes are no segment header of version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    TooShort,
    BadMagic,
    BadCrc,
    /// Written by a later version, which this build refuses by name.
    Version {
        found: u16,
    },
    /// Needs features that this build does not know.
    Features {
        bits: u32,
    },
    /// The CRC passed, yet this field has a value that no writer gives.
    Field(&'static str),
}

impl HeaderFault {
    /// The file is whole but of a later format: to be refused, not treated as damage.
    pub(crate) fn is_unsupported(self) -> bool {
        matches!(self, Self::Version { .. } | Self::Features { .. })
    }
}

impl fmt::Display for HeaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort => write!(f, "header is cut short"),
            Self::BadMagic => write!(f, "header does not begin with the magic bytes"),
            Self::BadCrc => write!(f, "header checksum does not match"),
            Self::Version { found } => {
                write!(f, "format version {found} is not known to this build, which reads version 1")
            }
            Self::Features { bits } => {
                write!(f, "required feature bits {bits:#x} are not known to this build")
            }
            Self::Field(name) => write!(f, "header field \"{name}\" has an impossible value"),
        }
    }
}

impl SegmentHeader {
    /// Its length; the first frame starts behind it.
    pub(crate) const LEN: u32 = FIRST_FRAME;

    /// The sector, and its CRC, which begins the chain of its frames.
    pub(crate) fn encode(&self) -> ([u8; SEGMENT_HEADER_LEN], u32) {
        let mut buf = [0u8; SEGMENT_HEADER_LEN];
        let options = if self.padded { segment_option::PADDED } else { 0 };
        fields::MAGIC.put(&mut buf, &SEGMENT_MAGIC);
        fields::VERSION.put(&mut buf, &SEGMENT_VERSION.to_le_bytes());
        fields::HEADER_LEN.put(&mut buf, &HEADER_LEN.to_le_bytes());
        fields::STORE.put(&mut buf, &self.store.0);
        fields::NUMBER.put(&mut buf, &self.number.to_le_bytes());
        fields::PREVIOUS.put(&mut buf, &self.previous.to_le_bytes());
        fields::EPOCH.put(&mut buf, &self.epoch.to_le_bytes());
        fields::SALT.put(&mut buf, &self.salt.to_le_bytes());
        fields::PREVIOUS_END.put(&mut buf, &self.previous_end.to_le_bytes());
        fields::PREVIOUS_CHAIN.put(&mut buf, &self.previous_chain.to_le_bytes());
        fields::PREVIOUS_WHY.put(&mut buf, &[self.previous_why as u8]);
        fields::NEXT_DENSE.put(&mut buf, &self.next_dense.to_le_bytes());
        fields::CAPACITY.put(&mut buf, &self.capacity.to_le_bytes());
        fields::OPTIONS.put(&mut buf, &options.to_le_bytes());
        let sum = crc(covered(&buf));
        fields::CRC.put(&mut buf, &sum.to_le_bytes());
        (buf, sum)
    }

    /// The header at the front of `bytes` and its CRC.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, u32), HeaderFault> {
        let buf = bytes.get(..SEGMENT_HEADER_LEN).ok_or(HeaderFault::TooShort)?;
        if fields::MAGIC.get(buf) != SEGMENT_MAGIC {
            return Err(HeaderFault::BadMagic);
        }
        let sum = crc(covered(buf));
        if sum != fields::CRC.u32(buf) {
            return Err(HeaderFault::BadCrc);
        }
        let version = fields::VERSION.u16(buf);
        if version != SEGMENT_VERSION {
            return Err(HeaderFault::Version { found: version });
        }
        let bits = fields::REQUIRED.u32(buf);
        if bits != 0 {
            return Err(HeaderFault::Features { bits });
        }
        let options = fields::OPTIONS.u32(buf);
        let header = Self {
            store: StoreId(fields::STORE.array(buf)),
            number: fields::NUMBER.u32(buf),
            previous: fields::PREVIOUS.u32(buf),
            epoch: fields::EPOCH.u64(buf),
            salt: fields::SALT.u64(buf),
            previous_end: fields::PREVIOUS_END.u32(buf),
            previous_chain: fields::PREVIOUS_CHAIN.u32(buf),
            previous_why: Ending::from_u8(fields::PREVIOUS_WHY.u8(buf))
                .ok_or(HeaderFault::Field(fields::PREVIOUS_WHY.name))?,
            next_dense: fields::NEXT_DENSE.u64(buf),
            capacity: fields::CAPACITY.u32(buf),
            padded: options & segment_option::PADDED != 0,
        };
        let broken = header.impossible_field().or_else(|| impossible_rest(buf, options));
        broken.map_or(Ok((header, sum)), |name| Err(HeaderFault::Field(name)))
    }

    /// What the checksums of this segment's frames are bound to.
    pub(crate) fn binding(&self) -> Binding {
        Binding { store: self.store, salt: self.salt, epoch: self.epoch }
    }

    fn impossible_field(&self) -> Option<&'static str> {
        let first = self.previous == 0;
        let rules = [
            (self.number > 0, fields::NUMBER),
            (self.previous < self.number, fields::PREVIOUS),
            (self.epoch > 0, fields::EPOCH),
            (self.salt != 0, fields::SALT),
            (first == (self.previous_why == Ending::None), fields::PREVIOUS_WHY),
            (first == (self.previous_end == 0), fields::PREVIOUS_END),
            (!first || self.previous_chain == 0, fields::PREVIOUS_CHAIN),
            (self.next_dense > 0, fields::NEXT_DENSE),
            (self.capacity >= FIRST_FRAME, fields::CAPACITY),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map(|(_, field)| field.name)
    }
}

const HEADER_LEN: u16 = 512;
const _: () = assert!(HEADER_LEN as usize == SEGMENT_HEADER_LEN);

fn covered(buf: &[u8]) -> &[u8] {
    buf.get(..fields::CRC.at).unwrap_or_default()
}

fn impossible_rest(buf: &[u8], options: u32) -> Option<&'static str> {
    let rules = [
        (fields::HEADER_LEN.u16(buf) == HEADER_LEN, fields::HEADER_LEN),
        (options & !segment_option::PADDED == 0, fields::OPTIONS),
        (fields::ZERO_A.is_zero(buf) && fields::ZERO_B.is_zero(buf), fields::ZERO_A),
    ];
    rules.into_iter().find(|(holds, _)| !holds).map(|(_, field)| field.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn sample() -> SegmentHeader {
        SegmentHeader {
            store: StoreId([7; 16]),
            number: 3,
            previous: 2,
            epoch: 9,
            salt: 0xDEAD_BEEF_0BAD_CAFE,
            previous_end: 4096,
            previous_chain: 0x1234_5678,
            previous_why: Ending::Torn,
            next_dense: 77,
            capacity: 64 << 20,
            padded: true,
        }
    }

    /// `change` made to a valid header under a fresh CRC.
    fn forged(change: impl FnOnce(&mut [u8])) -> Result<(SegmentHeader, u32), HeaderFault> {
        let (mut buf, _) = sample().encode();
        change(&mut buf);
        let sum = crc(covered(&buf));
        fields::CRC.put(&mut buf, &sum.to_le_bytes());
        SegmentHeader::decode(&buf)
    }

    #[test]
    fn comes_back() {
        let (bytes, sum) = sample().encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok((sample(), sum)));
        assert_eq!(SegmentHeader::decode(&bytes[..511]), Err(HeaderFault::TooShort));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let (bytes, _) = sample().encode();
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn later_formats_are_refused_by_name() {
        let version = forged(|b| fields::VERSION.put(b, &2u16.to_le_bytes())).unwrap_err();
        assert_eq!(version, HeaderFault::Version { found: 2 });
        assert!(version.is_unsupported() && version.to_string().contains("version 2"));
        let features = forged(|b| fields::REQUIRED.put(b, &4u32.to_le_bytes())).unwrap_err();
        assert_eq!(features, HeaderFault::Features { bits: 4 });
        assert!(features.is_unsupported());
    }

    #[test]
    fn impossible_values_are_named() {
        let field = |f: super::super::layout::Field, value: &[u8]| forged(|b| f.put(b, value)).unwrap_err();
        assert_eq!(field(fields::NUMBER, &[0; 4]), HeaderFault::Field("segment number"));
        assert_eq!(field(fields::PREVIOUS, &[3, 0, 0, 0]), HeaderFault::Field("predecessor number"));
        assert_eq!(field(fields::EPOCH, &[0; 8]), HeaderFault::Field("epoch"));
        assert_eq!(field(fields::SALT, &[0; 8]), HeaderFault::Field("salt"));
        assert_eq!(field(fields::PREVIOUS_WHY, &[4]), HeaderFault::Field("predecessor ending"));
        assert_eq!(field(fields::PREVIOUS_WHY, &[0]), HeaderFault::Field("predecessor ending"));
        assert_eq!(field(fields::PREVIOUS_END, &[0; 4]), HeaderFault::Field("predecessor end"));
        assert_eq!(field(fields::NEXT_DENSE, &[0; 8]), HeaderFault::Field("next dense id"));
        assert_eq!(field(fields::CAPACITY, &[0; 4]), HeaderFault::Field("capacity"));
        assert_eq!(field(fields::OPTIONS, &[2, 0, 0, 0]), HeaderFault::Field("options"));
        assert_eq!(field(fields::HEADER_LEN, &[0; 2]), HeaderFault::Field("header length"));
        assert_eq!(field(fields::ZERO_B, &[1; 420]), HeaderFault::Field("zero"));
    }
}
