//! Valid logs: the surface and the derived messages after every event (S1, S2, A5, M).

use sessionlog::event::{JsonRef, JsonText};

use crate::folded::{Folded, messages, nodes};
use crate::vectors;

/// Folds every log of `cases` and compares all that they expect; how many events were compared with their own
/// `after` entry.
fn run(cases: &[JsonText]) -> usize {
    let mut compared = 0;
    for case in cases {
        let case = case.value();
        let id = vectors::text(case, "id");
        let mut folded = Folded::default();
        let mut after: Vec<JsonRef<'_>> = Vec::new();
        after.extend(case.get("after").into_iter().flat_map(|entries| entries.elements()));
        let (mut expected_nodes, mut expected_messages) = (Vec::new(), Vec::new());
        for (i, event) in vectors::events(case, "events").into_iter().enumerate() {
            folded.append(event).unwrap_or_else(|e| panic!("{id}, event {i}: {e}"));
            let Some(entry) = after.get(i) else { continue };
            if let Some(value) = entry.get("nodes").filter(|value| !value.is_null()) {
                expected_nodes = nodes(value);
            }
            if let Some(value) = entry.get("messages").filter(|value| !value.is_null()) {
                expected_messages = messages(value);
            }
            assert_eq!(folded.nodes(), expected_nodes, "{id}, nodes after event {i}");
            assert_eq!(folded.messages(), expected_messages, "{id}, messages after event {i}");
            compared += 1;
        }
        assert_eq!(folded.nodes(), nodes(case.get("nodes").unwrap()), "{id}");
        assert_eq!(folded.messages(), messages(case.get("messages").unwrap()), "{id}");
    }
    compared
}

#[test]
fn bundled_logs() {
    let cases = vectors::bundled("surface/short.jsonl");
    assert!(run(&cases) > 0);
    println!("surface: {} bundled vectors", cases.len());
}

#[test]
fn short_logs() {
    let Some(cases) = vectors::shared("surface/short.jsonl") else { return };
    let compared = run(&cases);
    assert!(compared > 0);
    println!("surface/short: {} vectors, {compared} states after an event", cases.len());
}

#[test]
fn long_logs() {
    let Some(cases) = vectors::shared("surface/long.jsonl") else { return };
    run(&cases);
    println!("surface/long: {} vectors", cases.len());
}
