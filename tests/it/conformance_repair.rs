//! The closers of every prefix of every log (R1, R2), and that they leave nothing to close.

use sessionlog::event::{Event, JsonRef, JsonText, NewEvent, RepairState, Surface, Time, check_append};

use crate::vectors;

/// Plans the closers of every prefix; how many prefixes there were.
fn run(cases: &[JsonText]) -> usize {
    let mut count = 0;
    for case in cases {
        let case = case.value();
        let id = format!("{} ({})", vectors::text(case, "id"), vectors::text(case, "name"));
        let events = vectors::events(case, "events");
        let mut state = RepairState::new();
        for (n, prefix) in case.get("prefixes").unwrap().elements().enumerate() {
            assert_eq!(prefix.get("n").unwrap().as_u64(), Some(n as u64), "{id}");
            if let Some(event) = n.checked_sub(1).and_then(|last| events.get(last)) {
                state.observe(event);
            }
            let last_time = n.checked_sub(1).map_or(Time::from_millis(0), |last| events[last].time().clone());
            let closers = state.closers(n as u64, &last_time);
            compare(&closers, prefix, &format!("{id}, first {n} events"));
            assert_balanced(state.clone(), &closers, &last_time);
            count += 1;
        }
        assert_eq!(state.closers(0, &Time::from_millis(0)).is_empty(), !state.open_turn());
    }
    count
}

/// All but the wording of a synthetic result is as the vector has it; the wording says what happened to the call.
fn compare(closers: &[Event], prefix: JsonRef<'_>, at: &str) {
    let expected: Vec<Event> = vectors::events(prefix, "closers");
    assert_eq!(closers.len(), expected.len(), "{at}");
    let codes = prefix.get("hCodes").into_iter().flat_map(|codes| codes.elements());
    let mut codes = codes.map(|code| code.as_str().unwrap().to_utf8_lossy().into_owned());
    for (closer, expected) in closers.iter().zip(&expected) {
        assert_eq!(unworded(closer), unworded(expected), "{at}");
        if closer.event_type() == "tool/result" {
            let text = wording(closer);
            let is_right = match codes.next().as_deref() {
                Some("TOOL_NOT_STARTED") => text.contains("never started") && text.contains("safe to retry"),
                Some("TOOL_OUTCOME_UNKNOWN") => text.contains("outcome is unknown"),
                other => panic!("{at}: an unknown code {other:?}"),
            };
            assert!(is_right, "{at}: {text}");
        }
    }
}

fn wording(closer: &Event) -> String {
    let block = closer.data().value().get("content").unwrap().elements().next().unwrap();
    vectors::text(block, "text")
}

/// All of the event but its wording.
fn unworded(closer: &Event) -> String {
    let (name, time, data) = (closer.event_type(), closer.time().spelling(), closer.data().as_str());
    let line =
        format!("{name} {} {time} {:?} {:?} {data}", closer.seq(), closer.sources(), closer.surface_op());
    if closer.event_type() != "tool/result" {
        return line;
    }
    let block = closer.data().value().get("content").unwrap().elements().next().unwrap();
    let text = block.get("text").unwrap().raw();
    assert_eq!(line.matches(text).count(), 1, "{line}");
    line.replacen(text, "\"\"", 1)
}

/// The closers may be appended, and a second run gives none (R3).
fn assert_balanced(mut state: RepairState, closers: &[Event], last_time: &Time) {
    let mut surface = Surface::new();
    for closer in closers {
        check_append(closer.seq(), &NewEvent::from_event(closer.clone()), &surface).unwrap();
        if let Some(op) = closer.surface_op() {
            surface.apply(closer.seq(), &op).unwrap();
        }
        state.observe(closer);
    }
    assert!(!state.open_turn());
    assert_eq!(state.closers(1_000_000, last_time), []);
}

#[test]
fn bundled_logs() {
    let cases = vectors::bundled("repair/cases.jsonl");
    let prefixes = run(&cases);
    println!("repair: {} bundled vectors, {prefixes} prefixes", cases.len());
}

#[test]
fn shared_logs() {
    let Some(cases) = vectors::shared("repair/cases.jsonl") else { return };
    let prefixes = run(&cases);
    println!("repair: {} vectors, {prefixes} prefixes", cases.len());
}
