//! Lines and events: what is read from a line gives back the line, byte for byte (X2).

use proptest::prelude::*;
use sessionlog::ErrorKind;
use sessionlog::event::{Class, Event, SurfaceOp};

use crate::json_text::value;

fn type_name() -> impl Strategy<Value = String> {
    let known: Vec<String> = Class::ALL.into_iter().filter_map(Class::name).map(str::to_owned).collect();
    prop_oneof![prop::sample::select(known), any::<String>(), "[a-z]{1,8}/[a-z]{1,8}"]
}

fn time() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|t| t.to_string()),
        (0_i64..1 << 48).prop_map(|t| t.to_string()),
        prop::sample::select(vec!["-0", "1.50", "1e3", "1782133869868.0", "99999999999999999999", "-1.5E-7"])
            .prop_map(str::to_owned),
    ]
}

fn surface_op() -> impl Strategy<Value = SurfaceOp> {
    prop_oneof![
        Just(SurfaceOp::Append),
        any::<(u64, u64)>().prop_map(|(start, end)| SurfaceOp::Replace { start, end }),
    ]
}

/// JSON text as some writer might spell it: spaces between tokens, escapes, other number spellings.
fn spelled() -> impl Strategy<Value = String> {
    prop_oneof![
        value().prop_map(|v| v.to_string()),
        value().prop_map(|v| serde_json::to_string_pretty(&v).unwrap().replace('\n', "\t")),
        prop::sample::select(vec!["-0", "1E2", "\"\\ud800\"", "\"\\/\\u0041\"", "{\"a\":1,\"a\":2}", "[ ]"])
            .prop_map(str::to_owned),
    ]
}

fn spaces() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(String::new()), 1 => "[ \t\r]{1,3}"]
}

/// A member: its name quoted, perhaps with an escape, and its value.
fn odd_member() -> impl Strategy<Value = (String, String)> {
    let names = prop::sample::select(vec![
        "\"type\"",
        "\"seq\"",
        "\"time\"",
        "\"data\"",
        "\"d\\u0061ta\"",
        "\"surfaceOp\"",
        "\"sourceEventSeqs\"",
        "\"x\"",
        "\"\"",
        "\"\\ud800\"",
        "\"ignorable\"",
        "\"se\\u0071\"",
    ]);
    let values = prop_oneof![
        spelled(),
        prop::sample::select(vec![
            "26.0",
            "2.6e1",
            "null",
            "\"append\"",
            "[3,1]",
            "[0.1e1]",
            "\"turn\\/start\""
        ])
        .prop_map(str::to_owned),
        surface_op().prop_map(|op| op.to_string()),
    ];
    (names.prop_map(str::to_owned), values)
}

/// A line with the required members somewhere among others, in any order and spelling.
fn odd_line() -> impl Strategy<Value = String> {
    any::<u64>().prop_flat_map(odd_line_at)
}

/// A line that says `seq`, unless a later duplicate says something else.
pub(crate) fn odd_line_at(seq: u64) -> impl Strategy<Value = String> {
    let required = (type_name(), Just(seq), time(), spelled()).prop_map(|(name, seq, time, data)| {
        vec![
            ("\"type\"".to_owned(), serde_json::to_string(&name).unwrap()),
            ("\"seq\"".to_owned(), seq.to_string()),
            ("\"time\"".to_owned(), time),
            ("\"data\"".to_owned(), data),
        ]
    });
    let members = (required, prop::collection::vec(odd_member(), 0..4))
        .prop_map(|(required, odd)| [required, odd].concat())
        .prop_shuffle();
    (members, prop::collection::vec(spaces(), 64)).prop_map(|(members, spaces)| {
        let mut gap = spaces.iter().map(String::as_str).cycle();
        let mut gap = move || gap.next().unwrap_or("");
        let member =
            |(name, value): &(String, String)| format!("{}{name}{}:{}{value}{}", gap(), gap(), gap(), gap());
        let members: Vec<String> = members.iter().map(member).collect();
        format!("{{{}}}{}", members.join(","), spaces[0])
    })
}

proptest! {
    #[test]
    fn a_canonical_line_is_its_fields(
        name in type_name(),
        seq: u64,
        time in time(),
        data in spelled(),
        sources in prop::option::of(prop::collection::vec(any::<u64>(), 0..5)),
        op in prop::option::of(surface_op()),
        extra in prop::option::of(spelled()),
    ) {
        let mut line = format!("{{\"type\":{},\"seq\":{seq},\"time\":{time},\"data\":{data}", serde_json::to_string(&name).unwrap());
        if let Some(sources) = &sources {
            line += &format!(",\"sourceEventSeqs\":{}", serde_json::to_string(sources).unwrap());
        }
        if let Some(op) = op {
            line += &format!(",\"surfaceOp\":{op}");
        }
        let extra = extra.map(|value| format!("\"x\":{value},\"ignorable\":true"));
        if let Some(extra) = &extra {
            line += &format!(",{extra}");
        }
        line.push('}');
        let event = Event::parse_line(&line).unwrap();
        prop_assert_eq!(event.to_line(), line.as_str());
        prop_assert_eq!((event.event_type(), event.seq()), (name.as_str(), seq));
        prop_assert_eq!(event.time().spelling(), time);
        prop_assert_eq!((event.data().as_str(), event.sources()), (data.as_str(), sources.as_deref()));
        prop_assert_eq!((event.surface_op(), event.extra()), (op, extra.as_deref()));
        prop_assert_eq!(Event::parse_line(&event.to_line()).unwrap(), event);
    }

    #[test]
    fn every_valid_line_comes_back_byte_for_byte(line in odd_line()) {
        match Event::parse_line_lenient(&line) {
            Ok(parsed) => {
                prop_assert_eq!(parsed.event.to_line(), line.as_str());
                prop_assert_eq!(&Event::parse_line_lenient(&line).unwrap().event, &parsed.event);
            }
            // A later duplicate may have made a required member malformed.
            Err(e) => prop_assert_eq!(e.kind(), ErrorKind::InvalidValue, "{}: {}", line, e),
        }
    }

    #[test]
    fn of_duplicate_members_the_last_counts(line in odd_line()) {
        let Ok(parsed) = Event::parse_line_lenient(&line) else { return Ok(()) };
        // serde_json refuses lone surrogates, but agrees on everything else.
        let Ok(value) = serde_json::from_str::<serde_json::Value>(&line) else { return Ok(()) };
        prop_assert_eq!(value["type"].as_str(), Some(parsed.event.event_type()));
        prop_assert_eq!(&value["data"], &serde_json::from_str::<serde_json::Value>(parsed.event.data()).unwrap());
        prop_assert_eq!(value["seq"].as_f64(), Some(parsed.event.seq() as f64));
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = Event::parse_line_lenient(&text);
        let _ = Event::parse_line(&format!("{{\"type\":{text}"));
    }
}
