//! Records: the units that have a checksum of their own (F7). Always: the expensive part of the checksum is computed
//! where no lock is held, place and epoch are mixed in later. Never: a payload handed out before its CRC passed.

use super::checksum::record_mix;
use super::constants::{MAX_BODY_LEN, RECORD_CRC_LEN};
use super::lsn::{Binding, Lsn};
use super::meta::{Meta, MetaBytes, MetaFault};
use super::varint::{self, Fault};
use crate::mutation::{self, Mutation};
use crc32fast::Hasher;
use std::fmt;
use std::sync::Arc;

/// A payload on its way into a record, hashed.
#[derive(Debug, Clone)]
pub(crate) struct RecordDraft {
    payload: Payload,
    hasher: Hasher,
}

/// A payload in two parts, so that a text which somebody holds anyway is copied once, to its place.
#[derive(Debug, Clone)]
struct Payload {
    front: Vec<u8>,
    text: Option<Arc<str>>,
}

impl Payload {
    fn text(&self) -> &[u8] {
        self.text.as_ref().map_or(&[], |text| text.as_bytes())
    }

    fn len(&self) -> usize {
        self.front.len() + self.text().len()
    }
}

impl RecordDraft {
    /// Hashes `payload`; called where no lock is held.
    pub(crate) fn new(payload: Vec<u8>) -> Self {
        Self::of(Payload { front: payload, text: None })
    }

    /// Hashes the payload that is `front` and then `text`.
    pub(crate) fn with_text(front: Vec<u8>, text: Arc<str>) -> Self {
        Self::of(Payload { front, text: Some(text) })
    }

    fn of(payload: Payload) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(&payload.front);
        hasher.update(payload.text());
        Self { payload, hasher }
    }

    /// Bytes of the payload.
    pub(crate) fn payload_len(&self) -> usize {
        self.payload.len()
    }

    /// Joins payload and metadata; cheap, called under the session's lock, where the seq is known.
    pub(crate) fn seal(self, meta: &Meta) -> SealedRecord {
        let Self { payload, mut hasher } = self;
        let meta = meta.encode();
        let len = payload.len() + usize::from(meta.len()) + 1;
        let len =
            u32::try_from(len).expect("payloads are checked against the limits before they become records");
        hasher.update(meta.as_slice());
        hasher.update(&[meta.len()]);
        hasher.update(&len.to_le_bytes());
        let stored_len = varint::len(u64::from(len)) + RECORD_CRC_LEN + len as usize;
        SealedRecord { payload, meta, len, stored_len, crc_before_mix: hasher.finalize() }
    }
}

/// A record that lacks nothing but its place.
#[derive(Debug, Clone)]
pub(crate) struct SealedRecord {
    payload: Payload,
    meta: MetaBytes,
    len: u32,
    stored_len: usize,
    crc_before_mix: u32,
}

impl SealedRecord {
    /// Bytes that the record takes in a frame, without its entry in the table.
    pub(crate) fn stored_len(&self) -> usize {
        self.stored_len
    }

    /// Appends the record as stored at `lsn`; gives its CRC field.
    pub(crate) fn write(&self, out: &mut Vec<u8>, lsn: Lsn, binding: &Binding) -> [u8; RECORD_CRC_LEN] {
        let mix = record_mix(lsn, binding.epoch, binding.salt);
        let stored = (self.crc_before_mix ^ mix).to_le_bytes();
        varint::put(out, u64::from(self.len));
        out.extend_from_slice(&stored);
        out.extend_from_slice(&self.payload.front);
        out.extend_from_slice(self.payload.text());
        out.extend_from_slice(self.meta.as_slice());
        out.push(self.meta.len());
        stored
    }
}

/// A record whose CRC passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordView<'a> {
    pub(crate) meta: Meta,
    pub(crate) payload: &'a [u8],
    pub(crate) lsn: Lsn,
    /// From its length field to its last byte.
    pub(crate) stored_len: usize,
}

/// Why bytes are no record that may be believed at this place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordFault {
    /// The record takes `need` bytes, by a length that nothing vouches for yet.
    Truncated {
        need: usize,
    },
    BadLength,
    BadCrc,
    BadMeta,
    /// Written by a later version: refuse by name.
    UnknownKind(u8),
    /// Written by a later version: refuse by name.
    UnknownFlags(u8),
    /// Written by a later version: refuse by name.
    UnknownCoding(u8),
}

impl RecordFault {
    /// The record is whole but of a later format: to be refused by name, not treated as damage.
    pub(crate) fn is_unsupported(self) -> bool {
        matches!(self, Self::UnknownKind(_) | Self::UnknownFlags(_) | Self::UnknownCoding(_))
    }
}

impl From<MetaFault> for RecordFault {
    fn from(fault: MetaFault) -> Self {
        match fault {
            MetaFault::UnknownKind(kind) => Self::UnknownKind(kind),
            MetaFault::UnknownFlags(bits) => Self::UnknownFlags(bits),
            MetaFault::UnknownCoding(coding) => Self::UnknownCoding(coding),
            MetaFault::Malformed => Self::BadMeta,
        }
    }
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { need } => write!(f, "the bytes end inside a record of {need} bytes"),
            Self::BadLength => write!(f, "record length is impossible"),
            Self::BadCrc => write!(f, "record checksum does not match"),
            Self::BadMeta => MetaFault::Malformed.fmt(f),
            Self::UnknownKind(kind) => MetaFault::UnknownKind(kind).fmt(f),
            Self::UnknownFlags(bits) => MetaFault::UnknownFlags(bits).fmt(f),
            Self::UnknownCoding(coding) => MetaFault::UnknownCoding(coding).fmt(f),
        }
    }
}

/// The bytes that the record at the front of `bytes` says to take. Nothing vouches for the number; use it to know how
/// much to read, never where another record begins.
pub(crate) fn peek_len(bytes: &[u8]) -> Result<usize, RecordFault> {
    let (prefix, len) = lengths(bytes)?;
    Ok(prefix + RECORD_CRC_LEN + len)
}

/// The record at the front of `bytes`, which stands at `lsn` of a segment whose header has `epoch` and `salt`.
pub(crate) fn decode(bytes: &[u8], lsn: Lsn, epoch: u64, salt: u64) -> Result<RecordView<'_>, RecordFault> {
    check_crc(bytes, lsn, epoch, salt)?;
    decode_checked(bytes, lsn)
}

/// The CRC of the record at the front of `bytes` passes at this place; gives the bytes it takes and its CRC field.
pub(crate) fn check_crc(
    bytes: &[u8],
    lsn: Lsn,
    epoch: u64,
    salt: u64,
) -> Result<(usize, [u8; RECORD_CRC_LEN]), RecordFault> {
    let (stored, covered, len, total) = split(bytes)?;
    let mut hasher = Hasher::new();
    hasher.update(covered);
    hasher.update(&len.to_le_bytes());
    if hasher.finalize() ^ record_mix(lsn, epoch, salt) == u32::from_le_bytes(stored)
        || mutation::is_on(Mutation::IgnoreRecordCrc)
    {
        Ok((total, stored))
    } else {
        Err(RecordFault::BadCrc)
    }
}

/// The record at the front of `bytes`, whose CRC the caller has checked.
pub(crate) fn decode_checked(bytes: &[u8], lsn: Lsn) -> Result<RecordView<'_>, RecordFault> {
    let (_, covered, _, stored_len) = split(bytes)?;
    let (meta_len, front) = covered.split_last().ok_or(RecordFault::BadLength)?;
    let at = front.len().checked_sub(usize::from(*meta_len)).ok_or(RecordFault::BadMeta)?;
    let (payload, meta) = front.split_at_checked(at).ok_or(RecordFault::BadMeta)?;
    Ok(RecordView { meta: Meta::decode(meta)?, payload, lsn, stored_len })
}

type Split<'a> = ([u8; RECORD_CRC_LEN], &'a [u8], u32, usize);

/// CRC field, the bytes behind it, their length, and the length of all.
fn split(bytes: &[u8]) -> Result<Split<'_>, RecordFault> {
    let (prefix, len) = lengths(bytes)?;
    let total = prefix + RECORD_CRC_LEN + len;
    let truncated = RecordFault::Truncated { need: total };
    let whole = bytes.get(prefix..total).ok_or(truncated)?;
    let (stored, covered) = whole.split_first_chunk::<RECORD_CRC_LEN>().ok_or(truncated)?;
    let len = u32::try_from(len).map_err(|_| RecordFault::BadLength)?;
    Ok((*stored, covered, len, total))
}

/// Bytes of the length field, and the length that it gives.
fn lengths(bytes: &[u8]) -> Result<(usize, usize), RecordFault> {
    let (len, prefix) = varint::get(bytes).map_err(|fault| match fault {
        Fault::Truncated => RecordFault::Truncated { need: bytes.len() + 1 },
        _ => RecordFault::BadLength,
    })?;
    let len = usize::try_from(len).map_err(|_| RecordFault::BadLength)?;
    // Two bytes of metadata and their length are the least.
    if len < 3 || len > MAX_BODY_LEN as usize { Err(RecordFault::BadLength) } else { Ok((prefix, len)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::lsn::StoreId;
    use crate::format::meta::{EventMeta, SessionMeta};

    const AT: Lsn = Lsn::new(1, 576);

    fn meta() -> Meta {
        Meta::Event(EventMeta {
            more: false,
            coding: 1,
            class: 7,
            dense: 12,
            seq: 300,
            time_ms: Some(1_700_000_000_000),
            replace: None,
        })
    }

    fn stored(payload: &[u8], meta: &Meta) -> Vec<u8> {
        let sealed = RecordDraft::new(payload.to_vec()).seal(meta);
        let mut out = Vec::new();
        sealed.write(&mut out, AT, &Binding { store: StoreId::default(), salt: 99, epoch: 4 });
        assert_eq!(out.len(), sealed.stored_len());
        out
    }

    #[test]
    fn comes_back_only_at_its_own_place() {
        for len in [0, 1, 100, 127, 128, 20_000] {
            let payload = vec![b'x'; len];
            let mut bytes = stored(&payload, &meta());
            let total = bytes.len();
            bytes.extend([1, 2, 3]);
            let view = decode(&bytes, AT, 4, 99).unwrap();
            assert_eq!((view.payload, view.meta, view.stored_len), (payload.as_slice(), meta(), total));
            assert_eq!(peek_len(&bytes), Ok(total));
            assert_eq!(decode(&bytes, Lsn::new(1, 584), 4, 99), Err(RecordFault::BadCrc));
            assert_eq!(decode(&bytes, Lsn::new(2, 576), 4, 99), Err(RecordFault::BadCrc));
            assert_eq!(decode(&bytes, AT, 5, 99), Err(RecordFault::BadCrc));
            assert_eq!(decode(&bytes, AT, 4, 98), Err(RecordFault::BadCrc));
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = stored(b"{\"a\":1}", &meta());
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            bad.resize(4096, 0);
            assert!(decode(&bad, AT, 4, 99).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_payload_in_two_parts_is_the_same_payload() {
        for (front, text) in [("ab", "cd"), ("", "abcd"), ("abcd", "")] {
            let sealed = RecordDraft::with_text(front.into(), text.into()).seal(&meta());
            let mut out = Vec::new();
            let binding = Binding { store: StoreId([7; 16]), salt: 99, epoch: 4 };
            sealed.write(&mut out, AT, &binding);
            assert_eq!((out.len(), &out), (sealed.stored_len(), &stored(b"abcd", &meta())));
        }
    }

    #[test]
    fn every_cut_is_noticed() {
        let bytes = stored(&[b'y'; 300], &meta());
        for len in 0..bytes.len() {
            let Err(RecordFault::Truncated { need }) = decode(&bytes[..len], AT, 4, 99) else {
                panic!("cut at {len}");
            };
            assert!(need > len && need <= bytes.len());
        }
    }

    #[test]
    fn impossible_lengths_are_refused_without_reading_on() {
        assert_eq!(decode(&[2, 0, 0, 0, 0, 0, 0], AT, 1, 1), Err(RecordFault::BadLength));
        assert_eq!(decode(&[0xFF; 64], AT, 1, 1), Err(RecordFault::BadLength));
        let mut huge = Vec::new();
        varint::put(&mut huge, u64::from(MAX_BODY_LEN) + 1);
        assert_eq!(decode(&huge, AT, 1, 1), Err(RecordFault::BadLength));
        varint::put(&mut huge, u64::MAX);
        assert_eq!(peek_len(&huge), Err(RecordFault::BadLength));
    }

    #[test]
    fn metadata_longer_than_the_record_is_refused() {
        let mut bytes = stored(b"", &Meta::Delete(SessionMeta { more: false, dense: 1 }));
        let last = bytes.len() - 1;
        bytes[last] = 200;
        let mut hasher = Hasher::new();
        hasher.update(&bytes[5..]);
        hasher.update(&4u32.to_le_bytes());
        let sum = hasher.finalize() ^ record_mix(AT, 4, 99);
        bytes[1..5].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(decode(&bytes, AT, 4, 99), Err(RecordFault::BadMeta));
    }
}
