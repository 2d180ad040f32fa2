use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::*;
use crate::event::JsonText;

fn text<T: Serialize + ?Sized>(value: &T) -> String {
    let text = to_text(value).unwrap();
    assert!(crate::event::is_json_value(&text).is_ok(), "{text}");
    text
}

fn refusal<T: Serialize + ?Sized>(value: &T) -> (JsonErrorKind, String, String) {
    let error = to_text(value).unwrap_err();
    (error.kind(), error.path().to_owned(), error.message().to_owned())
}

#[derive(Serialize)]
enum Shape {
    Unit,
    New(u8),
    Tuple(u8, bool),
    Struct { a: Option<u8>, b: () },
}

#[derive(Serialize)]
struct Unit;

#[derive(Serialize)]
struct Pair(u8, char);

#[derive(Serialize)]
struct All<'a> {
    ints: (i8, i16, i32, i64, u8, u16, u32, u64, i128, u128),
    floats: (f32, f64, f64, f64, f64),
    text: &'a str,
    shapes: Vec<Shape>,
    unit: Unit,
    pair: Pair,
    map: BTreeMap<String, Vec<u8>>,
    chars: BTreeMap<char, u8>,
}

#[test]
fn writes_what_serde_json_writes() {
    let all = All {
        ints: (-1, -2, -3, i64::MIN, 1, 2, 3, u64::MAX, i128::from(u64::MAX), 7),
        floats: (0.1, -0.0, 1.5, 0.30000000000000004, 1.0),
        text: "\u{0}\"\\\u{2028}😀",
        shapes: vec![Shape::Unit, Shape::New(1), Shape::Tuple(2, true), Shape::Struct { a: None, b: () }],
        unit: Unit,
        pair: Pair(1, '\n'),
        map: BTreeMap::from([("a".into(), vec![]), ("b\"".into(), vec![1, 2])]),
        chars: BTreeMap::from([('x', 1)]),
    };
    assert_eq!(text(&all), serde_json::to_string(&all).unwrap());
    assert_eq!(text(&()), "null");
    assert_eq!(text(&BTreeMap::<String, u8>::new()), "{}");
}

#[test]
fn floats_read_back_as_they_were() {
    for value in [5e-324, f64::MAX, f64::MIN_POSITIVE, 1e21, 1e300, 123_456_789.125, 1e15, 1e16, 1e17, -1e-7]
    {
        assert_eq!(text(&value).parse::<f64>().unwrap().to_bits(), value.to_bits());
    }
    assert_eq!(text(&f32::MAX).parse::<f32>().unwrap().to_bits(), f32::MAX.to_bits());
}

#[test]
fn refuses_with_the_path_of_the_value() {
    use JsonErrorKind::{IntegerRange, KeyType, NotFinite, Refused};
    #[derive(Serialize)]
    struct Outer<T> {
        first: u8,
        list: Vec<BTreeMap<String, T>>,
    }
    let outer =
        |value| Outer { first: 0, list: vec![BTreeMap::new(), BTreeMap::from([("k k".to_owned(), value)])] };
    let at = "$.list[1][\"k k\"]".to_owned();
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let (kind, path, message) = refusal(&outer(value));
        assert_eq!((kind, path), (NotFinite, at.clone()));
        assert!(message.ends_with("has no spelling in JSON"), "{message}");
    }
    assert_eq!(refusal(&f32::NAN).0, NotFinite);
    assert_eq!(refusal(&[1_u128 << 64]).1, "$[0]");
    let too_low = i128::from(i64::MIN) - 1;
    assert_eq!(
        refusal(&too_low),
        (IntegerRange, "$".into(), "the integer -9223372036854775809 does not fit 64 bits".into())
    );
    let keys = vec![HashMap::from([(5_u8, 1)])];
    assert_eq!(
        refusal(&keys),
        (KeyType, "$[0]".into(), "a map key that is not a string but the integer 5".into())
    );
    assert_eq!(refusal(&HashMap::from([(None::<String>, 1)])).0, KeyType);
    assert_eq!(refusal(&HashMap::from([(true, 1)])).0, KeyType);
    assert_eq!(refusal(&HashMap::from([((1, 2), 1)])).0, KeyType);

    struct Failing;
    impl Serialize for Failing {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(ser::Error::custom("no"))
        }
    }
    assert_eq!(refusal(&vec![(1, Failing)]), (Refused, "$[0][1]".into(), "no".into()));
    let error = JsonText::from_serialize(&[f64::NAN]).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::InvalidValue);
    assert_eq!(
        error.to_string(),
        "a value that JSON cannot carry: NaN has no spelling in JSON at $[0] (byte 1)"
    );
}

#[test]
fn raw_text_inside_data_is_checked_and_kept() {
    let raw = |text: &str| serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
    let spelled = r#"[1.50,{"k":"\ud800"}]"#;
    assert_eq!(text(&(1, raw(spelled))), format!("[1,{spelled}]"));
    assert_eq!(text(&JsonText::parse(spelled).unwrap()), spelled);
    assert_eq!(text(&raw("[1,\n2]")), "[1, 2]");
    let (kind, path, message) = refusal(&BTreeMap::from([("n", raw("[1e999]"))]));
    assert_eq!((kind, path.as_str()), (JsonErrorKind::NumberOverflow, "$.n"));
    assert_eq!(message, "raw text: a number that overflows a double (its byte 1)");
    let deep = format!("{}{}", "[".repeat(60_000), "]".repeat(60_000));
    assert_eq!(text(&(raw(&deep), 1)).len(), deep.len() + 4);
}

#[test]
fn typed_data_may_not_nest_beyond_its_limit() {
    #[derive(Serialize)]
    struct Nested(Vec<Nested>);
    let nested = |levels: usize| (1..levels).fold(Nested(vec![]), |inner, _| Nested(vec![inner]));
    text(&nested(MAX_TYPED_DEPTH));
    let (kind, path, _) = refusal(&nested(MAX_TYPED_DEPTH + 1));
    assert_eq!(kind, JsonErrorKind::TooDeep);
    assert!(path.starts_with("$[0][0]") && path.len() < 100, "{path}");
}
