//! What goes in comes out byte for byte; what no encoder makes is refused; nothing panics or grows out of proportion.

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::format::meta::Meta;

const EXAMPLE: &str = r#"{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":" me"}}"#;

fn pack(event: &Event) -> (EventMeta, Vec<u8>) {
    let mut out = Vec::new();
    let encoded = encode(&Parts::of_event(event), &mut out);
    (encoded.meta(3, event.seq(), false), out)
}

/// Packs and unpacks; the coding that was used.
fn round_trip(event: &Event) -> u8 {
    let (meta, payload) = pack(event);
    let again = decode(&meta, &payload).unwrap();
    assert_eq!(again.to_line(), event.to_line());
    assert_eq!(&again, event);
    let (meta_again, payload_again) = pack(&again);
    assert_eq!((meta_again, payload_again), (meta, payload));
    meta.coding
}

fn line(text: &str) -> u8 {
    let event = Event::parse_line(text).unwrap();
    assert_eq!(event.to_line(), text);
    round_trip(&event)
}

fn chunk_event(data: &str) -> Event {
    let new = NewEvent::raw("assistant/chunk", data).unwrap();
    new.into_event(7, Time::from_millis(1_782_094_878_835))
}

#[test]
fn the_example_chunk_takes_at_most_25_bytes_with_its_metadata() {
    let event = chunk_event(EXAMPLE);
    let (meta, payload) = pack(&event);
    let meta_bytes = Meta::Event(EventMeta { dense: 200, seq: 9_999, ..meta }).encode();
    let size = payload.len() + usize::from(meta_bytes.len());
    assert_eq!(meta.coding, coding::CHUNK);
    assert!(size <= 25, "{size} bytes");
}

#[test]
fn the_five_shapes_are_packed() {
    let shapes: [(&str, &[u8]); 5] = [
        (r#"{"type":"text-delta","index":0,"text":" me"}"#, b"\x01\x01\x02\x00 me"),
        (r#"{"type":"reasoning-delta","index":0,"text":"\n\ud800"}"#, b"\x02\x01\x02\x00\\n\\ud800"),
        (
            r#"{"type":"tool-call-delta","index":300,"id":"c1","argumentsDelta":"{\"a\":"}"#,
            b"\x03\x01\x02\xAC\x02\x02c1{\\\"a\\\":",
        ),
        (
            r#"{"type":"tool-call-delta","index":1,"id":"","name":"bash","argumentsDelta":""}"#,
            b"\x04\x01\x02\x01\x00\x04bash",
        ),
        (r#"{"type":"block-start","index":0,"blockType":"text"}"#, b"\x05\x01\x02\x00text"),
    ];
    for (chunk, expected) in shapes {
        let event = chunk_event(&format!(r#"{{"turn":1,"step":2,"chunk":{chunk}}}"#));
        let (meta, payload) = pack(&event);
        assert_eq!((meta.coding, payload.as_slice()), (coding::CHUNK, expected), "{chunk}");
        round_trip(&event);
    }
}

#[test]
fn what_is_spelled_otherwise_stays_plain() {
    let others = [
        r#"{"turn": 1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"x"}}"#,
        r#"{"turn":1.0,"step":1,"chunk":{"type":"text-delta","index":0,"text":"x"}}"#,
        r#"{"turn":-0,"step":1,"chunk":{"type":"text-delta","index":0,"text":"x"}}"#,
        r#"{"turn":18446744073709551616,"step":1,"chunk":{"type":"text-delta","index":0,"text":"x"}}"#,
        r#"{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"x","text":"y"}}"#,
        r#"{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"x"},"more":"}}"}"#,
        r#"{"turn":1,"step":1,"chunk":{"type":"text-delta","text":"x","index":0}}"#,
        r#"{"turn":1,"step":1,"chunk":{"type":"text\u002ddelta","index":0,"text":"x"}}"#,
        r#"{"turn":1,"step":1,"chunk":{"type":"tool-call-delta","index":0,"name":"n","id":"c","argumentsDelta":""}}"#,
        r#"{"turn":1,"step":1,"chunk":{"type":"usage","usage":{}}}"#,
        "null",
    ];
    for data in others {
        assert_eq!(round_trip(&chunk_event(data)), coding::PLAIN, "{data}");
    }
}

#[test]
fn envelopes_choose_the_coding() {
    let with =
        |rest: &str| format!(r#"{{"type":"assistant/chunk","seq":7,"time":5,"data":{EXAMPLE}{rest}}}"#);
    assert_eq!(line(&with("")), coding::CHUNK);
    assert_eq!(line(&with(r#","ignorable":true"#)), coding::PLAIN);
    assert_eq!(line(&with(r#","sourceEventSeqs":[]"#)), coding::PLAIN);
    assert_eq!(line(&with("").replace(":5,", ":5.0,")), coding::PLAIN);
    assert_eq!(line(&with("").replace(":5,", ":-5,")), coding::PLAIN);
    assert_eq!(line(&with("").replace(":5,", ":281474976710655,")), coding::CHUNK);
    assert_eq!(line(&with("").replace(":5,", ":281474976710656,")), coding::PLAIN);
    assert_eq!(line(&with("").replace(",\"time\"", ", \"time\"")), coding::VERBATIM);
}

#[test]
fn every_part_of_an_envelope_comes_back() {
    for text in [
        r#"{"type":"plugin/x","seq":0,"time":-1.5e0,"data":null}"#,
        r#"{"type":"","seq":0,"time":-0,"data":[]}"#,
        r#"{"type":"user/message","seq":9,"time":1,"data":{"content":[]},"surfaceOp":"append","origin":{"a":[1]}}"#,
        r#"{"type":"tool/result","seq":9,"time":1,"data":{},"sourceEventSeqs":[5,6,7,2,1,0],"surfaceOp":{"op":"replace","start":2,"end":1}}"#,
        r#"{"type":"context/message","seq":9,"time":1,"data":"","sourceEventSeqs":[18446744073709551615,0,3]}"#,
    ] {
        assert_eq!(line(text), coding::PLAIN, "{text}");
    }
    let replaced =
        r#"{"seq":3,"type":"user/message","time":1,"data":1,"surfaceOp":{"end":2,"op":"replace","start":1}}"#;
    assert_eq!(line(replaced), coding::VERBATIM);
}

#[test]
fn a_line_at_another_place_keeps_its_fields() {
    let text = r#"{"seq":3, "type":"user/message","time":1.0,"data":{"a": 1},"surfaceOp":"append"}"#;
    let event = Event::parse_line(text).unwrap();
    let new = NewEvent::from_event(event);
    let now = Time::from_millis(99);
    assert_eq!(Parts::of_new(&new, 3, &now).line, Some(text));
    assert_eq!(Parts::of_new(&new, 4, &now).line, None);
    let mut out = Vec::new();
    let meta = encode(&Parts::of_new(&new, 3, &now), &mut out).meta(1, 8, false);
    let moved = decode(&meta, &out).unwrap();
    let expected = r#"{"type":"user/message","seq":8,"time":1.0,"data":{"a": 1},"surfaceOp":"append"}"#;
    assert_eq!(moved.to_line(), expected);
}

#[test]
fn consecutive_sources_take_a_few_bytes() {
    let list: Vec<u64> = (4..10_004).collect();
    let mut out = Vec::new();
    sources::pack(&list, &mut out);
    assert_eq!(out, [1, 8, 0x90, 0x4E]);
    assert_eq!(sources::unpack(&mut varint::Cursor::new(&out)), Ok(list));
}

#[test]
fn few_bytes_never_become_many_sources() {
    let mut out = vec![1, 0];
    varint::put(&mut out, MAX_SOURCES as u64);
    assert_eq!(sources::unpack(&mut varint::Cursor::new(&out)).map(|l| l.len()), Ok(MAX_SOURCES));
    for (runs, length) in [(1, MAX_SOURCES as u64 + 1), (2, MAX_SOURCES as u64), (1, u64::MAX), (1, 0)] {
        let mut out = vec![runs];
        for _ in 0..runs {
            out.push(10);
            varint::put(&mut out, length);
        }
        assert!(sources::unpack(&mut varint::Cursor::new(&out)).is_err(), "{runs} runs of {length}");
    }
}

#[test]
fn limits_are_typed() {
    let now = Time::from_millis(0);
    let check = |new: NewEvent| Parts::of_new(&new, 0, &now).check_limits();
    let of = |event_type: &str, data: &str| NewEvent::raw(event_type, data).unwrap();
    assert!(check(of(&"t".repeat(1024), "1").with_sources(vec![0; MAX_SOURCES])).is_ok());
    let error = check(of(&"t".repeat(1025), "1")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(error.to_string(), "append: type of 1025 bytes, at most 1024 are possible");
    let error = check(of("t", "1").with_sources(vec![0; MAX_SOURCES + 1])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let data = format!("\"{}\"", "x".repeat(MAX_PAYLOAD_BYTES - 2));
    assert!(check(of("t", &data)).is_ok());
    assert_eq!(
        check(of("t", &format!("{data} ").replace("\" ", "x\""))).unwrap_err().kind(),
        ErrorKind::TooLarge
    );
}

#[test]
fn payloads_that_no_encoder_makes_are_refused() {
    let meta = |coding, class, time_ms, replace| EventMeta {
        more: false,
        coding,
        class,
        dense: 1,
        seq: 5,
        time_ms,
        replace,
    };
    let plain = |class| meta(coding::PLAIN, class, Some(1), None);
    let chunk = meta(coding::CHUNK, 0, Some(1), None);
    let bad: [(&str, EventMeta, &[u8]); 20] = [
        ("class", plain(12), b"\x001"),
        ("coding", meta(3, 0, Some(1), None), b"\x001"),
        ("no fields", plain(2), b""),
        ("unknown field", plain(2), b"\x081"),
        ("no data", plain(2), b"\x00"),
        ("data with space", plain(2), b"\x00 1"),
        ("data with a break", plain(2), b"\x00[\n]"),
        ("no JSON", plain(2), b"\x00{]"),
        ("no UTF-8", plain(2), b"\x00\"\xFF\""),
        ("both operations", meta(coding::PLAIN, 7, Some(1), Some((1, 1))), b"\x011"),
        ("known type as other", plain(1), b"\x00\x0Aturn/start1"),
        ("type too long", plain(1), b"\x00\x0Aturn"),
        ("time with a place in the metadata", meta(coding::PLAIN, 2, None, None), b"\x00\x0151"),
        ("time", meta(coding::PLAIN, 2, None, None), b"\x00\x01x1"),
        ("extra", plain(2), b"\x04\x01x1"),
        ("sources", plain(7), b"\x02\x02\x02\x01\x02\x011"),
        ("chunk shape", chunk, b"\x06\x01\x01\x00x"),
        ("chunk quote", chunk, b"\x01\x01\x01\x00\"},\"x\":{\"y\":\""),
        ("chunk class", meta(coding::CHUNK, 2, Some(1), None), b"\x01\x01\x01\x00x"),
        ("line", meta(coding::VERBATIM, 2, Some(1), None), b"{}"),
    ];
    for (what, meta, payload) in bad {
        assert!(decode(&meta, payload).is_err(), "{what}");
    }
    for end in ["\\", "\\u12", "\\u12g4", "\\x", "a\u{1}b", "\n"] {
        assert!(decode(&chunk, &[b"\x01\x01\x01\x00", end.as_bytes()].concat()).is_err(), "{end:?}");
    }
}

#[test]
fn session_payloads_come_back_and_bad_ones_are_refused() {
    for id in ["a", "söm\u{0}\u{0}é", "\u{0}", &"\u{0}".repeat(1024)] {
        let mut out = Vec::new();
        encode_session(id, r#"{"type":"session"}"#, &mut out);
        assert!(!out.contains(&0), "F8");
        assert_eq!(decode_session(&out), Ok((id.to_owned(), r#"{"type":"session"}"#)));
    }
    let bad: [&[u8]; 6] = [b"", b"\x00{}", b"\x01a[]", b"\x01a{", b"\x02a\x00{}", b"\x02\xC0\x81{}"];
    for payload in bad {
        assert!(decode_session(payload).is_err(), "{payload:?}");
    }
    let long = [&[0x81, 0x08][..], &[b'a'; 1025], b"{}"].concat();
    assert!(decode_session(&long).is_err());
}

/// Longest run of zero bytes.
fn zeros(bytes: &[u8]) -> usize {
    bytes.split(|&b| b != 0).map(<[u8]>::len).max().unwrap_or(0)
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?",
        any::<String>().prop_map(|s| serde_json::to_string(&s).unwrap()),
        "\"(\\\\u[dD][89abAB][0-9a-f]{2}|\\\\/|[ -!#-\\[])*\"",
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|v| format!("[{}]", v.join(", "))),
            prop::collection::vec((any::<String>(), inner), 0..4).prop_map(|v| {
                let members: Vec<_> =
                    v.iter().map(|(k, v)| format!("{}:{v}", serde_json::to_string(k).unwrap())).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

fn chunk_json() -> impl Strategy<Value = String> {
    let inner = "(\\\\u[0-9a-fA-F]{4}|\\\\[\"\\\\/bfnrt]|[ -!#-\\[\\]-~äß😀])*";
    let body = prop_oneof![
        inner.prop_map(|t| format!(r#""type":"text-delta","index":0,"text":"{t}""#)),
        (any::<u64>(), inner)
            .prop_map(|(i, t)| format!(r#""type":"reasoning-delta","index":{i},"text":"{t}""#)),
        (0u64..9, inner, inner).prop_map(|(i, id, a)| {
            format!(r#""type":"tool-call-delta","index":{i},"id":"{id}","argumentsDelta":"{a}""#)
        }),
        (0u64..300, inner, inner, inner).prop_map(|(i, id, n, a)| {
            format!(r#""type":"tool-call-delta","index":{i},"id":"{id}","name":"{n}","argumentsDelta":"{a}""#)
        }),
        inner.prop_map(|t| format!(r#""type":"block-start","index":0,"blockType":"{t}""#)),
    ];
    (any::<u64>(), 0u64..1000, body)
        .prop_map(|(turn, step, body)| format!(r#"{{"turn":{turn},"step":{step},"chunk":{{{body}}}}}"#))
}

fn events() -> impl Strategy<Value = Event> {
    let time = prop_oneof![
        3 => any::<i64>().prop_map(Time::from_millis),
        3 => (0..1i64 << 48).prop_map(Time::from_millis),
        1 => "-?[1-9][0-9]{0,8}\\.[0-9]{1,5}".prop_map(|t| Time::parse_json(&t).unwrap()),
    ];
    let event_type = prop_oneof![
        (0u8..12).prop_map(|c| Class::from_u8(c).unwrap().name().unwrap_or("x/y").to_owned()),
        any::<String>(),
        Just("\u{0}".repeat(1000)),
    ];
    let op = prop_oneof![
        2 => Just(None),
        1 => Just(Some(SurfaceOp::Append)),
        1 => (any::<u64>(), 0u64..9).prop_map(|(start, end)| Some(SurfaceOp::Replace { start, end })),
    ];
    let runs = prop::collection::vec((any::<u64>(), 0usize..40), 0..6);
    let sources =
        prop::option::of(runs.prop_map(|runs| {
            runs.iter().flat_map(|(first, n)| (*first >> 3..).take(*n)).collect::<Vec<_>>()
        }));
    let extra = prop::option::of(json());
    (event_type, time, json(), op, sources, extra, any::<u64>()).prop_map(
        |(event_type, time, data, op, sources, extra, seq)| {
            let mut new = NewEvent::raw(event_type, &data).unwrap();
            new.surface_op = op;
            new.sources = sources.map(Into::into);
            if let Some(value) = extra {
                new = new.with_extra(&format!("{{\"later\":{value}}}")).unwrap();
            }
            new.into_event(seq, time)
        },
    )
}

proptest! {
    #[test]
    fn every_event_comes_back(event in events()) {
        prop_assert_ne!(round_trip(&event), coding::CHUNK);
        prop_assert!(zeros(&pack(&event).1) < 8, "F8");
    }

    #[test]
    fn every_canonical_chunk_is_packed_and_comes_back(data in chunk_json()) {
        let event = chunk_event(&data);
        prop_assert_eq!(round_trip(&event), coding::CHUNK);
        let packed = pack(&event).1;
        prop_assert!(zeros(&packed) < 8 && packed.len() < data.len(), "F8");
    }

    #[test]
    fn one_changed_byte_of_a_chunk_is_plain_or_comes_back(data in chunk_json(), at: prop::sample::Index, to in 32u8..127) {
        let mut bytes = data.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Some(text) = String::from_utf8(bytes).ok().filter(|t| is_json_value(t).is_ok()) {
            round_trip(&chunk_event(&text));
        }
    }

    #[test]
    fn whatever_unpacks_is_json_and_packs_the_same(
        shape in 0u8..8, bytes in prop::collection::vec(prop_oneof![0u8..6, 32u8..127, any::<u8>()], 0..40)
    ) {
        let payload = [&[shape][..], &bytes].concat();
        if let Ok(chunk) = crate::event::chunk_text::Chunk::unpack(&payload) {
            let text = chunk.render();
            prop_assert!(is_json_value(&text).is_ok(), "{}", text);
            prop_assert_eq!(crate::event::chunk_text::recognise(&text), Some(chunk));
            let mut again = Vec::new();
            chunk.pack(&mut again);
            prop_assert_eq!(again, payload);
        }
    }

    #[test]
    fn no_payload_makes_a_decoder_panic(
        coding in 0u8..4, class in 0u8..13, whole: bool, event in events(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)
    ) {
        let (meta, mut payload) = pack(&event);
        for (at, to) in flips {
            let at = at.index(payload.len());
            payload[at] = to;
        }
        let time_ms = whole.then_some(5);
        let _ = decode(&meta, &payload);
        let _ = decode(&EventMeta { coding, class, time_ms, ..meta }, &payload);
    }
}

/// The shared corpus beside the repository, where it is there.
fn corpus() -> Option<Vec<PathBuf>> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let shared = std::env::var_os("SESSIONLOG_SHARED").map_or(beside, PathBuf::from);
    let entries = std::fs::read_dir(shared.join("corpus/dsh")).ok()?;
    Some(
        entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|x| x == "jsonl")).collect(),
    )
}

#[test]
fn recorded_sessions_come_back_and_their_deltas_are_packed() {
    let Some(files) = corpus() else {
        println!("skipped: no corpus beside the repository");
        return;
    };
    let (mut events, mut packed, mut deltas, mut text_len, mut packed_len) = (0, 0, 0, 0, 0);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for event in text.lines().skip(1).filter_map(|l| Event::parse_line(l).ok()) {
            events += 1;
            deltas += usize::from(event.data().contains("-delta\",") && event.class() == Class::Chunk);
            if round_trip(&event) == coding::CHUNK {
                packed += 1;
                text_len += event.to_line().len();
                packed_len += pack(&event).1.len();
            }
        }
    }
    println!("{events} events, {packed} packed ({deltas} deltas): {text_len} bytes of lines in {packed_len}");
    assert!(events > 0 && packed >= deltas, "{packed} of {deltas} deltas packed");
}

/// Not a test of correctness: prints what packing costs. Run with `--release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost_of_packing_a_chunk() {
    let event = chunk_event(EXAMPLE);
    let (meta, payload) = pack(&event);
    let mut out = Vec::with_capacity(64);
    let start = std::time::Instant::now();
    for _ in 0..1_000_000 {
        out.clear();
        std::hint::black_box(encode(&Parts::of_event(std::hint::black_box(&event)), &mut out));
    }
    println!("encode {} ns", start.elapsed().as_nanos() / 1_000_000);
    let start = std::time::Instant::now();
    for _ in 0..1_000_000 {
        std::hint::black_box(decode(&meta, std::hint::black_box(&payload)).unwrap());
    }
    println!("decode {} ns", start.elapsed().as_nanos() / 1_000_000);
}
