//! Whole transcripts of event lines: what the fast and the general way make of a line, and what the folds over a log say.

use super::grammar;
use super::input::Input;
use crate::event::{
    Checker, Event, JsonText, RepairState, Time, Violation, check, derive_message, is_json_value,
};

const MOST_LINES: u64 = 300;

/// Bytes of the grammar of events, one line after the other.
pub fn transcript(input: &[u8]) {
    let mut input = Input::new(input);
    let mut by_line = Checker::new();
    let mut by_event = Checker::new();
    let mut repair = RepairState::new();
    let (mut events, mut found): (Vec<Event>, Vec<Violation>) = (Vec::new(), Vec::new());
    for seq in 0..MOST_LINES {
        if input.is_empty() {
            break;
        }
        let line = grammar::event_line(&mut input, seq);
        is_json_value(&line).unwrap_or_else(|error| assert_limit(&error.to_string(), &line));
        let told = by_line.observe_line(&line).to_vec();
        let Some(event) = both_ways(&line) else {
            // The other folds have no place for what is no event.
            by_line = Checker::new();
            (by_event, repair) = (Checker::new(), RepairState::new());
            events.clear();
            found.clear();
            continue;
        };
        assert_eq!(by_event.observe(&event), told, "a line and its event break the same rules: {line}");
        found.extend(told);
        repair.observe(&event);
        message(&event);
        events.push(event);
    }
    assert_eq!(check(&events), found, "the fold at once and step by step");
    closed(repair, &events);
}

/// No text of the grammar is malformed; it may be beyond a limit.
fn assert_limit(error: &str, line: &str) {
    assert!(error.contains("overflow") || error.contains("deep"), "{error}: {line}");
}

/// What the fast way and the general way make of a line, which must be the same.
fn both_ways(line: &str) -> Option<Event> {
    match (Event::parse_line_lenient(line), Event::parse_any_line(line)) {
        (Ok(fast), Ok(general)) => {
            assert_eq!(fast.event, general.event, "{line}");
            assert_eq!(fast.faults, general.faults, "{line}");
            assert_eq!(fast.event.to_line(), line, "a line is kept");
            fast.faults.is_empty().then_some(fast.event)
        }
        (Err(fast), Err(general)) => {
            assert_eq!(fast.to_string(), general.to_string(), "{line}");
            None
        }
        (fast, general) => {
            assert_eq!(fast.is_ok(), general.is_ok(), "one way takes it and the other does not: {line}");
            None
        }
    }
}

/// A message that an event makes is JSON whatever the event holds.
fn message(event: &Event) {
    if let Some(message) = derive_message(event) {
        let line = message.to_line();
        assert!(JsonText::check(&line).is_ok(), "no JSON: {line}");
        assert!(is_json_value(message.content_json()).is_ok() && is_json_value(message.role_json()).is_ok());
    }
}

/// Behind its closers a log has nothing open, and its events read back.
fn closed(mut repair: RepairState, events: &[Event]) {
    let next = events.last().map_or(0, |event| event.seq().saturating_add(1));
    let time = events.last().map_or_else(|| Time::from_millis(0), |event| event.time().clone());
    let closers = repair.closers(next, &time);
    assert_eq!(closers.is_empty(), !repair.open_turn(), "an open turn is closed, and nothing else");
    for closer in &closers {
        assert_eq!(Event::parse_line(&closer.to_line()).ok().as_ref(), Some(closer), "a closer is an event");
        repair.observe(closer);
    }
    assert!(!repair.open_turn() && repair.closers(next, &time).is_empty(), "closed once is closed");
}
