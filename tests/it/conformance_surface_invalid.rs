//! Events and seeds that a log must refuse, with its state as it was (A2-A6, S5).

use std::error::Error as _;

use sessionlog::event::{
    Event, JsonRef, JsonText, MarkerError, NewEvent, ReplaceError, SourcesError, check_append,
};
use sessionlog::{Error, ErrorKind, Result};

use crate::folded::{Folded, messages, nodes};
use crate::vectors;

fn run(cases: &[JsonText]) {
    for case in cases {
        let case = case.value();
        let id = format!("{} ({})", vectors::text(case, "id"), vectors::text(case, "name"));
        let refused = match vectors::text(case, "via").as_str() {
            "append" => append(case, &id),
            "seed" => seed(case),
            other => panic!("{id}: an unknown way in: {other}"),
        };
        match (vectors::text(case, "expected").as_str(), refused) {
            ("accept", Ok(())) => {}
            // A4: an assistant/message may say that it had no chunks; the vectors leave it open.
            ("unspecified", Ok(())) => assert_eq!(vectors::text(case, "class"), "provenance-empty-assistant"),
            ("reject", Err(error)) => {
                let class = vectors::text(case, "class");
                assert_reason(&class, &vectors::text(case, "name"), &error, &id);
            }
            (expected, got) => panic!("{id}: expected {expected}, got {got:?}"),
        }
    }
}

/// Appends the attempt to the log; either way the state afterwards is the expected one.
fn append(case: JsonRef<'_>, id: &str) -> Result<()> {
    let mut folded = Folded::of(vectors::events(case, "log"));
    let attempt = case.get("attempt").unwrap();
    let result = attempted(attempt, folded.next_seq()).and_then(|event| folded.append(event));
    let expected = nodes(case.get("nodesAfter").unwrap());
    let is_open = vectors::text(case, "expected") == "unspecified";
    if is_open && result.is_ok() {
        // What the vector has is the surface after a refusal.
        let before: Vec<_> = expected.iter().map(|node| node[0]).collect();
        let after: Vec<_> = folded.nodes().iter().map(|node| node[0]).collect();
        assert_eq!(after, [before, vec![Some(folded.next_seq() - 1)]].concat(), "{id}");
    } else {
        assert_eq!(folded.nodes(), expected, "{id}");
    }
    if result.is_err() {
        assert_eq!(folded.messages(), messages(case.get("messagesAfter").unwrap()), "{id}");
        // The log goes on after a refusal.
        let next = format!(
            "{{\"type\":\"user/message\",\"seq\":{},\"time\":0,\"data\":{{\"content\":[]}},\"surfaceOp\":\"append\"}}",
            folded.next_seq()
        );
        folded.append(Event::parse_line(&next).unwrap()).unwrap();
    }
    result
}

/// The attempt as a line of the log, whatever its options are.
fn attempted(attempt: JsonRef<'_>, seq: u64) -> Result<Event> {
    let member = |name: &str| attempt.get(name).map(|value| value.raw().to_owned());
    let options = member("opts").unwrap_or("{}".into());
    let options = options.strip_prefix('{').and_then(|options| options.strip_suffix('}')).unwrap();
    let comma = if options.is_empty() { "" } else { "," };
    let (name, data) = (member("type").unwrap(), member("data").unwrap());
    Event::parse_line(&format!(
        "{{\"type\":{name},\"seq\":{seq},\"time\":0,\"data\":{data}{comma}{options}}}"
    ))
}

/// A seed is checked event by event and taken whole or not at all.
fn seed(case: JsonRef<'_>) -> Result<()> {
    let mut folded = Folded::default();
    for line in vectors::raw_elements(case, "seed") {
        let event = Event::parse_line(line)?;
        if event.seq() != folded.next_seq() {
            let text = format!("seq {} at place {}", event.seq(), folded.next_seq());
            return Err(Error::new(ErrorKind::InvalidValue, text));
        }
        folded.append(event)?;
    }
    Ok(())
}

/// The error is the one that the kind of case calls for.
fn assert_reason(class: &str, name: &str, error: &Error, id: &str) {
    let replace = error.source().and_then(|source| source.downcast_ref::<ReplaceError>());
    let sources = error.source().and_then(|source| source.downcast_ref::<SourcesError>());
    let marker = error.source().and_then(|source| source.downcast_ref::<MarkerError>());
    let kind = error.kind();
    let is_right = match name {
        _ if class == "seq" => kind == ErrorKind::InvalidValue,
        "no-opts" | "sources-but-no-op" | "op-null" | "seed-op-null" => marker == Some(&MarkerError::Missing),
        _ if name.starts_with("seed-no-op-") => marker == Some(&MarkerError::Missing),
        _ if name.starts_with("op-on-") => marker == Some(&MarkerError::Op),
        "replace-on-plugin-type" => marker == Some(&MarkerError::Op),
        "sources-on-plugin-type" => marker == Some(&MarkerError::Sources),
        "future-start" | "future-end" | "self" | "self-end" => {
            matches!(replace, Some(ReplaceError::UnknownSeq { .. }))
        }
        "seed-replace-unknown" | "seed-replace-later" | "seed-replace-self" => {
            matches!(replace, Some(ReplaceError::UnknownSeq { .. }))
        }
        "non-surface-start" | "non-surface-end" | "seed-replace-non-surface" => {
            matches!(replace, Some(ReplaceError::NotSurface { .. }))
        }
        "shadowed-single" | "shadowed-start" | "shadowed-end" | "seed-replace-shadowed" => {
            matches!(replace, Some(ReplaceError::AlreadyShadowed { .. }))
        }
        "reversed" | "ascending-number-reversed-position" | "seed-replace-reversed" => {
            matches!(replace, Some(ReplaceError::Reversed { .. }))
        }
        "replace-without-sources" | "replace-misses-one" => {
            matches!(replace, Some(ReplaceError::Uncovered { .. }))
        }
        "replace-sources-empty" | "sources-empty" => sources == Some(&SourcesError::Empty),
        "duplicate-sources" => matches!(sources, Some(SourcesError::Duplicate { .. })),
        "source-is-self" | "source-in-future" => matches!(sources, Some(SourcesError::NotEarlier { .. })),
        "source-negative" | "source-fraction" => kind == ErrorKind::Sources,
        "negative" => kind == ErrorKind::Marker,
        // All that is left are malformed markers.
        _ => kind == ErrorKind::Marker && marker.is_none(),
    };
    assert!(is_right, "{id}: {error:?}");
}

#[test]
fn bundled_cases() {
    let cases = vectors::bundled("surface-invalid/cases.jsonl");
    run(&cases);
    println!("surface-invalid: {} bundled vectors", cases.len());
}

#[test]
fn shared_cases() {
    let Some(cases) = vectors::shared("surface-invalid/cases.jsonl") else { return };
    run(&cases);
    println!("surface-invalid: {} vectors", cases.len());
}

/// A2's third side, which no vector has: what is accepted depends on the session, not on the event alone.
#[test]
fn the_same_event_is_legal_once() {
    let line = r#"{"type":"user/message","seq":0,"time":0,"data":{"content":[]},"surfaceOp":"append"}"#;
    let mut folded = Folded::of(vec![Event::parse_line(line).unwrap()]);
    let replace = r#"{"type":"user/message","seq":1,"time":0,"data":{"content":[]},"sourceEventSeqs":[0],"surfaceOp":{"op":"replace","start":0,"end":0}}"#;
    let replace = Event::parse_line(replace).unwrap();
    folded.append(replace.clone()).unwrap();
    let error = check_append(2, &NewEvent::from_event(replace), &folded.surface).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Replace);
    assert_eq!(
        error.source().and_then(|source| source.downcast_ref::<ReplaceError>()),
        Some(&ReplaceError::AlreadyShadowed { seq: 0, by: 1 })
    );
}
