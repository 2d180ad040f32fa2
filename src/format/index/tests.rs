//! Tables, parts and files say the same about a segment; every flipped bit of a file is noticed.

use super::table::TableFault;
use proptest::prelude::*;

use super::part;
use super::*;
use crate::format::blocks::FileFault;
use crate::format::segment_header::Ending;

pub(crate) fn key() -> SegmentKey {
    SegmentKey { store: StoreId(*b"store-of-vectors"), segment: 7, salt: 0x1122_3344_5566_7788 }
}

fn event(dense: u64, seq: u64, offset: u32, class: Class) -> TableEvent {
    let op = match class {
        Class::UserMessage => Some(SurfaceOp::Append),
        Class::AssistantMessage => Some(SurfaceOp::Replace { start: 1, end: seq }),
        _ => None,
    };
    let time_ms = 1_782_094_878_834 - i64::from(offset % 3);
    TableEvent { dense, seq, offset, class, op, time_ms, bytes: u64::from(offset % 50) }
}

/// Two sessions, a hole, a control, a damaged range.
pub(crate) fn sample() -> SegmentTable {
    let mut table = SegmentTable::new(key());
    table.add_control(512 + 64);
    let rows = [
        (3, 0, 600, Class::TurnStart),
        (3, 1, 640, Class::UserMessage),
        (9, 40, 700, Class::Chunk),
        (3, 2, 720, Class::Chunk),
        (3, 5, 900, Class::AssistantMessage),
        (3, 6, 950, Class::TurnEnd),
        (9, 41, 1000, Class::Other),
    ];
    for (dense, seq, offset, class) in rows {
        table.add_event(&event(dense, seq, offset, class)).unwrap();
    }
    table.set_prev(9, 5);
    table.add_control(1010);
    table.add_damage(Damaged { from: 760, to: 900 });
    table
}

fn sample_file() -> Vec<u8> {
    sample().to_index(1100, 0xABCD_EF01, Ending::Damaged)
}

#[test]
fn a_file_says_what_its_table_said() {
    let file = IndexFile::open(sample_file(), &key()).unwrap();
    file.verify().unwrap();
    let info = file.info();
    assert_eq!((info.end, info.chain, info.why_ended), (1100, 0xABCD_EF01, Ending::Damaged));
    assert_eq!((info.sessions, info.events, info.structure), (2, 9, 5));
    let part = file.session(3).unwrap().unwrap();
    assert_eq!((part.first_seq, part.count, part.structure_count), (0, 7, 4));
    assert!(part.has_holes && part.has_turn_boundary && !part.open_turn);
    assert_eq!(file.event_offset(&part, 2).unwrap(), Some(720));
    assert_eq!(file.event_offset(&part, 3).unwrap(), None);
    assert_eq!(file.offsets(&part, 2..7).unwrap().collect::<Vec<_>>(), [720, 0, 0, 900, 950]);
    let seqs: Vec<_> = file.structure(&part).unwrap().map(|e| e.unwrap().seq).collect();
    assert_eq!(seqs, [0, 1, 5, 6]);
    let other = file.session(9).unwrap().unwrap();
    assert_eq!((other.prev_segment, other.first_seq, other.count), (5, 40, 2));
    assert_eq!(file.session(4).unwrap(), None);
    assert_eq!(file.controls().unwrap().collect::<Vec<_>>(), [576, 1010]);
    assert_eq!(file.damage().unwrap().collect::<Vec<_>>(), [Damaged { from: 760, to: 900 }]);
    assert!(file.event_offset(&part, 7).is_err());
    assert!(file.offsets(&other, 0..3).is_err());
}

#[test]
fn every_flipped_bit_is_noticed() {
    let good = sample_file();
    for at in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[at / 8] ^= 1 << (at % 8);
        let found = IndexFile::open(bad, &key()).and_then(|file| file.verify());
        assert!(found.is_err(), "bit {at} of {} went unnoticed", good.len() * 8);
    }
}

#[test]
fn every_shorter_and_a_longer_file_is_refused() {
    let good = sample_file();
    for len in 0..good.len() {
        assert!(IndexFile::open(&good[..len], &key()).is_err(), "{len}");
    }
    let longer = [good, vec![0]].concat();
    assert!(matches!(IndexFile::open(longer, &key()), Err(FileFault::Length { .. })));
}

#[test]
fn a_file_of_another_segment_or_store_is_foreign() {
    let open = |key: SegmentKey| IndexFile::open(sample_file(), &key).err();
    assert_eq!(open(SegmentKey { segment: 8, ..key() }), Some(FileFault::Foreign("segment")));
    assert_eq!(open(SegmentKey { salt: 1, ..key() }), Some(FileFault::Foreign("segment")));
    assert_eq!(open(SegmentKey { store: StoreId([0; 16]), ..key() }), Some(FileFault::Foreign("store")));
}

/// Changes a header field and makes the header's CRC right again.
fn forged(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = sample_file();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    let crc = crc32fast::hash(&file[..508]);
    file[508..512].copy_from_slice(&crc.to_le_bytes());
    file
}

#[test]
fn versions_and_features_are_refused_by_name_and_counts_by_length() {
    let open = |at, bytes: &[u8]| IndexFile::open(forged(at, bytes), &key()).err();
    assert_eq!(open(8, &[2]), Some(FileFault::Version(2)));
    assert_eq!(open(12, &[0, 0, 1]), Some(FileFault::Features(0x0001_0000)));
    for field in [layout::header::SESSION_COUNT, layout::header::EVENT_COUNT, layout::header::SESSIONS] {
        let fault = open(field.at, &vec![0xFF; field.len]);
        assert!(matches!(fault, Some(FileFault::Field { .. })), "{}: {fault:?}", field.name);
    }
}

#[test]
fn a_block_is_checked_when_it_is_first_touched() {
    let mut table = SegmentTable::new(key());
    for i in 0..4000u32 {
        table
            .add_event(&event(1 + u64::from(i % 400), u64::from(i / 400), 600 + i * 30, Class::Chunk))
            .unwrap();
    }
    let mut bytes = table.to_index(600 + 4000 * 30, 1, Ending::Sealed);
    let sessions_end = 512 + 400 * 80;
    bytes[sessions_end + 5000] ^= 1;
    let file = IndexFile::open(bytes, &key()).unwrap();
    let first = file.session(1).unwrap().unwrap();
    assert_eq!(file.event_offset(&first, 0).unwrap(), Some(600));
    let hit = file.session_at(125).unwrap();
    assert!(matches!(file.offsets(&hit, 0..10).map(Iterator::count), Err(FileFault::Block { .. })));
    assert!(file.verify().is_err());
}

#[test]
fn a_seq_that_jumps_further_than_bytes_can_hold_is_refused() {
    let mut table = SegmentTable::new(key());
    table.add_event(&event(1, 0, 512, Class::Chunk)).unwrap();
    let far = table.add_event(&event(1, 1 << 40, 5000, Class::Chunk));
    assert!(matches!(far, Err(TableFault::Gap { expected: 1, .. })), "{far:?}");
    let stale = table.add_event(&event(1, 0, 5000, Class::Chunk));
    assert_eq!(stale, Err(TableFault::Stale { dense: 1, expected: 1, found: 0 }));
    let back = table.add_event(&event(1, 1, 512, Class::Chunk));
    assert_eq!(back, Err(TableFault::Order { dense: 1, last: 512, found: 512 }));
    assert_eq!(table.session(1).unwrap().offsets(), [512]);
    let last_possible = u64::from(5000 / table::MIN_EVENT_BYTES);
    assert!(table.add_event(&event(1, last_possible + 1, 5000, Class::Chunk)).is_err());
    assert_eq!(table.add_event(&event(1, last_possible, 5000, Class::Chunk)), Ok(false));
    assert_eq!(table.event_count(), last_possible + 1);
}

#[test]
fn parts_that_do_not_follow_are_refused() {
    let mut writer = SegmentTable::new(key());
    writer.add_event(&event(1, 0, 600, Class::Chunk)).unwrap();
    let first = writer.encode_part();
    writer.mark();
    writer.add_event(&event(1, 1, 650, Class::Chunk)).unwrap();
    let second = writer.encode_part();
    let mut table = SegmentTable::new(key());
    table.apply_part(&first, u32::MAX).unwrap();
    assert_eq!(table.clone().apply_part(&first, u32::MAX), Err(part::PartFault::Sequence { dense: 1 }));
    table.apply_part(&second, u32::MAX).unwrap();
    assert_eq!(table.session(1).unwrap().offsets(), [600, 650]);
    assert!(table.is_unchanged());
}

#[test]
fn a_part_names_only_what_can_lie_before_it() {
    let mut writer = SegmentTable::new(key());
    writer.add_event(&event(1, 0, 600, Class::Chunk)).unwrap();
    writer.add_control(700);
    let part = writer.encode_part();
    let apply = |part: &[u8], at| SegmentTable::new(key()).apply_part(part, at);
    assert!(apply(&part, 600).is_err() && apply(&part, 700).is_err());
    assert_eq!(apply(&part, 701), Ok(()));
    // A hundred events and more cannot lie in the bytes that a hundred events take.
    let mut many = SegmentTable::new(key());
    for dense in 1..=100 {
        many.add_event(&event(dense, 0, 600 + u32::try_from(dense).unwrap(), Class::Chunk)).unwrap();
    }
    let part = many.encode_part();
    assert!(apply(&part, 99 * table::MIN_EVENT_BYTES).is_err());
    assert_eq!(apply(&part, 100 * table::MIN_EVENT_BYTES), Ok(()));
}

#[test]
fn a_part_claims_no_more_than_its_bytes_hold() {
    let huge = [0xFF, 0xFF, 0xFF, 0xFF, 0x0F];
    for prefix in [&[][..], &[1, 1, 0], &[1, 1, 0, 1, 0, 0, 0, 0, 0, 9], &[0]] {
        let bytes = [prefix, &huge[..]].concat();
        assert!(part::decode(&bytes).is_err(), "{prefix:?}");
    }
    assert_eq!(part::decode(&[0, 0]), Ok(part::IndexPart::default()));
    assert!(part::decode(&[0, 0, 0]).is_err());
}

#[test]
fn a_large_file_comes_in_pieces_and_a_small_one_at_once() {
    let pieces = |table: &SegmentTable| {
        let mut pieces = Vec::new();
        let taken = table.write_index(1 << 20, 7, Ending::Sealed, &mut |at, bytes| {
            pieces.push((at, bytes.len()));
            Ok(())
        });
        taken.unwrap();
        pieces
    };
    let mut table = SegmentTable::new(key());
    table.add_event(&event(1, 0, 600, Class::Chunk)).unwrap();
    assert_eq!(pieces(&table), [(0, table.to_index(1 << 20, 7, Ending::Sealed).len())]);
    for dense in 2..10_000 {
        let class = if dense % 3 == 0 { Class::TurnStart } else { Class::Chunk };
        table.add_event(&event(dense, 0, 600 + u32::try_from(dense).unwrap() * 20, class)).unwrap();
    }
    let pieces = pieces(&table);
    assert!(pieces.len() > 4 && pieces.iter().all(|(_, length)| *length <= 300 << 10), "{pieces:?}");
    assert_eq!(pieces.last(), Some(&(0, 512)), "the header makes it whole");
    let file = table.to_index(1 << 20, 7, Ending::Sealed);
    assert_eq!(pieces.iter().map(|(_, length)| length).sum::<usize>(), file.len());
    let file = IndexFile::open(file.as_slice(), &key()).unwrap();
    file.verify().unwrap();
    assert_eq!(file.info().sessions, 9999);
}

#[test]
fn the_error_of_a_sink_is_told_and_nothing_follows_it() {
    let mut table = SegmentTable::new(key());
    for dense in 1..10_000 {
        table.add_event(&event(dense, 0, 600 + u32::try_from(dense).unwrap() * 20, Class::Chunk)).unwrap();
    }
    let mut calls = 0;
    let written = table.write_index(1 << 20, 7, Ending::Sealed, &mut |_, _| {
        calls += 1;
        Err(crate::Error::new(crate::ErrorKind::Full, "no room"))
    });
    assert!(written.unwrap_err().is_full());
    assert_eq!(calls, 1);
}

#[test]
fn a_session_of_one_event_holds_its_place_in_its_row() {
    let mut table = SegmentTable::new(key());
    table.add_event(&event(1, 5, 600, Class::Chunk)).unwrap();
    assert_eq!(table.session(1).unwrap().offsets(), [600]);
    table.add_event(&event(1, 8, 700, Class::Chunk)).unwrap();
    assert_eq!(table.session(1).unwrap().offsets(), [600, HOLE, HOLE, 700]);
    table.mark();
    table.add_event(&event(1, 9, 720, Class::TurnStart)).unwrap();
    let part = part::decode(&table.encode_part()).unwrap();
    let [session] = part.sessions.as_slice() else { panic!("{part:?}") };
    assert_eq!((session.head.first_seq, session.offsets.as_slice()), (9, &[720][..]));
    assert!(session.head.has_turn_boundary && session.head.open_turn && !session.head.has_holes);
}

#[test]
fn parts_that_no_writer_makes_are_refused() {
    // Dense delta; first seq, count, bytes, two times, flags, previous; then offsets, structure, controls.
    let part = |delta: u8, head: [u8; 7], rest: &[u8]| {
        part::decode(&[&[1, delta][..], &head, rest].concat()).map(|p| p.sessions.len())
    };
    let far = [0xFF, 0xFF, 0xFF, 0xFF, 0x0F];
    assert_eq!(part(1, [0, 1, 5, 2, 2, 0, 0], &[100, 0, 0]), Ok(1));
    assert_eq!(part(1, [0, 2, 5, 2, 2, 4, 0], &[0, 100, 1, 1, 2, 0, 1, 90]), Ok(1));
    assert_eq!(part(1, [0, 1, 5, 2, 2, 0, 0], &[100, 0, 2, 50, 9]), Ok(1));
    let bad: [(&str, u8, [u8; 7], &[u8]); 15] = [
        ("controls that overlap", 1, [0, 1, 5, 2, 2, 0, 0], &[100, 0, 2, 50, 8]),
        ("dense id 0", 0, [0, 1, 5, 2, 2, 0, 0], &[100, 0, 0]),
        ("unknown flag", 1, [0, 1, 5, 2, 2, 8, 0], &[100, 0, 0]),
        ("no events", 1, [0, 0, 5, 2, 2, 0, 0], &[0, 0]),
        ("holes told, none there", 1, [0, 1, 5, 2, 2, 4, 0], &[100, 0, 0]),
        ("a hole not told", 1, [0, 2, 5, 2, 2, 0, 0], &[0, 100, 0, 0]),
        ("a hole at the end", 1, [0, 2, 5, 2, 2, 4, 0], &[100, 0, 0, 0]),
        ("offset beyond 32 bits", 1, [0, 2, 5, 2, 2, 0, 0], &[&far[..], &far, &[0, 0]].concat()),
        ("structure of a hole", 1, [0, 2, 5, 2, 2, 4, 0], &[0, 100, 1, 0, 2, 0, 0]),
        ("structure behind the events", 1, [0, 1, 5, 2, 2, 0, 0], &[100, 1, 1, 2, 0, 0]),
        ("a chunk in the structure", 1, [0, 1, 5, 2, 2, 0, 0], &[100, 1, 0, 0, 0, 0]),
        ("an unknown class", 1, [0, 1, 5, 2, 2, 0, 0], &[100, 1, 0, 12, 0, 0]),
        ("an unknown operation", 1, [0, 1, 5, 2, 2, 0, 0], &[100, 1, 0, 2, 3, 0]),
        ("the same seq twice", 1, [0, 1, 5, 2, 2, 0, 0], &[100, 2, 0, 2, 0, 0, 2, 0, 0]),
        ("a control at 0", 1, [0, 1, 5, 2, 2, 0, 0], &[100, 0, 1, 0]),
    ];
    for (what, delta, head, rest) in bad {
        assert!(part(delta, head, rest).is_err(), "{what}");
    }
}

/// Steps of a segment's life, from which offsets and seqs follow.
#[derive(Debug, Clone)]
enum Step {
    Event { dense: u64, skip: u64, class: u8 },
    Control,
    Mark,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let event = (1u64..6, prop_oneof![9 => Just(0u64), 1 => 1u64..3], 0u8..12)
        .prop_map(|(dense, skip, class)| Step::Event { dense: dense * dense * 97, skip, class });
    prop::collection::vec(prop_oneof![20 => event, 1 => Just(Step::Control), 2 => Just(Step::Mark)], 0..200)
}

fn play(steps: &[Step]) -> (SegmentTable, Vec<Vec<u8>>) {
    let mut table = SegmentTable::new(key());
    let (mut parts, mut offset) = (Vec::new(), 512);
    for step in steps {
        offset += 90;
        match *step {
            Step::Event { dense, skip, class } => {
                let next = table.session(dense).map_or(dense * 3, |s| s.part().end_seq() + skip);
                let class = Class::from_u8(class).unwrap();
                if table.add_event(&event(dense, next, offset, class)).unwrap() {
                    table.set_prev(dense, u32::try_from(dense % 5).unwrap());
                }
            }
            Step::Control => table.add_control(offset),
            Step::Mark => {
                parts.push(table.encode_part());
                table.mark();
            }
        }
    }
    parts.push(table.encode_part());
    (table, parts)
}

proptest! {
    #[test]
    fn parts_and_files_give_back_the_table(steps in steps()) {
        let (table, parts) = play(&steps);
        let mut again = SegmentTable::new(key());
        for bytes in &parts {
            again.apply_part(bytes, u32::MAX).unwrap();
        }
        let file = table.to_index(100_000, 5, Ending::Sealed);
        prop_assert_eq!(&again.to_index(100_000, 5, Ending::Sealed), &file);
        let file = IndexFile::open(file, &key()).unwrap();
        prop_assert_eq!(file.verify(), Ok(()));
        for part in file.sessions() {
            let part = part.unwrap();
            let held = table.session(part.dense).unwrap();
            let expected = SessionPart { events_at: part.events_at, structure_at: part.structure_at, ..held.part() };
            prop_assert_eq!(part, expected);
            prop_assert_eq!(file.offsets(&part, 0..part.count).unwrap().collect::<Vec<_>>(), held.offsets());
            let structure: Result<Vec<_>, _> = file.structure(&part).unwrap().collect();
            prop_assert_eq!(structure.unwrap(), held.structure());
        }
    }

    #[test]
    fn no_bytes_make_a_part_panic_or_two_spellings(
        steps in steps(), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3)
    ) {
        let (_, parts) = play(&steps);
        let mut bytes = parts.concat();
        for (at, value) in flips {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
        }
        let mut table = SegmentTable::new(key());
        if table.apply_part(&bytes, u32::MAX).is_ok() {
            let mut copy = SegmentTable::new(key());
            copy.apply_part(&bytes, u32::MAX).unwrap();
            prop_assert_eq!(table.to_index(1, 1, Ending::Sealed), copy.to_index(1, 1, Ending::Sealed));
        }
    }

    #[test]
    fn no_forged_file_makes_a_reader_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let mut bytes = sample_file();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        crate::format::blocks::resum(&mut bytes, &layout::BLOCKS);
        if let Ok(file) = IndexFile::open(bytes, &key()) {
            let _ = file.verify();
            for part in file.sessions().flatten() {
                let _ = file.offsets(&part, 0..part.count).map(Iterator::count);
                let _ = file.structure(&part).map(Iterator::count);
            }
        }
    }
}

/// Not a test of correctness: prints what an event costs. Run with `--release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost_of_adding_an_event() {
    for sessions in [1u64, 64, 1000] {
        let mut table = SegmentTable::new(key());
        let start = std::time::Instant::now();
        for i in 0..1_000_000u32 {
            let (dense, seq) = (1 + u64::from(i) % sessions, u64::from(i) / sessions);
            table.add_event(&event(dense, seq, 600 + i * 40, Class::Chunk)).unwrap();
        }
        let each = start.elapsed().as_nanos() / 1_000_000;
        let start = std::time::Instant::now();
        let part = table.encode_part().len();
        println!("{sessions} sessions: {each} ns an event; part {part} bytes in {:?}", start.elapsed());
    }
}
