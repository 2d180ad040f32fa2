//! What is read of a store: events, and complaints.

use std::fmt::Write;

/// How many sessions the events are spread over.
pub const SESSIONS: u64 = 8;

/// The event number `number` of all: which session it is of, its place there, and its line.
pub fn event(number: u64) -> (u64, u64, String) {
    let (session, seq) = (number % SESSIONS, number / SESSIONS);
    // No two pieces are alike, so that a piece found in a file is that event's; and nothing compresses well.
    let mut text = String::new();
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for _ in 0..18 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let _ = write!(text, "{state:016x} ");
    }
    let data = format!(r#"{{"mark":"event-{number:06}-","text":"{text}"}}"#);
    let time = 1_788_255_000_000 + number;
    (session, seq, format!(r#"{{"type":"bench/note","seq":{seq},"time":{time},"data":{data}}}"#))
}

/// What of an event is found in every store's files as it is.
pub fn mark(number: u64) -> String {
    format!("event-{number:06}-")
}

/// What a store gave back.
#[derive(Debug, Default)]
pub struct Reading {
    /// Session, place and line.
    pub events: Vec<(u64, u64, String)>,
    /// What it reported: a failed open, a failed read, a finding.
    pub complaints: Vec<String>,
}

impl Reading {
    /// It did not open.
    pub fn refused(error: impl std::fmt::Display) -> Self {
        Self { events: Vec::new(), complaints: vec![error.to_string()] }
    }
}
