use super::*;
use crate::format::constants::MAX_META_LEN;
use crate::format::frame_builder::{FrameBuilder, empty_frame};
use crate::format::lsn::StoreId;
use crate::format::meta::{EventMeta, Meta, SessionMeta};
use crate::format::record::{RecordDraft, SealedRecord};
use proptest::prelude::*;

const BINDING: Binding = Binding { store: StoreId([1; 16]), salt: 77, epoch: 2 };
const START: Lsn = Lsn::new(1, 512);
const EPOCH: u64 = 3;

fn context() -> ScanContext {
    ScanContext { binding: BINDING, min_epoch: EPOCH, max_epoch: 9, chain: Some(5), end_limit: 1 << 20 }
}

fn event(seq: u64, more: bool, payload: &[u8]) -> SealedRecord {
    let meta = EventMeta {
        more,
        coding: 1,
        class: 7,
        dense: 4,
        seq,
        time_ms: Some(1_700_000_000_000),
        replace: None,
    };
    RecordDraft::new(payload.to_vec()).seal(&Meta::Event(meta))
}

/// A frame at `START` of records with these payload lengths and MORE flags.
fn frame(records: &[(usize, bool)]) -> Vec<u8> {
    let mut builder = FrameBuilder::new(START, EPOCH, BINDING, false);
    for (seq, (len, more)) in (0..).zip(records) {
        builder.push(&event(seq, *more, &vec![b'x'; *len]));
    }
    builder.finish(frame_kind::DATA, START, 5);
    builder.bytes().to_vec()
}

fn view<'a>(bytes: &'a [u8]) -> FrameView<'a> {
    match read_frame(bytes, START, &context()) {
        FrameStep::Frame(view) => view,
        other => panic!("{other:?}"),
    }
}

fn fault(bytes: &[u8], at: Lsn, ctx: &ScanContext) -> FrameFault {
    match read_frame(bytes, at, ctx) {
        FrameStep::Bad(fault) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_intact_frame_gives_its_records() {
    let mut bytes = frame(&[(10, true), (0, false), (700, false)]);
    let len = bytes.len();
    bytes.extend([0; 100]);
    let view = view(&bytes);
    assert!(view.is_intact() && !view.has_zero_sector());
    assert_eq!(view.end, START.advance(len).unwrap());
    let lens: Vec<_> = view.records().map(|r| r.unwrap().payload.len()).collect();
    assert_eq!(lens, [10, 0, 700]);
    assert!(view.damaged_batches().is_empty());
}

#[test]
fn every_flipped_bit_is_noticed_and_costs_as_little_as_it_can() {
    let bytes = frame(&[(40, false), (40, false), (40, false)]);
    let (header, _) = FrameHeader::decode(&bytes, &BINDING).unwrap();
    let records_end = 64 + header.records_len() as usize;
    let each = header.records_len() as usize / 3;
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        bad.resize(1024, 0);
        match read_frame(&bad, START, &context()) {
            FrameStep::Bad(_) => assert!(bit / 8 < 64, "bit {bit}"),
            FrameStep::Frame(view) => {
                assert!(!view.is_intact(), "bit {bit}");
                let good: Vec<_> = view.records().map(|r| r.is_ok()).collect();
                if bit / 8 >= records_end {
                    assert_eq!((view.table_ok, good), (false, vec![true; 3]), "bit {bit}");
                    let tail = (512 + u32::try_from(records_end).unwrap(), view.end.offset());
                    assert_eq!(view.bad_ranges(), [tail]);
                } else {
                    let hit = (bit / 8 - 64) / each;
                    let from = u32::try_from(512 + 64 + hit * each).unwrap();
                    assert_eq!(view.bad_ranges(), [(from, from + u32::try_from(each).unwrap())]);
                    assert_eq!(
                        (view.table_ok, good),
                        (true, (0..3).map(|i| i != hit).collect()),
                        "bit {bit}"
                    );
                }
            }
            other => panic!("bit {bit}: {other:?}"),
        }
    }
}

#[test]
fn without_a_table_the_records_behind_a_bad_one_are_lost() {
    let mut bytes = frame(&[(40, false), (40, false), (40, false)]);
    let (header, _) = FrameHeader::decode(&bytes, &BINDING).unwrap();
    let each = header.records_len() / 3;
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    bytes[64 + each as usize + 20] ^= 1;
    let view = view(&bytes);
    let found: Vec<_> = view.records().collect();
    assert_eq!(found.len(), 2);
    assert!(found[0].is_ok());
    let damage = found[1].unwrap_err();
    assert_eq!((damage.index, damage.count, damage.len), (1, 2, 2 * each));
    assert_eq!(damage.lsn, START.advance(64 + each as usize).unwrap());
}

#[test]
fn a_damaged_frame_names_the_batches_that_lost_a_member() {
    let records = [(20, false), (20, true), (20, true), (20, false), (20, false), (20, true), (20, false)];
    let good = frame(&records);
    let (header, _) = FrameHeader::decode(&good, &BINDING).unwrap();
    let each = header.records_len() as usize / records.len();
    let broken = |index: usize| {
        let mut bad = good.clone();
        bad[64 + index * each + 10] ^= 1;
        let found = view(&bad).damaged_batches();
        assert_eq!(found.len(), 1);
        (found[0].records.clone(), found[0].certain)
    };
    assert_eq!(broken(2), (1..4, true));
    // Whether record 1 was the first of the batch, or 0 stood alone, is not known any more; nor whether record 3 was
    // the last of its batch.
    assert_eq!(broken(1), (1..4, false));
    assert_eq!(broken(0), (0..4, false));
    assert_eq!(broken(4), (4..7, false));
    assert_eq!(broken(3), (1..5, true));
    assert_eq!(broken(6), (5..7, true));
}

#[test]
fn a_record_of_a_later_kind_is_named_and_a_skippable_one_passed() {
    let mut builder = FrameBuilder::new(START, EPOCH, BINDING, false);
    builder.push(&RecordDraft::new(vec![1]).seal(&Meta::Skipped { kind: 0x89, flags: 0 }));
    builder.push(&RecordDraft::new(vec![1]).seal(&Meta::Skipped { kind: 9, flags: 0 }));
    builder.finish(frame_kind::DATA, START, 5);
    let view = view(builder.bytes());
    assert!(view.is_intact());
    let found: Vec<_> = view.records().collect();
    assert_eq!(found[0].unwrap().meta, Meta::Skipped { kind: 0x89, flags: 0 });
    assert!(found[1].unwrap_err().fault.is_unsupported());
}

#[test]
fn frames_of_other_places_epochs_and_chains_do_not_belong() {
    let bytes = frame(&[(10, false)]);
    let other = Lsn::new(1, 576);
    assert_eq!(fault(&bytes, other, &context()), FrameFault::WrongPlace { found: START });
    let newer = ScanContext { min_epoch: 4, ..context() };
    assert_eq!(fault(&bytes, START, &newer), FrameFault::StaleEpoch { found: EPOCH });
    let older = ScanContext { min_epoch: 1, max_epoch: 2, ..context() };
    assert_eq!(fault(&bytes, START, &older), FrameFault::UnknownEpoch { found: EPOCH });
    let unmarked = ScanContext { min_epoch: 2, ..context() };
    assert_eq!(fault(&bytes, START, &unmarked), FrameFault::EpochMark { found: EPOCH });
    let chain = ScanContext { chain: Some(6), ..context() };
    assert_eq!(fault(&bytes, START, &chain), FrameFault::Chain { expected: 6, found: 5 });
    let past = ScanContext { end_limit: 600, ..context() };
    let end = 512 + bytes.len() as u64;
    assert_eq!(fault(&bytes, START, &past), FrameFault::PastEnd { end });
}

#[test]
fn a_continue_frame_brings_a_new_epoch() {
    let frame = |epoch| empty_frame(frame_kind::CONTINUE, START, epoch, START, 5, &BINDING, false).0;
    assert!(matches!(read_frame(&frame(4), START, &context()), FrameStep::Frame(_)));
    assert_eq!(fault(&frame(EPOCH), START, &context()), FrameFault::EpochMark { found: EPOCH });
}

#[test]
fn zero_end_and_too_few_bytes_are_told_apart() {
    let zero = [0u8; 128];
    assert!(matches!(read_frame(&zero, START, &context()), FrameStep::Zero));
    assert!(matches!(read_frame(&zero[..63], START, &context()), FrameStep::NeedMore(64)));
    let near = ScanContext { end_limit: 512 + 40, ..context() };
    assert!(matches!(read_frame(&zero, START, &near), FrameStep::End));
    assert!(matches!(read_frame(&zero[..39], START, &near), FrameStep::NeedMore(40)));
    assert_eq!(fault(&[1; 64], START, &near), FrameFault::TooShort { need: 64 });
    let over = ScanContext { end_limit: 100, ..context() };
    assert!(matches!(read_frame(&[], START, &over), FrameStep::End));
    let bytes = frame(&[(300, false)]);
    for len in 64..bytes.len() {
        assert!(
            matches!(read_frame(&bytes[..len], START, &context()), FrameStep::NeedMore(n) if n == bytes.len())
        );
    }
}

#[test]
fn a_lost_sector_is_seen_and_a_whole_frame_has_none() {
    let good = frame(&[(2000, false)]);
    assert!(!has_zero_sector(&good, 512));
    for sector in 1..good.len().div_ceil(SECTOR) {
        let mut torn = good.clone();
        let end = torn.len().min((sector + 1) * SECTOR);
        torn[sector * SECTOR..end].fill(0);
        let view = view(&torn);
        assert!(!view.is_intact() && view.has_zero_sector(), "sector {sector}");
    }
    let mut flipped = good;
    flipped[1500] ^= 1;
    assert!(!view(&flipped).has_zero_sector());
    // Sectors are those of the file, not of the frame.
    let mut shifted = vec![1u8; 1024];
    shifted[448..960].fill(0);
    assert!(has_zero_sector(&shifted, 64) && !has_zero_sector(&shifted, 128));
}

#[test]
fn candidates_stand_at_their_own_place_in_a_known_epoch() {
    let frame = frame(&[(10, false)]);
    let base = Lsn::new(1, 3);
    let mut window = vec![0xFF; 4096];
    window[509..509 + frame.len()].copy_from_slice(&frame);
    let found = find_candidate(&window, base, &context()).unwrap();
    assert_eq!(found.lsn, START);
    assert_eq!(found.header.unwrap().record_count, 1);
    // The same bytes elsewhere, of another epoch, or behind the limit are none.
    assert_eq!(find_candidate(&window, Lsn::new(1, 11), &context()), None);
    let known = ScanContext { min_epoch: 4, ..context() };
    assert_eq!(find_candidate(&window, base, &known), None);
    let limit = ScanContext { end_limit: 512, ..context() };
    assert_eq!(find_candidate(&window, base, &limit), None);
    window[520] ^= 1;
    assert_eq!(find_candidate(&window, base, &context()), None);
}

#[test]
fn a_candidate_of_a_later_format_is_reported_as_such() {
    let (frame, _) = empty_frame(8, START, EPOCH, START, 5, &BINDING, false);
    let found = find_candidate(&frame, START, &context()).unwrap();
    assert_eq!(found.header, Err(FrameFault::UnknownKind { kind: 8 }));
}

#[test]
fn a_skippable_frame_is_checked_and_gives_no_records() {
    let mut builder = FrameBuilder::new(START, EPOCH, BINDING, false);
    builder.push(&event(0, false, b"abc"));
    builder.finish(0x88, START, 5);
    let mut bytes = builder.bytes().to_vec();
    assert!(view(&bytes).is_intact());
    assert_eq!(view(&bytes).records().count(), 0);
    bytes[75] ^= 1;
    assert!(!view(&bytes).is_intact());
}

#[test]
fn whole_records_that_the_header_does_not_speak_of_are_not_trusted() {
    // Two frames for one place in one epoch, as a failed write that was done again otherwise would leave: the header of
    // one over the records of the other.
    let (one, other) = (frame(&[(24, false)]), frame(&[(24, true)]));
    assert_eq!(one.len(), other.len());
    let mut mixed = one[..64].to_vec();
    mixed.extend(&other[64..]);
    let view = view(&mixed);
    assert!(view.table_ok && !view.is_intact());
    assert_eq!(view.records().filter(Result::is_ok).count(), 0);
}

/// The longest run of zero bytes.
fn longest_zero_run(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte != 0).map(<[u8]>::len).max().unwrap_or(0)
}

proptest! {
    /// F8, with every number of metadata and header at 0 or at its longest with zeros inside.
    #[test]
    fn frames_never_hold_a_sector_of_zeros(
        records in prop::collection::vec((prop::collection::vec(1u8..=255, 0..300), any::<bool>(), 0u32..64), 1..60),
        padded in any::<bool>(),
    ) {
        let mut builder = FrameBuilder::new(START, 1, Binding { salt: 1 << 56, store: StoreId([0; 16]), epoch: 1 }, padded);
        for (payload, more, shift) in &records {
            let big = 1u64 << shift;
            let meta = Meta::Event(EventMeta {
                more: *more, coding: 0, class: 0, dense: big, seq: big, time_ms: Some(0), replace: Some((big, big)),
            });
            builder.push(&RecordDraft::new(payload.clone()).seal(&meta));
        }
        builder.finish(frame_kind::DATA, Lsn::NONE, 0);
        // Header, table and metadata give at most this many zeros in a row; a payload has none.
        prop_assert!(longest_zero_run(builder.bytes()) <= MAX_META_LEN + 8);
        prop_assert!(!has_zero_sector(builder.bytes(), START.offset()));
    }

    #[test]
    fn noise_neither_panics_nor_passes(noise in prop::collection::vec(any::<u8>(), 0..2000), at in 0u32..3000) {
        let at = Lsn::new(1, at);
        let taken = matches!(read_frame(&noise, at, &context()), FrameStep::Frame(_));
        prop_assert!(!taken);
        prop_assert_eq!(find_candidate(&noise, at, &context()), None);
    }

    /// A header that promises anything, over noise: no panic, nothing intact.
    #[test]
    fn true_headers_over_noise_give_nothing(
        noise in prop::collection::vec(any::<u8>(), 0..1000), body in 0u32..1200, table in 0u32..300,
        count in 0u32..100, pad in 0u16..600,
    ) {
        let header = FrameHeader {
            kind: frame_kind::DATA, header_len: 64, codec: 0, key: 0, body_len: body, pad_len: pad,
            record_count: count, table_len: table, lsn: START, epoch: EPOCH, durable: START, chain: 5,
            table_crc: table_crc(&noise, &[], BINDING.salt, START), records_crc: 0,
        };
        let mut bytes = header.encode(&BINDING).0.to_vec();
        bytes.extend(&noise);
        if let FrameStep::Frame(view) = read_frame(&bytes, START, &context()) {
            prop_assert!(!view.is_intact());
            prop_assert!(view.records().all(|record| record.is_err()));
            prop_assert!(view.damaged_batches().len() <= 1);
        }
    }
}

#[test]
fn session_records_are_read_like_events() {
    let mut builder = FrameBuilder::new(START, EPOCH, BINDING, false);
    let meta = Meta::Delete(SessionMeta { more: false, dense: 9 });
    builder.push(&RecordDraft::new(Vec::new()).seal(&meta));
    builder.finish(frame_kind::DATA, START, 5);
    let view = view(builder.bytes());
    assert_eq!(view.records().next().unwrap().unwrap().meta, meta);
}
