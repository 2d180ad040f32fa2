//! Repair: the events that close what a crash left open (R1-R4).
//!
//! A pure fold and a plan. It never removes or rewrites an event, and appending its closers leaves nothing to
//! close. Turn and step are given back as they are spelled; they are never compared.

mod closer;
mod pending;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use pending::Pending;

use super::body::Body;
use super::{Class, Event, JsonRef, Time};

/// A turn or step that is open, as its event spells the number. Nothing where the event has none, or one of more
/// than [`MAX_SPELLING`] bytes: closers repeat it, and what they take must stay in proportion to the log.
type Spelled = Option<Arc<str>>;

const MAX_SPELLING: usize = 256;

/// What is open after some events.
///
/// ```
/// use sessionlog::event::{Event, RepairState};
///
/// # fn main() -> sessionlog::Result<()> {
/// let start = Event::parse_line(r#"{"type":"turn/start","seq":0,"time":5,"data":{"turn":1}}"#)?;
/// let mut state = RepairState::new();
/// state.observe(&start);
///
/// let closers = state.closers(1, start.time());
/// assert_eq!(
///     closers[0].to_line(),
///     r#"{"type":"turn/end","seq":1,"time":5,"data":{"turn":1,"reason":{"kind":"interrupted"}}}"#
/// );
/// # Ok(())
/// # }
/// ```
///
/// Memory: one entry for each pending tool call of the open turn.
#[derive(Debug, Clone, Default)]
pub struct RepairState {
    turn: Option<Spelled>,
    step: Option<Spelled>,
    pending: Pending,
    /// Whether the log's last assistant/message carries its message in `data.message` (V5).
    carried: bool,
}

impl RepairState {
    /// Nothing is open.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether events of this class change the state. A reader may leave out all others.
    #[must_use]
    pub fn counts(class: Class) -> bool {
        matches!(
            class,
            Class::TurnStart
                | Class::TurnEnd
                | Class::StepStart
                | Class::StepEnd
                | Class::AssistantMessage
                | Class::ToolCall
                | Class::ToolResult
        )
    }

    /// Takes the next event in (R1).
    pub fn observe(&mut self, event: &Event) {
        let class = event.class();
        if !Self::counts(class) {
            return;
        }
        let body = Body::new(event.data().value());
        match class {
            Class::TurnStart => {
                self.clear();
                self.turn = Some(spelled(body.turn));
            }
            Class::TurnEnd => self.clear(),
            Class::StepStart => self.step = Some(spelled(body.step)),
            Class::StepEnd => {
                self.step = None;
                self.pending.clear();
            }
            Class::AssistantMessage => {
                self.carried = body.message().is_some();
                let step = spelled(body.step);
                body.calls().for_each(|id| self.pending.add(id, &step));
            }
            Class::ToolCall => {
                if let Some(id) = body.call_id() {
                    self.pending.note(id, event.seq());
                }
            }
            Class::ToolResult => {
                if let Some(id) = body.call_id() {
                    self.pending.remove(id);
                }
            }
            _ => {}
        }
    }

    /// Whether a turn is open: whether there is anything to close.
    #[must_use]
    pub fn open_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// The closers, with seqs from `next_seq` on and the time of the log's last event (R2). None without an open
    /// turn.
    #[must_use]
    pub fn closers(&self, next_seq: u64, last_time: &Time) -> Vec<Event> {
        let Some(turn) = &self.turn else { return Vec::new() };
        let mut closers = closer::Closers::new(next_seq, last_time, turn.as_deref());
        for call in self.pending.in_order() {
            closers.tool_result(call, self.carried);
        }
        if let Some(step) = &self.step {
            closers.step_end(step.as_deref());
        }
        closers.turn_end();
        closers.into_events()
    }

    fn clear(&mut self) {
        self.turn = None;
        self.step = None;
        self.pending.clear();
    }
}

fn spelled(number: Option<JsonRef<'_>>) -> Spelled {
    number.map(|value| value.raw()).filter(|raw| raw.len() <= MAX_SPELLING).map(Arc::from)
}
