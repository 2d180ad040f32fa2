//! The scanner against serde_json: what is JSON, what stands where, and what typed data becomes.

use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sessionlog::event::{
    Event, JsonErrorKind, JsonKind, JsonRef, JsonText, NewEvent, PlainEvent, is_json_value,
};

/// Any value; serde_json's map keeps no duplicates.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no spelling for it", |f| f.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Bytes that matter to JSON, and some that should not be there.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud800", "\\n", "true", "null", "0", "-",
            "1.5", "e9", "1e999", "E+", ".", " ", "\t", "\n", "\r", "\u{0}", "é", "\u{2028}", "/", "a", "00",
            "\u{7f}",
        ])
        .prop_map(str::to_owned),
        value().prop_map(|v| v.to_string()),
    ]
}

/// JSON, or something that was JSON before a few edits.
fn nearly_json() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), piece());
    (value(), prop::collection::vec(edit, 0..4)).prop_map(|(value, edits)| {
        let mut chars: Vec<char> = value.to_string().chars().collect();
        for (from, cut, with) in edits {
            let from = from.index(chars.len() + 1);
            let to = (from + cut.index(3)).min(chars.len());
            chars.splice(from..to, with.chars());
        }
        chars.into_iter().collect()
    })
}

/// The value that `found` denotes, as serde_json would read it.
fn rebuilt(found: JsonRef<'_>) -> Value {
    match found.kind() {
        JsonKind::Null => Value::Null,
        JsonKind::Bool => Value::from(found.as_bool().unwrap()),
        JsonKind::Number => serde_json::from_str(found.raw()).unwrap(),
        JsonKind::String => Value::from(found.as_str().unwrap().to_string_lossless().unwrap()),
        JsonKind::Array => found.elements().map(rebuilt).collect::<Vec<_>>().into(),
        JsonKind::Object => Value::Object(
            found
                .members()
                .map(|(name, value)| (name.to_string_lossless().unwrap().into_owned(), rebuilt(value)))
                .collect(),
        ),
    }
}

proptest! {
    #[test]
    fn agrees_with_serde_json_on_what_is_json(text in nearly_json()) {
        let theirs = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        match is_json_value(&text) {
            Ok(()) => prop_assert!(theirs, "accepted {text:?}"),
            Err(e) if e.kind() == JsonErrorKind::NumberOverflow => {}
            Err(e) => prop_assert!(!theirs, "refused {text:?}: {e}"),
        }
    }

    #[test]
    fn a_text_is_kept_and_can_be_walked(value in value(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let kept = JsonText::parse(&text).unwrap();
        prop_assert_eq!(kept.as_str(), text.replace('\n', " "));
        prop_assert_eq!(rebuilt(kept.value()), value);
    }

    #[test]
    fn typed_data_becomes_what_serde_json_reads_back(value in value()) {
        let text = JsonText::from_serialize(&value).unwrap();
        prop_assert!(is_json_value(&text).is_ok());
        prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_typed_number_reads_back_to_the_bit(bits: u64) {
        #[derive(Serialize, Deserialize)]
        struct Measured {
            value: f64,
        }
        impl PlainEvent for Measured {
            const TYPE: &'static str = "measured";
        }
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let data = NewEvent::plain(&Measured { value }).unwrap();
        let line = format!("{{\"type\":\"measured\",\"seq\":0,\"time\":0,\"data\":{}}}", data.data());
        let read: Measured = Event::parse_line(&line).unwrap().read().unwrap();
        prop_assert_eq!(read.value.to_bits(), bits);
    }

    #[test]
    fn faults_stand_inside_the_text(text in nearly_json()) {
        if let Err(e) = is_json_value(&text) {
            prop_assert!(e.offset() <= text.len());
            prop_assert!(e.path().starts_with('$'));
        }
    }
}
