//! Stores whose bytes stand for as many things in memory as bytes can: what a forged store may cost (G7).
//!
//! Every checksum is right, so nothing is passed over as damage but what a crowd is of.

use crate::event::Class;
use crate::format::constants::coding;
use crate::format::directory::{DirEntry, RunKey, write_run};
use crate::format::meta::{AcceptLossMeta, CreateMeta, EventMeta, ForkMeta, IndexPartMeta, SessionMeta};
use crate::format::{
    Binding, Control, ControlSlot, DamageReason, Ending, FIRST_FRAME, FrameBuilder, LiveDamage, LiveSet, Lsn,
    Meta, RecordDraft, SegmentHeader, StoreId, blocks, frame_kind, names, payload, varint,
};

const STORE: StoreId = StoreId([7; 16]);
const BINDING: Binding = Binding { store: STORE, salt: 1, epoch: 1 };
/// Records of a frame: a frame of all would be one buffer.
const RECORDS: usize = 5000;

/// What there are many of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crowd {
    /// Sessions with one chunk and no create record, ascending.
    Chunks,
    /// Sessions with one event of the surface and no create record, descending.
    Surface,
    /// The same in a segment that has ended and has no index file.
    Ended,
    /// The same in a frame each.
    Frames,
    /// The same, named by an index frame alone: behind records that nobody reads.
    IndexPart,
    /// Create records with the shortest ids and headers.
    Creates,
    /// Create records of sessions that were never published.
    Staged,
    /// Forks, each of another session.
    Forks,
    /// Deletes of sessions that nothing created.
    Deletes,
    /// Publications of such.
    Publishes,
    /// Losses accepted for such.
    Accepted,
    /// Damaged records, each between two sound ones.
    Damage,
    /// Whole records that no writer makes.
    Refused,
    /// Damaged ranges in LIVE.
    Ranges,
    /// Sessions in directory runs that are to be merged.
    Runs,
}

impl Crowd {
    /// Every kind.
    pub const ALL: [Self; 15] = [
        Self::Chunks,
        Self::Surface,
        Self::Ended,
        Self::Frames,
        Self::IndexPart,
        Self::Creates,
        Self::Staged,
        Self::Forks,
        Self::Deletes,
        Self::Publishes,
        Self::Accepted,
        Self::Damage,
        Self::Refused,
        Self::Ranges,
        Self::Runs,
    ];

    /// The files of a store with `count` of them, by name.
    #[must_use]
    pub fn files(self, count: u64) -> Vec<(String, Vec<u8>)> {
        let mut store = Store::default();
        let mut segment = Segment::new(1, &first_header());
        match self {
            Self::Frames => (1..=count).for_each(|dense| segment.frame([self.record(dense)].into_iter())),
            Self::IndexPart => store.slot = index_part(&mut segment, count),
            Self::Ranges => store.live.damage = (0..count).map(range).collect(),
            Self::Runs => runs(&mut store, count),
            _ => {
                let numbers: Vec<u64> =
                    if self == Self::Surface { (1..=count).rev().collect() } else { (1..=count).collect() };
                for some in numbers.chunks(RECORDS) {
                    segment.frame(some.iter().map(|dense| self.record(*dense)));
                }
                if matches!(self, Self::Damage | Self::Refused) {
                    if self == Self::Damage {
                        segment.hurt();
                    }
                    let durable = Lsn::new(1, segment.end);
                    store.slot = ControlSlot { durable, written: durable, ..store.slot };
                }
            }
        }
        let ended = matches!(self, Self::Ended | Self::Runs);
        let next = SegmentHeader {
            number: 2,
            previous: 1,
            previous_end: segment.end,
            previous_chain: segment.chain,
            previous_why: Ending::Sealed,
            ..first_header()
        };
        store.files.push((names::segment(1), segment.bytes));
        if ended {
            // Closed, so that a writer goes on in it, and has nothing to do but what is of interest.
            let mut last = Segment::new(2, &next);
            last.frame_of(frame_kind::CLOSE, std::iter::empty());
            store.files.push((names::segment(2), last.bytes));
            store.slot.active = 2;
        }
        store.finish()
    }

    fn record(self, dense: u64) -> (Vec<u8>, Meta) {
        let session = SessionMeta { more: false, dense };
        match self {
            Self::Creates | Self::Staged => {
                let meta = CreateMeta { more: false, staged: self == Self::Staged, dense };
                (identity(dense), Meta::Create(meta))
            }
            Self::Forks => {
                let (more, staged, turn_open) = (false, false, false);
                let (parent, ancestor, cut) = (dense, dense, 1);
                let meta = ForkMeta { more, staged, dense: dense + 1, parent, ancestor, cut, turn_open };
                (identity(dense), Meta::Fork(meta))
            }
            Self::Deletes | Self::Damage => (Vec::new(), Meta::Delete(session)),
            Self::Refused => (Vec::new(), Meta::Delete(SessionMeta { more: false, dense: 0 })),
            Self::Publishes => (Vec::new(), Meta::Publish(session)),
            Self::Accepted => {
                (Vec::new(), Meta::AcceptLoss(AcceptLossMeta { more: false, dense, next_seq: 1 }))
            }
            // The payload does not decode, and need not: opening reads none.
            _ => (Vec::new(), Meta::Event(self.event(dense))),
        }
    }

    fn event(self, dense: u64) -> EventMeta {
        let class = if self == Self::Chunks { Class::Chunk } else { Class::UserMessage };
        EventMeta {
            more: false,
            coding: coding::CHUNK,
            class: class as u8,
            dense,
            seq: 0,
            time_ms: Some(0),
            replace: None,
        }
    }
}

/// The shortest header there can be, under one of as many short ids as it takes.
fn identity(dense: u64) -> Vec<u8> {
    let id: String = [dense % 90, dense / 90 % 90, dense / 8100 % 90]
        .into_iter()
        .filter(|digit| *digit > 0)
        .filter_map(|digit| char::from_u32(u32::try_from(digit).ok()? + 0x23))
        .collect();
    let id = if id.is_empty() { "!" } else { &id };
    let mut bytes = Vec::new();
    payload::encode_session(id, r#"{"type":"session","version":0,"id":"!","createdAt":0}"#, &mut bytes);
    bytes
}

fn first_header() -> SegmentHeader {
    SegmentHeader {
        store: STORE,
        number: 1,
        previous: 0,
        epoch: 1,
        salt: 1,
        previous_end: 0,
        previous_chain: 0,
        previous_why: Ending::None,
        next_dense: 1,
        capacity: 1 << 28,
        padded: false,
    }
}

/// A segment under construction.
struct Segment {
    bytes: Vec<u8>,
    end: u32,
    chain: u32,
    number: u32,
}

impl Segment {
    fn new(number: u32, header: &SegmentHeader) -> Self {
        let (front, chain) = header.encode();
        Self { bytes: front.to_vec(), end: FIRST_FRAME, chain, number }
    }

    fn frame(&mut self, records: impl Iterator<Item = (Vec<u8>, Meta)>) {
        self.frame_of(frame_kind::DATA, records);
    }

    fn frame_of(&mut self, kind: u8, records: impl Iterator<Item = (Vec<u8>, Meta)>) {
        let mut frame = FrameBuilder::new(Lsn::new(self.number, self.end), 1, BINDING, false);
        for (payload, meta) in records {
            frame.push(&RecordDraft::new(payload).seal(&meta));
        }
        let finished = frame.finish(kind, Lsn::NONE, self.chain);
        self.bytes.extend_from_slice(frame.bytes());
        (self.end, self.chain) = (finished.end.offset(), finished.crc);
    }

    /// Changes the checksum of every other record of the segment, all of which are equally long up to their number.
    fn hurt(&mut self) {
        let context = crate::format::ScanContext {
            binding: BINDING,
            min_epoch: 1,
            max_epoch: 1,
            chain: None,
            end_limit: 1 << 28,
        };
        let (mut at, mut places) = (FIRST_FRAME, Vec::new());
        while at < self.end {
            let bytes = self.bytes.get(at as usize..).unwrap_or_default();
            let step = crate::format::read_frame(bytes, Lsn::new(self.number, at), &context);
            let crate::format::FrameStep::Frame(view) = step else { break };
            places.extend(view.records().flatten().map(|record| record.lsn.offset() as usize + 1));
            at = view.end.offset();
        }
        for place in places.into_iter().step_by(2) {
            if let Some(byte) = self.bytes.get_mut(place) {
                *byte ^= 0xFF;
            }
        }
    }
}

/// An index frame that names `count` sessions, behind as many bytes as their events need. The slot of CONTROL that leads
/// to it.
fn index_part(segment: &mut Segment, count: u64) -> ControlSlot {
    let mut part = Vec::new();
    varint::put(&mut part, count);
    for number in 1..=count {
        // Dense delta; first seq, count, bytes, two times, flags, previous; the offset; a surface entry.
        part.extend_from_slice(&[1, 0, 1, 0, 0, 0, 0, 0]);
        varint::put(&mut part, 600 + number);
        part.extend_from_slice(&[1, 0, Class::UserMessage as u8, 1]);
    }
    part.push(0);
    let before = usize::try_from(count * 17).unwrap_or(usize::MAX);
    segment.bytes.resize(segment.bytes.len() + before.next_multiple_of(8), 1);
    segment.end = u32::try_from(segment.bytes.len()).unwrap_or(u32::MAX);
    let at = Lsn::new(segment.number, segment.end);
    let meta = Meta::IndexPart(IndexPartMeta { previous: 0 });
    segment.frame_of(frame_kind::INDEX, [(part, meta)].into_iter());
    let durable = Lsn::new(segment.number, segment.end);
    ControlSlot { last_index: at, durable, written: durable, ..Store::default().slot }
}

fn range(number: u64) -> LiveDamage {
    let from = 600 + u32::try_from(number).unwrap_or(0) * 16;
    LiveDamage { segment: 1, from, to: from + 8, reason: DamageReason::BadBytes }
}

/// Three runs that are to be merged, up to the end of an empty segment.
fn runs(store: &mut Store, count: u64) {
    let ends = [Lsn::NONE, Lsn::new(0, 1), Lsn::new(0, 2), Lsn::new(1, FIRST_FRAME)];
    for (number, pair) in (0u64..).zip(ends.windows(2)) {
        let &[from, to] = pair else { continue };
        let key = RunKey { store: STORE, from, to };
        let each = count / 3;
        let entry = |dense| DirEntry {
            dense,
            id: "!".into(),
            header_json: "{}".into(),
            deleted: false,
            staged: false,
            open_turn: false,
            damaged: false,
            last_segment: 1,
            own_first: 0,
            next_seq: 1,
            bytes: 20,
            first_time: None,
            last_time: None,
            fork: None,
            damage_from: 0,
            accepted: 0,
        };
        let bytes = blocks::in_memory(|sink| {
            let all = |take: &mut dyn FnMut(&DirEntry)| {
                (number * each + 1..=number * each + each).for_each(|dense| take(&entry(dense)));
            };
            write_run(&key, count + 1, usize::try_from(each).unwrap_or(0), &all, sink)
        });
        store.files.push((names::run(from, to), bytes));
    }
}

/// The files around the segments.
struct Store {
    slot: ControlSlot,
    live: LiveSet,
    files: Vec<(String, Vec<u8>)>,
}

impl Default for Store {
    fn default() -> Self {
        let slot = ControlSlot {
            store: STORE,
            epoch: 1,
            live_version: 1,
            active: 1,
            active_salt: 1,
            active_epoch: 1,
            next_dense: 1,
            ..ControlSlot::default()
        };
        Self { slot, live: LiveSet { store: STORE, version: 1, ..LiveSet::default() }, files: Vec::new() }
    }
}

impl Store {
    fn finish(mut self) -> Vec<(String, Vec<u8>)> {
        self.files.push((names::CONTROL.to_owned(), Control::encode_new(&self.slot)));
        self.files.push((names::LIVE.to_owned(), self.live.encode()));
        self.files
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::forge::{self, Mend};
    use super::super::small_store::{self, open_read_only};
    use super::*;
    use crate::testing::SimDisk;
    use crate::{ErrorKind, Result, SessionStore};

    fn disk(crowd: Crowd, count: u64) -> SimDisk {
        let disk = SimDisk::new();
        crowd.files(count).iter().for_each(|(name, bytes)| disk.install(name, bytes));
        disk
    }

    /// The store of one event, whose record has the byte `value` at `at` of its metadata, under fresh checksums.
    fn patched(at: usize, value: u8) -> Result<SessionStore> {
        let disk = disk(Crowd::Chunks, 1);
        let mut bytes = disk.contents(&names::segment(1)).unwrap();
        // Behind segment header, frame header, the record's length and its checksum; its payload is empty.
        bytes[512 + 64 + 1 + 4 + at] = value;
        forge::segment(&mut bytes, Mend(0xFF));
        disk.install(&names::segment(1), &bytes);
        open_read_only(Arc::new(disk))
    }

    #[test]
    fn every_crowd_is_there() {
        for crowd in Crowd::ALL {
            let disk = Arc::new(disk(crowd, 30));
            let seen = |store: SessionStore| (store.stored().unwrap().count(), store.recovery().losses.len());
            let expected = match crowd {
                Crowd::Staged | Crowd::Deletes => (0, 0),
                Crowd::Damage => (0, 15),
                Crowd::Refused => (0, 1),
                Crowd::Ranges => (0, 30),
                _ => (30, 0),
            };
            let reader = open_read_only(Arc::new(disk.other_process())).unwrap();
            assert_eq!(seen(reader), expected, "{crowd:?}");
            assert_eq!(seen(small_store::open(disk).unwrap()), expected, "{crowd:?}");
        }
    }

    #[test]
    fn a_record_of_a_later_version_refuses_the_store_by_name() {
        for (at, value, name) in [(0, 9, "record kind 9"), (1, 0x20, "flag"), (2, 5, "coding 5")] {
            let error = patched(at, value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Version, "{error}");
            assert!(
                error.to_string().contains(name) && error.to_string().contains("00000001.seg"),
                "{error}"
            );
        }
        assert!(patched(1, 0).unwrap().recovery().losses.is_empty());
    }

    #[test]
    fn a_header_shorter_than_any_is_damage() {
        let store = open_read_only(Arc::new(disk(Crowd::Creates, 1))).unwrap();
        assert_eq!(store.stored().unwrap().count(), 1);
        let mut segment = Segment::new(1, &first_header());
        let mut payload = Vec::new();
        payload::encode_session("id", r#"{"type":"session","version":0,"createdAt":12345678}"#, &mut payload);
        let meta = CreateMeta { more: false, staged: false, dense: 1 };
        segment.frame([(payload, Meta::Create(meta))].into_iter());
        let disk = disk(Crowd::Creates, 1);
        disk.install(&names::segment(1), &segment.bytes);
        let store = open_read_only(Arc::new(disk)).unwrap();
        assert_eq!((store.stored().unwrap().count(), store.recovery().losses.len()), (0, 1));
    }

    #[test]
    fn a_session_without_its_create_record_is_read_resumed_and_deleted_under_its_number() {
        let disk = Arc::new(disk(Crowd::Surface, 3));
        let store = small_store::open(Arc::clone(&disk)).unwrap();
        let ids = |store: &SessionStore| -> Vec<String> {
            store.stored().unwrap().map(|stat| stat.unwrap().id).collect()
        };
        assert_eq!(ids(&store), ["lost:1", "lost:2", "lost:3"]);
        let stat = store.stored().unwrap().nth(1).unwrap().unwrap();
        assert_eq!((stat.events, store.open("lost:2").unwrap().events().count()), (1, 1));
        assert!(store.open("lost:4").is_err() && store.open("lost:02").is_err());
        store.delete("lost:2").unwrap();
        assert_eq!(ids(&store), ["lost:1", "lost:3"]);
        store.close().unwrap();
        let store = small_store::open(disk).unwrap();
        assert_eq!(ids(&store), ["lost:1", "lost:3"]);
    }

    #[test]
    fn a_whole_record_that_no_writer_makes_is_damage() {
        // No session has the number 0.
        let store = patched(3, 0).unwrap();
        let [loss] = store.recovery().losses.as_slice() else { panic!("{:?}", store.recovery()) };
        assert_eq!((loss.offset, loss.message.as_str()), (576, "bytes that no writer put there"));
    }
}
