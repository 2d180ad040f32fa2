//! The bytes of every golden vector, made by the encoders and, for what no encoder makes, by changes to them.

use super::describe;
use crate::format::checksum::crc;
use crate::format::constants::{coding, frame_kind};
use crate::format::control::{Control, ControlSlot, State};
use crate::format::frame_builder::{FrameBuilder, empty_frame};
use crate::format::live::{DamageReason, LiveDamage, LiveEntry, LiveSet, Member};
use crate::format::lock_info::LockInfo;
use crate::format::lsn::{Binding, Lsn, StoreId};
use crate::format::meta::{
    AcceptLossMeta, CreateMeta, DamageMeta, EventMeta, ForkMeta, IndexPartMeta, Meta, SessionMeta,
};
use crate::format::record::{RecordDraft, SealedRecord};
use crate::format::scan::ScanContext;
use crate::format::segment_header::{Ending, SegmentHeader};

/// What the vector is an example of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Good,
    Torn,
    Damaged,
    /// Whole, of a later format.
    Refused,
}

/// How the vector is to be read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    SegmentHeader,
    Segment,
    Frame(ScanContext),
    Record,
    Control,
    Live,
    Lock,
}

pub(super) struct Vector {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) verdict: Verdict,
    /// Where its first byte stands.
    pub(super) at: Lsn,
    pub(super) bytes: Vec<u8>,
}

impl Vector {
    pub(super) fn describe(&self, bytes: &[u8]) -> describe::Described {
        match &self.kind {
            Kind::SegmentHeader => describe::segment_header(bytes),
            Kind::Segment => describe::segment(bytes),
            Kind::Frame(ctx) => describe::frame(bytes, self.at, ctx),
            Kind::Record => describe::record(bytes, self.at, &BINDING),
            Kind::Control => describe::control(bytes),
            Kind::Live => describe::live(bytes),
            Kind::Lock => describe::lock(bytes),
        }
    }
}

pub(super) const STORE: StoreId = StoreId(*b"sessionlog-store");
/// What every frame and record vector is bound to: segment 2 of `header_next`.
pub(super) const BINDING: Binding = Binding { store: STORE, salt: 0x1122_3344_5566_7788, epoch: 3 };
const FRAME_AT: Lsn = Lsn::new(2, 512);
const CHAIN: u32 = 0xC0FF_EE00;
const TIME: u64 = 1_760_000_000_000;

fn header_first() -> SegmentHeader {
    SegmentHeader {
        store: STORE,
        number: 1,
        previous: 0,
        epoch: 1,
        salt: 0x0102_0304_0506_0708,
        previous_end: 0,
        previous_chain: 0,
        previous_why: Ending::None,
        next_dense: 1,
        capacity: 64 << 20,
        padded: false,
    }
}

fn header_next() -> SegmentHeader {
    SegmentHeader {
        number: 2,
        previous: 1,
        epoch: BINDING.epoch,
        salt: BINDING.salt,
        previous_end: 1184,
        previous_chain: 0x89AB_CDEF,
        previous_why: Ending::Torn,
        next_dense: 300,
        padded: true,
        ..header_first()
    }
}

fn event(dense: u64, seq: u64, class: u8, coding: u8, payload: &[u8]) -> (Meta, Vec<u8>) {
    let time_ms = Some(TIME + seq);
    (
        Meta::Event(EventMeta { more: false, coding, class, dense, seq, time_ms, replace: None }),
        payload.to_vec(),
    )
}

/// Create of the session `s1`, with the header's JSON.
fn create(dense: u64) -> (Meta, Vec<u8>) {
    let mut payload = vec![2];
    payload.extend(br#"s1{"type":"session","version":0,"id":"s1","createdAt":1760000000000}"#);
    (Meta::Create(CreateMeta { more: false, staged: false, dense }), payload)
}

/// A user's message, coded plain: it is appended to the surface, and its data follows.
fn message(dense: u64, seq: u64) -> (Meta, Vec<u8>) {
    event(dense, seq, 7, coding::PLAIN, b"\x01{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}")
}

/// A text delta, coded as a chunk: shape 1, turn 1, step 1, index 0.
fn chunk(dense: u64, seq: u64) -> (Meta, Vec<u8>) {
    event(dense, seq, 0, coding::CHUNK, b"\x01\x01\x01\x00 me")
}

fn seal((meta, payload): &(Meta, Vec<u8>), more: bool) -> SealedRecord {
    RecordDraft::new(payload.clone()).seal(&meta.with_more(more))
}

/// A batch of `records` as one frame.
fn frame_of(
    kind: u8,
    at: Lsn,
    chain: u32,
    padded: bool,
    binding: Binding,
    records: &[(Meta, Vec<u8>)],
) -> Vec<u8> {
    let mut builder = FrameBuilder::new(at, binding.epoch, binding, padded);
    for (index, record) in records.iter().enumerate() {
        builder.push(&seal(record, index + 1 < records.len()));
    }
    builder.finish(kind, at, chain);
    builder.bytes().to_vec()
}

fn data_frame() -> Vec<u8> {
    frame_of(
        frame_kind::DATA,
        FRAME_AT,
        CHAIN,
        false,
        BINDING,
        &[create(300), message(300, 0), chunk(300, 1)],
    )
}

/// The segment of example.md: a session and its first event, another event, a close frame, and zeros to 2048.
pub(super) fn example_segment() -> Vec<u8> {
    let header = header_first();
    let binding = header.binding();
    let (sector, mut chain) = header.encode();
    let mut file = sector.to_vec();
    let mut durable = Lsn::new(1, SegmentHeader::LEN);
    for batch in [vec![create(1), message(1, 0)], vec![chunk(1, 1)]] {
        let at = Lsn::new(1, u32::try_from(file.len()).unwrap());
        let mut builder = FrameBuilder::new(at, header.epoch, binding, false);
        for (index, record) in batch.iter().enumerate() {
            builder.push(&seal(record, index + 1 < batch.len()));
        }
        let finished = builder.finish(frame_kind::DATA, durable, chain);
        file.extend(builder.bytes());
        (chain, durable) = (finished.crc, finished.end);
    }
    let (close, _) = empty_frame(frame_kind::CLOSE, durable, header.epoch, durable, chain, &binding, false);
    file.extend(close);
    file.resize(2048, 0);
    file
}

/// Where its second frame starts.
const SECOND: u32 = 720;

/// A segment with one frame that reaches into four sectors.
fn long_segment() -> Vec<u8> {
    let header = header_first();
    let (sector, chain) = header.encode();
    let mut file = sector.to_vec();
    let text = format!("\u{1}{{\"text\":\"{}\"}}", "x".repeat(1500));
    let big = event(1, 0, 7, coding::PLAIN, text.as_bytes());
    file.extend(frame_of(
        frame_kind::DATA,
        Lsn::new(1, 512),
        chain,
        false,
        header.binding(),
        &[create(1), big],
    ));
    file.resize(4096, 0);
    file
}

fn slot(counter: u64) -> ControlSlot {
    ControlSlot {
        state: if counter.is_multiple_of(2) { State::Open } else { State::Closed },
        store: STORE,
        epoch: 3,
        counter,
        durable: Lsn::new(2, 4096),
        written: Lsn::new(2, 8192),
        live_version: 1,
        directory_to: Lsn::new(1, 1184),
        last_index: Lsn::NONE,
        next_dense: 301,
        active: 2,
        active_salt: BINDING.salt,
        active_epoch: BINDING.epoch,
    }
}

fn control_of(slots: [&[u8]; 2]) -> Vec<u8> {
    let mut file = vec![0; 8192];
    for (at, slot) in [0, 4096].into_iter().zip(slots) {
        file[at..at + slot.len()].copy_from_slice(slot);
    }
    file
}

fn live_set() -> LiveSet {
    let entry = |number, state, replacement| LiveEntry { number, state, replacement };
    let entries =
        vec![entry(1, Member::Retired, 0), entry(2, Member::Replaced, 4), entry(4, Member::Live, 0)];
    let lost = |segment, from, to, reason| LiveDamage { segment, from, to, reason };
    let damage =
        vec![lost(3, 512, 1024, DamageReason::BadBytes), lost(5, 0, 4096, DamageReason::MissingFile)];
    LiveSet { store: STORE, version: 7, through: 4, entries, damage }
}

/// `bytes` after `change`, under a fresh CRC of everything before `crc_at`.
fn forged(mut bytes: Vec<u8>, crc_at: usize, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    change(&mut bytes);
    let sum = crc(&bytes[..crc_at]);
    bytes[crc_at..crc_at + 4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn changed(mut bytes: Vec<u8>, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    change(&mut bytes);
    bytes
}

/// A frame header of 80 bytes, as a later writer of version 1 may give: 16 bytes that this one does not know.
fn longer_header() -> Vec<u8> {
    let (mut bytes, _) = empty_frame(frame_kind::WITNESS, FRAME_AT, 3, FRAME_AT, CHAIN, &BINDING, false);
    bytes[5] = 10;
    bytes.extend([0xEE; 16]);
    let mut covered = bytes[..60].to_vec();
    covered.extend(&bytes[64..]);
    covered.extend(BINDING.salt.to_le_bytes());
    covered.extend(BINDING.store.0);
    bytes[60..64].copy_from_slice(&crc(&covered).to_le_bytes());
    bytes
}

struct List(Vec<Vector>);

impl List {
    fn add(&mut self, verdict: Verdict, kind: Kind, name: &'static str, bytes: Vec<u8>) {
        let at = match kind {
            Kind::Frame(_) => FRAME_AT,
            Kind::Record => Lsn::new(2, 576),
            _ => Lsn::NONE,
        };
        self.0.push(Vector { name, kind, verdict, at, bytes });
    }

    fn segments(&mut self) {
        let (good, later, damaged) = (Verdict::Good, Verdict::Refused, Verdict::Damaged);
        let kind = Kind::SegmentHeader;
        let next = header_next().encode().0.to_vec();
        self.add(good, kind, "segment-header-first", header_first().encode().0.to_vec());
        self.add(good, kind, "segment-header-next", next.clone());
        self.add(damaged, kind, "segment-header-flipped", changed(next.clone(), |b| b[50] ^= 4));
        self.add(damaged, kind, "segment-header-cut", next[..511].to_vec());
        self.add(damaged, kind, "segment-header-no-salt", forged(next.clone(), 508, |b| b[48..56].fill(0)));
        self.add(later, kind, "segment-header-version-2", forged(next.clone(), 508, |b| b[8] = 2));
        self.add(later, kind, "segment-header-feature-0", forged(next, 508, |b| b[12] = 1));

        let example = example_segment();
        let long = long_segment();
        let kind = Kind::Segment;
        self.add(good, kind, "segment-example", example.clone());
        self.add(Verdict::Torn, kind, "segment-torn", changed(long.clone(), |b| b[1024..1536].fill(0)));
        self.add(Verdict::Torn, kind, "segment-torn-header", changed(long, |b| b[512..1024].fill(0)));
        self.add(damaged, kind, "segment-damaged", changed(example.clone(), |b| b[600] ^= 1));
        self.add(damaged, kind, "segment-foreign-frame", {
            let at = Lsn::new(1, SECOND);
            let binding = header_first().binding();
            let other = frame_of(frame_kind::DATA, at, CHAIN, false, binding, &[chunk(1, 1)]);
            changed(example, |b| b[SECOND as usize..][..other.len()].copy_from_slice(&other))
        });
    }

    fn frames(&mut self) {
        let ctx = ScanContext {
            binding: BINDING,
            min_epoch: 3,
            max_epoch: 4,
            chain: Some(CHAIN),
            end_limit: 1 << 20,
        };
        let (good, torn, damaged, later) = (Verdict::Good, Verdict::Torn, Verdict::Damaged, Verdict::Refused);
        let kind = Kind::Frame(ctx);
        let data = data_frame();
        let big =
            event(300, 2, 7, coding::PLAIN, format!("\u{1}{{\"text\":\"{}\"}}", "x".repeat(1500)).as_bytes());
        let big = frame_of(frame_kind::DATA, FRAME_AT, CHAIN, false, BINDING, &[big]);
        let part = (Meta::IndexPart(IndexPartMeta { previous: 0 }), vec![0, 0, 0]);
        let empty = |kind, epoch| empty_frame(kind, FRAME_AT, epoch, FRAME_AT, CHAIN, &BINDING, false).0;
        self.add(good, kind, "frame-data", data.clone());
        self.add(good, kind, "frame-padded", frame_of(1, FRAME_AT, CHAIN, true, BINDING, &[chunk(300, 1)]));
        self.add(
            good,
            kind,
            "frame-index",
            frame_of(frame_kind::INDEX, FRAME_AT, CHAIN, false, BINDING, &[part]),
        );
        self.add(good, kind, "frame-seal", empty(frame_kind::SEAL, 3));
        self.add(good, kind, "frame-close", empty(frame_kind::CLOSE, 3));
        self.add(good, kind, "frame-continue", empty(frame_kind::CONTINUE, 4));
        self.add(good, kind, "frame-witness", empty(frame_kind::WITNESS, 3));
        self.add(good, kind, "frame-longer-header", longer_header());
        self.add(
            good,
            kind,
            "frame-kind-to-skip",
            frame_of(0x87, FRAME_AT, CHAIN, false, BINDING, &[chunk(300, 1)]),
        );
        self.add(torn, kind, "frame-sector-zero", changed(big.clone(), |b| b[512..1024].fill(0)));
        self.add(torn, kind, "frame-last-sector-zero", changed(big.clone(), |b| b[1536..].fill(0)));
        self.add(damaged, kind, "frame-record-flipped", changed(big, |b| b[700] ^= 0x20));
        self.add(damaged, kind, "frame-header-flipped", changed(data.clone(), |b| b[17] ^= 1));
        self.add(damaged, kind, "frame-table-flipped", {
            let last = data.len() - 1;
            changed(data.clone(), |b| b[last] ^= 1)
        });
        let moved = frame_of(frame_kind::DATA, Lsn::new(2, 1024), CHAIN, false, BINDING, &[chunk(300, 1)]);
        self.add(damaged, kind, "frame-moved", moved);
        self.add(
            damaged,
            kind,
            "frame-of-another-chain",
            frame_of(1, FRAME_AT, 7, false, BINDING, &[chunk(300, 1)]),
        );
        let other = Binding { store: StoreId(*b"another-store-id"), ..BINDING };
        self.add(
            damaged,
            kind,
            "frame-of-another-store",
            frame_of(1, FRAME_AT, CHAIN, false, other, &[chunk(300, 1)]),
        );
        self.add(damaged, kind, "frame-stale-epoch", empty(frame_kind::WITNESS, 2));
        self.add(damaged, kind, "frame-epoch-without-mark", empty(frame_kind::WITNESS, 4));
        let short = Kind::Frame(ScanContext { end_limit: 700, ..ctx });
        self.add(damaged, short, "frame-past-capacity", data);
        self.add(later, kind, "frame-kind-7", empty(7, 3));
    }

    fn records(&mut self) {
        let (good, kind) = (Verdict::Good, Kind::Record);
        let stored = |meta: Meta, payload: &[u8]| {
            let mut out = Vec::new();
            RecordDraft::new(payload.to_vec()).seal(&meta).write(&mut out, Lsn::new(2, 576), &BINDING);
            out
        };
        let (more, dense) = (false, 300);
        let (meta, payload) = message(dense, 0);
        self.add(good, kind, "record-event-plain", stored(meta, &payload));
        let (meta, payload) = chunk(dense, 251);
        self.add(good, kind, "record-event-chunk", stored(meta.with_more(true), &payload));
        let verbatim = br#"{"type":"x/y", "seq":2, "time":1.5, "data":{}}"#;
        let odd = EventMeta {
            more,
            coding: coding::VERBATIM,
            class: 1,
            dense: 1 << 40,
            seq: 70_000,
            time_ms: None,
            replace: Some((5, 1 << 33)),
        };
        self.add(good, kind, "record-event-verbatim-replace", stored(Meta::Event(odd), verbatim));
        let (_, named) = create(dense);
        let staged = CreateMeta { more, staged: true, dense };
        self.add(good, kind, "record-create-staged", stored(Meta::Create(staged), &named));
        let (parent, ancestor) = (300, 12);
        let fork =
            ForkMeta { more, staged: false, dense: 301, parent, ancestor, cut: 1000, turn_open: false };
        self.add(good, kind, "record-fork", stored(Meta::Fork(fork), &named));
        // What continues a session begins so.
        let fork = ForkMeta { staged: true, turn_open: true, ..fork };
        self.add(good, kind, "record-fork-staged", stored(Meta::Fork(fork), &named));
        self.add(good, kind, "record-delete", stored(Meta::Delete(SessionMeta { more, dense }), &[]));
        self.add(good, kind, "record-publish", stored(Meta::Publish(SessionMeta { more, dense }), &[]));
        let lost = DamageMeta { more, segment: 1, from: 512, to: 1184, dense: 7, from_seq: 3, to_seq: 5 };
        self.add(good, kind, "record-damage", stored(Meta::Damage(lost), b"bytes that do not validate"));
        let accept = AcceptLossMeta { more, dense, next_seq: 12 };
        self.add(good, kind, "record-accept-loss", stored(Meta::AcceptLoss(accept), &[]));
        let part = IndexPartMeta { previous: 0 };
        self.add(good, kind, "record-index-part", stored(Meta::IndexPart(part), &[0, 0, 0]));
        let (meta, payload) = message(dense, 0);
        let whole = stored(meta, &payload);
        self.add(Verdict::Damaged, kind, "record-flipped", changed(whole.clone(), |b| b[20] ^= 1));
        self.add(Verdict::Damaged, kind, "record-cut", whole[..whole.len() - 1].to_vec());
        let later = Meta::Skipped { kind: 9, flags: 0 };
        self.add(Verdict::Refused, kind, "record-kind-9", stored(later, &[]));
    }

    fn others(&mut self) {
        let (good, damaged, later) = (Verdict::Good, Verdict::Damaged, Verdict::Refused);
        let kind = Kind::Control;
        let (old, new) = (slot(40).encode(), slot(41).encode());
        self.add(good, kind, "control", control_of([&old, &new]));
        self.add(
            good,
            kind,
            "control-new-store",
            Control::encode_new(&ControlSlot { store: STORE, next_dense: 1, ..ControlSlot::default() }),
        );
        self.add(
            damaged,
            kind,
            "control-newer-slot-bad",
            control_of([&old, &changed(new.to_vec(), |b| b[48] ^= 1)]),
        );
        self.add(damaged, kind, "control-slots-swapped", control_of([&new, &old]));
        self.add(damaged, kind, "control-zero", vec![0; 8192]);
        self.add(
            later,
            kind,
            "control-version-2",
            control_of([&forged(old.to_vec(), 508, |b| b[8] = 2), &new]),
        );

        let kind = Kind::Live;
        let (set, new) = (live_set().encode(), LiveSet { store: STORE, version: 1, ..LiveSet::default() });
        let crc_at = set.len() - 4;
        self.add(good, kind, "live", set.clone());
        self.add(good, kind, "live-new-store", new.encode());
        self.add(damaged, kind, "live-flipped", changed(set.clone(), |b| b[52] ^= 1));
        self.add(damaged, kind, "live-cut", set[..crc_at].to_vec());
        self.add(damaged, kind, "live-descending", forged(set.clone(), crc_at, |b| b[48] = 3));
        self.add(later, kind, "live-version-2", forged(set, crc_at, |b| b[8] = 2));

        self.add(good, Kind::Lock, "lock", LockInfo::new(4711, "build-01").to_text().into_bytes());
    }
}

/// Every vector, in the order of the manifest.
pub(super) fn all() -> Vec<Vector> {
    let mut list = List(Vec::new());
    list.segments();
    list.frames();
    list.records();
    list.others();
    list.0
}
