//! The contract checker: which rule each log breaks first, and where (I1-I10).

use sessionlog::event::{Checker, Class, Envelope, JsonText, Rule, Violation};

use crate::vectors;

/// Checks every log line by line. Only the first violation of a vector is firm.
fn run(cases: &[JsonText]) -> usize {
    let mut clean = 0;
    for case in cases {
        let case = case.value();
        let id = format!("{} ({})", vectors::text(case, "id"), vectors::text(case, "name"));
        let firm = case.get("violationsPositional").or(case.get("violations")).unwrap();
        let expected = firm.elements().next().map(|violation| {
            (violation.get("index").unwrap().as_u64().unwrap(), vectors::text(violation, "rule"))
        });
        let found = first_in_common(&vectors::raw_elements(case, "events"));
        let found = found.map(|violation| {
            (violation.place, violation.rule.to_string().trim_start_matches('I').to_owned())
        });
        assert_eq!(found, expected, "{id}");
        clean += usize::from(expected.is_none());
    }
    clean
}

/// The first violation that the vectors' rules have too: their rule 1 lets seqs jump ahead, and a missing marker is
/// not their checker's matter.
fn first_in_common(lines: &[&str]) -> Option<Violation> {
    let mut checker = Checker::new();
    let mut next = 0;
    for line in lines {
        let envelope = Envelope::parse(line).unwrap();
        let name = envelope.event_type().unwrap().as_str().unwrap().to_utf8_lossy().into_owned();
        let is_unmarked = Class::of(&name).is_surface() && envelope.surface_op().is_none();
        let found = checker.observe_line(line).iter().find(|violation| match violation.rule {
            Rule::I1 => violation.seq < next,
            Rule::I2 => !is_unmarked,
            _ => true,
        });
        if let Some(violation) = found {
            return Some(violation.clone());
        }
        next = next.max(envelope.seq().unwrap().as_u64().unwrap() + 1);
    }
    None
}

#[test]
fn bundled_cases() {
    let cases = vectors::bundled("invariants/cases.jsonl");
    run(&cases);
    println!("invariants: {} bundled vectors", cases.len());
}

#[test]
fn shared_cases() {
    let Some(cases) = vectors::shared("invariants/cases.jsonl") else { return };
    let clean = run(&cases);
    println!("invariants: {} vectors, {clean} of them clean", cases.len());
}

/// Rule 11 is about the life of an agent process, whose statuses are no events and are in no log. The semantics
/// have I1-I10 only, so there is nothing here that could take these sequences; that they hold nothing else is what
/// this test makes sure of.
#[test]
fn agent_statuses_are_no_events() {
    let Some(cases) = vectors::shared("invariants/agent-status.jsonl") else { return };
    for case in &cases {
        let case = case.value();
        assert!(case.get("events").is_none());
        for violation in case.get("violations").unwrap().elements() {
            assert_eq!(vectors::text(violation, "rule"), "11");
        }
        for status in case.get("statuses").unwrap().elements() {
            assert!(status.as_str().is_some());
        }
    }
    println!("agent-status: {} vectors, not applicable: statuses are no events of a log", cases.len());
}
