use super::*;
use proptest::prelude::*;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..600, 0..NUMBER_LIMIT, Just(NUMBER_LIMIT - 1), Just(250), Just(251), Just(65536)]
}

/// A session's id above two others.
fn dense() -> impl Strategy<Value = (u64, u64, u64)> {
    let raised = |n: u64| n.clamp(2, NUMBER_LIMIT - 1);
    (number().prop_map(raised), any::<u64>(), any::<u64>())
        .prop_map(|(dense, a, b)| (dense, 1 + a % (dense - 1), 1 + b % (dense - 1)))
}

fn event() -> impl Strategy<Value = Meta> {
    let times = prop::option::of(0..TIME_LIMIT);
    let replaces = prop::option::of((number(), number()));
    (any::<bool>(), 0u8..3, 0u8..16, dense(), number(), times, replaces).prop_map(
        |(more, coding, class, (dense, ..), seq, time_ms, replace)| {
            Meta::Event(EventMeta { more, coding, class, dense, seq, time_ms, replace })
        },
    )
}

pub(crate) fn any_meta() -> impl Strategy<Value = Meta> {
    let other = (0u8..7, any::<(bool, bool)>(), dense(), number(), number(), any::<[u32; 3]>());
    prop_oneof![
        3 => event(),
        2 => other.prop_map(|(which, (more, staged), (dense, parent, ancestor), a, b, [segment, from, to])| match which {
            0 => Meta::Create(CreateMeta { more, staged, dense }),
            1 => Meta::Fork(ForkMeta { more, staged, dense, parent, ancestor, cut: a, turn_open: b % 2 == 1 }),
            2 => Meta::Delete(SessionMeta { more, dense }),
            3 => Meta::Publish(SessionMeta { more, dense }),
            4 => Meta::Damage(DamageMeta { more, segment, from, to, dense, from_seq: a, to_seq: b }),
            5 => Meta::AcceptLoss(AcceptLossMeta { more, dense, next_seq: a }),
            _ => Meta::IndexPart(IndexPartMeta { previous: from }),
        }),
    ]
}

proptest! {
    #[test]
    fn every_meta_comes_back(meta in any_meta()) {
        let bytes = meta.encode();
        prop_assert_eq!(Meta::decode(bytes.as_slice()), Ok(meta));
        let mut longer = bytes.as_slice().to_vec();
        longer.push(0);
        prop_assert_eq!(Meta::decode(&longer), Err(MetaFault::Malformed));
        for len in 0..bytes.as_slice().len() {
            prop_assert!(Meta::decode(&bytes.as_slice()[..len]).is_err());
        }
    }

    #[test]
    fn whatever_decodes_is_what_an_encoder_gives(bytes in prop::collection::vec(any::<u8>(), 0..48)) {
        if let Ok(meta) = Meta::decode(&bytes) {
            let skipped = matches!(meta, Meta::Skipped { .. });
            prop_assert!(skipped || meta.encode().as_slice() == bytes);
        }
    }
}

#[test]
fn bytes_are_those_of_the_spec() {
    let event = EventMeta {
        more: true,
        coding: coding::CHUNK,
        class: 0,
        dense: 250,
        seq: 251,
        time_ms: Some(0x0605_0403_0201),
        replace: Some((65_536, 1 << 32)),
    };
    let expected =
        [1, 0x05, 0x02, 250, 0xFB, 251, 0, 1, 2, 3, 4, 5, 6, 0xFC, 0, 0, 1, 0, 0xFD, 0, 0, 0, 0, 1, 0, 0, 0];
    assert_eq!(Meta::Event(event).encode().as_slice(), expected);
}

#[test]
fn the_longest_fits() {
    let (dense, seq) = (u64::MAX, u64::MAX);
    let replace = Some((u64::MAX, u64::MAX));
    let longest = Meta::Event(EventMeta {
        more: true,
        coding: 2,
        class: 15,
        dense,
        seq,
        time_ms: Some(TIME_LIMIT - 1),
        replace,
    });
    assert_eq!(longest.encode().as_slice().len(), MAX_META_LEN);
    let (segment, from, to) = (u32::MAX, u32::MAX, u32::MAX);
    let damage = DamageMeta { more: true, segment, from, to, dense, from_seq: seq, to_seq: seq };
    assert!(Meta::Damage(damage).encode().as_slice().len() <= MAX_META_LEN);
}

#[test]
fn numbers_that_no_writer_reaches_are_refused() {
    let refused = |meta: Meta| {
        assert_eq!(Meta::decode(meta.encode().as_slice()), Err(MetaFault::Malformed), "{meta:?}")
    };
    for dense in [0, NUMBER_LIMIT, u64::MAX] {
        refused(Meta::Create(CreateMeta { more: false, staged: false, dense }));
        refused(Meta::Delete(SessionMeta { more: false, dense }));
        refused(Meta::AcceptLoss(AcceptLossMeta { more: false, dense, next_seq: 0 }));
    }
    refused(Meta::AcceptLoss(AcceptLossMeta { more: false, dense: 1, next_seq: NUMBER_LIMIT }));
    let event =
        EventMeta { more: false, coding: 1, class: 1, dense: 1, seq: 0, time_ms: None, replace: None };
    refused(Meta::Event(EventMeta { dense: 0, ..event }));
    refused(Meta::Event(EventMeta { seq: NUMBER_LIMIT, ..event }));
    // A fork comes after the sessions that it takes events from.
    for (parent, ancestor) in [(0, 1), (1, 0), (5, 1), (1, 5), (6, 6)] {
        let flags =
            ForkMeta { more: false, staged: false, dense: 5, parent, ancestor, cut: 3, turn_open: false };
        refused(Meta::Fork(flags));
    }
}

#[test]
fn longer_spellings_of_a_number_are_refused() {
    let plain = Meta::Delete(SessionMeta { more: false, dense: 5 });
    assert_eq!(plain.encode().as_slice(), [4, 0, 5]);
    assert_eq!(Meta::decode(&[4, 0, 0xFB, 5, 0]), Err(MetaFault::Malformed));
    assert_eq!(Meta::decode(&[4, 0, 0xFD, 5, 0, 0, 0, 0, 0, 0, 0]), Err(MetaFault::Malformed));
    assert_eq!(Meta::decode(&[4, 0, 0xFE]), Err(MetaFault::Malformed));
}

#[test]
fn later_formats_are_refused_or_passed_over() {
    for kind in [0, 8, record_kind::RETIRE, record_kind::REPLACE, 0x7F] {
        assert_eq!(Meta::decode(&[kind, 0, 5]), Err(MetaFault::UnknownKind(kind)));
    }
    assert_eq!(Meta::decode(&[4, 0x20, 5]), Err(MetaFault::UnknownFlags(0x20)));
    assert_eq!(Meta::decode(&[1, 0, 3, 1, 1, 0, 0, 0, 0, 0, 0]), Err(MetaFault::UnknownCoding(3)));
    let passed = Meta::decode(&[0x89, 0xF1, 1, 2, 3]).unwrap();
    assert_eq!(passed, Meta::Skipped { kind: 0x89, flags: 0xF1 });
    assert!(passed.more());
}

#[test]
fn flags_that_do_not_belong_to_the_kind_are_refused() {
    assert_eq!(Meta::decode(&[4, record_flag::STAGED, 5]), Err(MetaFault::Malformed));
    assert_eq!(Meta::decode(&[2, record_flag::REPLACE, 5]), Err(MetaFault::Malformed));
    assert_eq!(Meta::decode(&[2, record_flag::TURN_OPEN, 5]), Err(MetaFault::Malformed));
    let text_and_time = [1, record_flag::TIME_TEXT, 0, 1, 1, 9, 0, 0, 0, 0, 0];
    assert_eq!(Meta::decode(&text_and_time), Err(MetaFault::Malformed));
}
