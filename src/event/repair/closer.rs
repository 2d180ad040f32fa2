//! The closing events themselves (R2), in the shape of the log they close (V5).
//!
//! A plan has no clock and no randomness: the time is the last event's, and the id of a carried message follows
//! from its seq, so a second plan over the same events is the same plan.

use super::pending::Call;
use crate::event::literal::literal_of;
use crate::event::{Event, JsonText, NewEvent, SurfaceOp, Time};

/// What a closer says of a call that no tool/call was logged for.
const NOT_STARTED: &str =
    "This tool call was never started: the session was interrupted first. It is safe to retry.";

/// What a closer says of a call that had begun.
const OUTCOME_UNKNOWN: &str = "This tool call was started, but the session was interrupted before a result was \
                               recorded. Its outcome is unknown: check what it did before you retry it.";

const ERROR: &str = "\"error\":{\"name\":\"InterruptedError\",\"code\":\"interrupted\"}";

/// Closers being made, one after the other.
pub(super) struct Closers<'a> {
    next_seq: u64,
    time: &'a Time,
    turn: Option<&'a str>,
    events: Vec<Event>,
}

impl<'a> Closers<'a> {
    pub(super) fn new(next_seq: u64, time: &'a Time, turn: Option<&'a str>) -> Self {
        Self { next_seq, time, turn, events: Vec::new() }
    }

    pub(super) fn tool_result(&mut self, call: &Call, carried: bool) {
        let text = if call.started.is_some() { OUTCOME_UNKNOWN } else { NOT_STARTED };
        let content = format!("[{{\"type\":\"text\",\"text\":{}}}]", literal_of(text));
        let id = call.id.as_str();
        let mut data = self.named(call.step.as_deref());
        if carried {
            data.push_str(&format!(
                "\"message\":{{\"id\":\"interrupted-{seq}\",\"role\":\"user\",\"content\":[{{\"type\":\"tool-result\",\
                 \"toolCallId\":{id},\"content\":{content},\"isError\":true}}],\
                 \"source\":{{\"kind\":\"tool\",\"callId\":{id}}}}},",
                seq = self.next_seq
            ));
        } else {
            data.push_str(&format!("\"callId\":{id},\"content\":{content},\"isError\":true,"));
        }
        data.push_str(ERROR);
        let event = NewEvent::new("tool/result", Self::data(data)).with_surface_op(SurfaceOp::Append);
        self.push(match call.started {
            Some(seq) => event.with_sources(vec![seq]),
            None => event,
        });
    }

    pub(super) fn step_end(&mut self, step: Option<&str>) {
        let mut data = self.named(step);
        data.truncate(data.trim_end_matches(',').len());
        self.push(NewEvent::new("step/end", Self::data(data)));
    }

    pub(super) fn turn_end(&mut self) {
        let mut data = self.opened();
        data.push_str("\"reason\":{\"kind\":\"interrupted\"}");
        self.push(NewEvent::new("turn/end", Self::data(data)));
    }

    pub(super) fn into_events(self) -> Vec<Event> {
        self.events
    }

    /// `{"turn":…,` as far as the turn is known.
    fn opened(&self) -> String {
        self.turn.map_or_else(|| String::from("{"), |turn| format!("{{\"turn\":{turn},"))
    }

    /// The same with the step.
    fn named(&self, step: Option<&str>) -> String {
        let mut data = self.opened();
        if let Some(step) = step {
            data.push_str(&format!("\"step\":{step},"));
        }
        data
    }

    fn data(mut text: String) -> JsonText {
        text.push('}');
        JsonText::from_validated(text.into())
    }

    fn push(&mut self, event: NewEvent) {
        self.events.push(event.into_event(self.next_seq, self.time.clone()));
        self.next_seq = self.next_seq.saturating_add(1);
    }
}
