//! A frame under construction, filled under the log's lock. Always: how long the finished frame will be is known before
//! each push; a push copies, computes one small checksum, and allocates only when its buffers grow. Never: input and
//! output, or a look at what is in the records.

use super::checksum::{RecordsCrc, table_crc};
use super::constants::{FRAME_HEADER_LEN, MAX_BODY_LEN, PAD_BYTE, SECTOR};
use super::frame::{FrameHeader, padded_end};
use super::lsn::{Binding, Lsn};
use super::record::{SealedRecord, peek_len};
use super::varint;

const OVERFLOW: &str = "the log asks for the length before it adds to a frame, so a frame fits its segment";

/// Collects records into one frame.
#[derive(Debug)]
pub(crate) struct FrameBuilder {
    start: Lsn,
    epoch: u64,
    binding: Binding,
    padded: bool,
    /// Room for the header, the records, and once finished table and pad.
    bytes: Vec<u8>,
    /// Where the records end in `bytes`.
    records_end: usize,
    table: Vec<u8>,
    count: u32,
    records_crc: RecordsCrc,
}

/// What the next frame needs to know of a finished one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FinishedFrame {
    /// Its header CRC: the chain field of the next frame.
    pub(crate) crc: u32,
    /// Where the next frame starts.
    pub(crate) end: Lsn,
}

impl FrameBuilder {
    /// An empty frame of `epoch` that will stand at `start`; `padded` as the segment header says.
    pub(crate) fn new(start: Lsn, epoch: u64, binding: Binding, padded: bool) -> Self {
        let mut new = Self {
            start,
            epoch,
            binding,
            padded,
            bytes: Vec::with_capacity(64 << 10),
            records_end: FRAME_HEADER_LEN,
            table: Vec::with_capacity(4 << 10),
            count: 0,
            records_crc: RecordsCrc::default(),
        };
        new.reset(start);
        new
    }

    /// Empties the frame for another one at `start` of the same segment; buffers are kept.
    pub(crate) fn reset(&mut self, start: Lsn) {
        self.start = start;
        self.bytes.clear();
        self.bytes.resize(FRAME_HEADER_LEN, 0);
        self.records_end = FRAME_HEADER_LEN;
        self.table.clear();
        self.count = 0;
        self.records_crc = RecordsCrc::default();
    }

    /// Empties the frame for one in another segment; buffers are kept.
    pub(crate) fn rebind(&mut self, start: Lsn, epoch: u64, binding: Binding, padded: bool) {
        (self.epoch, self.binding, self.padded) = (epoch, binding, padded);
        self.reset(start);
    }

    pub(crate) fn start(&self) -> Lsn {
        self.start
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn record_count(&self) -> u32 {
        self.count
    }

    /// Bytes of records so far.
    pub(crate) fn records_len(&self) -> usize {
        self.records_end - FRAME_HEADER_LEN
    }

    /// Length of the frame if records of these stored lengths were added and it was finished then; `u32::MAX` where no
    /// frame can be that long.
    pub(crate) fn len_if(&self, extra: &[usize]) -> u32 {
        let table: usize = extra.iter().map(|len| varint::len(*len as u64)).sum();
        self.len_if_sums(extra.iter().sum(), table)
    }

    /// [`len_if`](Self::len_if) for the sums of the stored lengths and of their table entries (`varint::len` of each).
    pub(crate) fn len_if_sums(&self, records: usize, table: usize) -> u32 {
        let body = self.records_len() + records + self.table.len() + table;
        if body > MAX_BODY_LEN as usize {
            return u32::MAX;
        }
        let start = u64::from(self.start.offset());
        let end = padded_end(start + (FRAME_HEADER_LEN + body) as u64, self.padded);
        // An end that no offset can name is as much out of reach as a frame that is too long.
        if end > u64::from(u32::MAX) { u32::MAX } else { u32::try_from(end - start).unwrap_or(u32::MAX) }
    }

    /// Adds a record and says where it stands. [`len_if`](Self::len_if) was asked before, so it fits.
    pub(crate) fn push(&mut self, record: &SealedRecord) -> Lsn {
        let lsn = self.start.advance(self.bytes.len()).expect(OVERFLOW);
        let stored = record.write(&mut self.bytes, lsn, &self.binding);
        self.records_crc.add(stored);
        varint::put(&mut self.table, record.stored_len() as u64);
        self.records_end = self.bytes.len();
        self.count += 1;
        lsn
    }

    /// The stored bytes of the record that a push put at `lsn`.
    pub(crate) fn read_record(&self, lsn: Lsn) -> Option<&[u8]> {
        if lsn.segment() != self.start.segment() {
            return None;
        }
        let at = usize::try_from(lsn.offset().checked_sub(self.start.offset())?).ok()?;
        if at < FRAME_HEADER_LEN {
            return None;
        }
        let rest = self.bytes.get(at..self.records_end)?;
        rest.get(..peek_len(rest).ok()?)
    }

    /// Writes table, pad and header. `chain` is the header CRC of the frame before; `durable` see E1.
    pub(crate) fn finish(&mut self, kind: u8, durable: Lsn, chain: u32) -> FinishedFrame {
        self.bytes.truncate(self.records_end);
        self.bytes.extend_from_slice(&self.table);
        let start = u64::from(self.start.offset());
        let body_end = start + self.bytes.len() as u64;
        let end = padded_end(body_end, self.padded);
        let pad_len = u16::try_from(end - body_end).expect("a pad is shorter than a page");
        let body_len = u32::try_from(self.bytes.len() - FRAME_HEADER_LEN).expect(OVERFLOW);
        self.bytes.resize(self.bytes.len() + usize::from(pad_len), PAD_BYTE);
        let tail = self.bytes.get(self.records_end..).unwrap_or_default();
        let header = FrameHeader {
            kind,
            header_len: 64,
            codec: 0,
            key: 0,
            body_len,
            pad_len,
            record_count: self.count,
            table_len: u32::try_from(self.table.len()).expect(OVERFLOW),
            lsn: self.start,
            epoch: self.epoch,
            durable,
            chain,
            table_crc: table_crc(tail, &[], self.binding.salt, self.start),
            records_crc: self.records_crc.finish(),
        };
        let (encoded, crc) = header.encode(&self.binding);
        if let Some(front) = self.bytes.first_chunk_mut::<FRAME_HEADER_LEN>() {
            *front = encoded;
        }
        let end = self.start.advance(self.bytes.len()).expect(OVERFLOW);
        FinishedFrame { crc, end }
    }

    /// Header, records, table and pad once finished.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A frame without records: seal, close, continue or witness; and its header CRC.
pub(crate) fn empty_frame(
    kind: u8,
    lsn: Lsn,
    epoch: u64,
    durable: Lsn,
    chain: u32,
    binding: &Binding,
    padded: bool,
) -> (Vec<u8>, u32) {
    let mut builder = FrameBuilder {
        start: lsn,
        epoch,
        binding: *binding,
        padded,
        bytes: vec![0; FRAME_HEADER_LEN],
        records_end: FRAME_HEADER_LEN,
        table: Vec::new(),
        count: 0,
        records_crc: RecordsCrc::default(),
    };
    let finished = builder.finish(kind, durable, chain);
    (builder.bytes, finished.crc)
}

const _: () = assert!(SECTOR.is_multiple_of(FRAME_HEADER_LEN));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::constants::frame_kind;
    use crate::format::lsn::StoreId;
    use crate::format::meta::{Meta, SessionMeta};
    use crate::format::record::{self, RecordDraft};
    use proptest::prelude::*;

    const BINDING: Binding = Binding { store: StoreId([1; 16]), salt: 77, epoch: 2 };

    fn sealed(payload: Vec<u8>) -> SealedRecord {
        RecordDraft::new(payload).seal(&Meta::Delete(SessionMeta { more: false, dense: 9 }))
    }

    proptest! {
        #[test]
        fn the_foretold_length_is_the_length(
            sizes in prop::collection::vec(0usize..700, 1..40),
            start in (0u32..200).prop_map(|n| 512 + n * 64),
            padded in any::<bool>(),
        ) {
            let start = Lsn::new(1, if padded { start.next_multiple_of(4096) } else { start });
            let mut builder = FrameBuilder::new(start, 3, BINDING, padded);
            let records: Vec<_> = sizes.iter().map(|n| sealed(vec![b'x'; *n])).collect();
            let lens: Vec<_> = records.iter().map(SealedRecord::stored_len).collect();
            let whole = builder.len_if(&lens);
            let mut places = Vec::new();
            for (index, one) in records.iter().enumerate() {
                prop_assert_eq!(builder.len_if(&lens[index..]), whole);
                places.push(builder.push(one));
            }
            let finished = builder.finish(frame_kind::DATA, Lsn::new(1, 512), 5);
            prop_assert_eq!(builder.bytes().len() as u64, u64::from(whole));
            prop_assert_eq!(finished.end, start.advance(whole as usize).unwrap());
            let (header, crc) = FrameHeader::decode(builder.bytes(), &BINDING).unwrap();
            prop_assert_eq!((crc, header.frame_len()), (finished.crc, u64::from(whole)));
            prop_assert_eq!((header.record_count as usize, header.chain), (sizes.len(), 5));
            for (lsn, size) in places.iter().zip(&sizes) {
                let bytes = builder.read_record(*lsn).unwrap();
                let view = record::decode(bytes, *lsn, 2, BINDING.salt).unwrap();
                prop_assert_eq!(view.payload.len(), *size);
                prop_assert_eq!(view.stored_len, bytes.len());
            }
        }
    }

    #[test]
    fn a_reset_builder_gives_the_same_bytes_as_a_new_one() {
        let start = Lsn::new(2, 1024);
        let mut old = FrameBuilder::new(Lsn::new(1, 512), 3, Binding { salt: 1, ..BINDING }, true);
        old.push(&sealed(vec![b'q'; 900]));
        old.finish(frame_kind::DATA, Lsn::NONE, 1);
        old.rebind(start, 4, BINDING, false);
        assert!(old.is_empty());
        let mut new = FrameBuilder::new(start, 4, BINDING, false);
        for builder in [&mut old, &mut new] {
            builder.push(&sealed(b"abc".to_vec()));
            builder.finish(frame_kind::DATA, Lsn::NONE, 2);
        }
        assert_eq!(old.bytes(), new.bytes());
    }

    #[test]
    fn places_outside_the_records_hold_none() {
        let mut builder = FrameBuilder::new(Lsn::new(1, 512), 3, BINDING, false);
        let lsn = builder.push(&sealed(b"abc".to_vec()));
        builder.finish(frame_kind::DATA, Lsn::NONE, 2);
        assert!(builder.read_record(lsn).is_some());
        for other in [Lsn::new(1, 512), Lsn::new(1, 0), Lsn::new(2, lsn.offset()), Lsn::new(1, 640)] {
            assert_eq!(builder.read_record(other), None);
        }
    }

    #[test]
    fn frames_that_no_offset_can_reach_are_out_of_reach() {
        let builder = FrameBuilder::new(Lsn::new(1, u32::MAX - 4095), 3, BINDING, false);
        assert_eq!(builder.len_if(&[5000]), u32::MAX);
        assert!(builder.len_if(&[100]) < 4096);
        let builder = FrameBuilder::new(Lsn::new(1, 512), 3, BINDING, false);
        assert_eq!(builder.len_if(&[MAX_BODY_LEN as usize]), u32::MAX);
    }

    #[test]
    fn frames_without_records_are_a_header_and_its_pad() {
        for kind in [frame_kind::SEAL, frame_kind::CLOSE, frame_kind::CONTINUE, frame_kind::WITNESS] {
            let (bytes, crc) = empty_frame(kind, Lsn::new(1, 960), 3, Lsn::new(1, 960), 8, &BINDING, false);
            assert_eq!(bytes.len(), 64);
            assert_eq!(FrameHeader::decode(&bytes, &BINDING).unwrap().1, crc);
        }
        let (bytes, _) = empty_frame(frame_kind::SEAL, Lsn::new(1, 4096), 3, Lsn::NONE, 8, &BINDING, true);
        assert_eq!(bytes.len(), 4096);
    }
}
