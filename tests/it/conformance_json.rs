//! What JSON a record may carry (J), against every vector of `jsonvalue.json`.
//!
//! The verdict followed is `s`. Where a vector's `h` or its re-serialised text differs, the reason is written
//! at the place that counts it.

use std::fs;

use sessionlog::event::{Event, JsonErrorKind, JsonRef, JsonText, NewEvent, is_json_value};
use sha2::{Digest, Sha256};

use crate::vectors;

#[derive(Debug, Default, PartialEq)]
struct Counts {
    cases: usize,
    accepted: usize,
    refused_text: usize,
    refused_value: usize,
    /// The reference ran out of stack; nesting is no reason to refuse within the limit (J).
    accepted_where_the_stack_ended: usize,
    /// The later snapshot refuses every spelling of -0, which its printing would lose; we keep it (V3).
    accepted_where_h_refuses: usize,
    /// The reference parses and prints again; we keep the text (V3): numbers, escapes, spaces, duplicates.
    kept_where_the_reference_respells: usize,
}

fn generated(recipe: JsonRef<'_>) -> String {
    let depth = usize::try_from(recipe.get("depth").unwrap().as_u64().unwrap()).unwrap();
    let key = recipe.get("key").map(|key| key.as_str().unwrap().raw_inner()).unwrap_or_default();
    let leaf = recipe.get("leaf").map(|leaf| leaf.raw()).unwrap_or_default();
    let (array, object) = (("[".to_owned(), "]"), (format!("{{\"{key}\":"), "}"));
    let levels: Vec<_> = match &*vectors::text(recipe, "kind") {
        "array" => vec![&array; depth],
        "object" => vec![&object; depth],
        "alternating" => [&array, &object].into_iter().cycle().take(depth).collect(),
        other => panic!("unknown recipe {other}"),
    };
    let open: String = levels.iter().map(|level| level.0.as_str()).collect();
    let close: String = levels.iter().rev().map(|level| level.1).collect();
    format!("{open}{leaf}{close}")
}

fn string<'a>(case: JsonRef<'a>, name: &str) -> Option<std::borrow::Cow<'a, str>> {
    case.get(name).and_then(|value| value.as_str()).map(|text| text.to_utf8_lossy())
}

/// The text comes back as it was given, from the value and from a line of the interchange format.
fn assert_kept(id: &str, text: &str) -> JsonText {
    let kept = JsonText::parse(text).unwrap_or_else(|e| panic!("{id}: {e}"));
    let spaces = [' ', '\t', '\n', '\r'];
    assert_eq!(kept.as_str(), text.trim_matches(spaces).replace(['\n', '\r'], " "), "{id}");
    let line = format!("{{\"type\":\"a\",\"seq\":0,\"time\":0,\"data\":{kept}}}");
    let event = Event::parse_line(&line).unwrap_or_else(|e| panic!("{id}: {e}"));
    assert_eq!((event.data(), event.to_line()), (&kept, line), "{id}");
    kept
}

fn run(case: JsonRef<'_>, counts: &mut Counts) {
    let id = vectors::text(case, "id");
    let text = match case.get("gen") {
        Some(recipe) => generated(recipe),
        None => vectors::text(case, "text"),
    };
    let outcome = is_json_value(&text);
    assert_eq!(outcome.is_ok(), NewEvent::raw("a", &text).is_ok(), "{id}");
    counts.cases += 1;
    match (vectors::text(case, "parse").as_str(), string(case, "s").as_deref()) {
        ("error", None) => {
            assert_eq!(outcome.unwrap_err().kind(), JsonErrorKind::Syntax, "{id}: {text}");
            counts.refused_text += 1;
        }
        ("ok", Some("reject")) => {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), JsonErrorKind::NumberOverflow, "{id}: {text}");
            // The path leads to the very number.
            let at = &text[error.offset()..];
            assert!(at.starts_with(['-', '1']), "{id}: {error}");
            assert_eq!(error.path() == "$", !text.starts_with(['[', '{']), "{id}: {error}");
            counts.refused_value += 1;
        }
        ("ok", Some(verdict @ ("accept" | "stack-overflow"))) => {
            outcome.unwrap_or_else(|e| panic!("{id}: {e}"));
            let kept = assert_kept(&id, &text);
            counts.accepted += 1;
            counts.accepted_where_the_stack_ended += usize::from(verdict == "stack-overflow");
            counts.accepted_where_h_refuses += usize::from(string(case, "h").as_deref() == Some("reject"));
            if let Some(respelled) = string(case, "stringified") {
                counts.kept_where_the_reference_respells += usize::from(respelled != kept.as_str());
            }
            if let Some(expected) = string(case, "stringifiedSha256") {
                let digest: String =
                    Sha256::digest(kept.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
                assert_eq!(digest, expected, "{id}");
            }
        }
        other => panic!("{id}: a verdict that this test does not know: {other:?}"),
    }
}

#[test]
fn every_vector_gets_its_verdict() {
    let Some(path) = vectors::shared_path("jsonvalue.json") else { return };
    let file = JsonText::parse(&fs::read_to_string(path).unwrap()).unwrap();
    let mut counts = Counts::default();
    for case in file.value().get("cases").unwrap().elements() {
        run(case, &mut counts);
    }
    println!("jsonvalue.json: {counts:?}");
    assert_eq!((counts.cases, counts.accepted + counts.refused_text + counts.refused_value), (304, 304));
    assert_eq!((counts.accepted, counts.refused_text, counts.refused_value), (260, 36, 8));
    assert_eq!((counts.accepted_where_the_stack_ended, counts.accepted_where_h_refuses), (1, 7));
    assert_eq!(counts.kept_where_the_reference_respells, 127);
}

/// The rule's own examples, where the shared set is absent.
#[test]
fn the_rules_own_examples() {
    for text in ["-0", "1e308", "123456789012345680000", "\"\\ud800\"", "{\"a\":1,\"a\":2}", "[0.1, 5e-324]"]
    {
        assert_kept("own", text);
    }
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_kept("10,000 levels", &deep);
    for (text, path) in [("{\"a\":[1,{\"b\":1e400}]}", "$.a[1].b"), ("-1e999", "$"), ("[1,]", "$[1]")] {
        assert_eq!(is_json_value(text).unwrap_err().path(), path, "{text}");
    }
}
