//! Turns, steps and the calls of the open step (I5-I10).
//!
//! After a violation the event is believed where that stops followers: a turn or step that has the wrong number
//! goes on under that number.

use std::collections::HashMap;

use super::Rule;
use crate::event::body::Body;
use crate::event::literal::literal;
use crate::event::{Class, JsonRef};

/// What is open, and which numbers come next.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns {
    turn: Option<u64>,
    step: Option<u64>,
    last_turn: u64,
    last_step: u64,
    /// Unanswered tool calls of the open step by id.
    calls: HashMap<String, u64>,
}

impl Turns {
    pub(super) fn take(&mut self, class: Class, body: &Body<'_>, mut report: impl FnMut(Rule, String)) {
        match class {
            Class::TurnStart => self.turn_start(body, &mut report),
            Class::TurnEnd => self.turn_end(body, &mut report),
            Class::StepStart => self.step_start(body, &mut report),
            Class::StepEnd | Class::Chunk | Class::AssistantMessage | Class::ToolCall | Class::ToolResult => {
                self.in_step(class, body, &mut report);
            }
            _ if self.turn.is_none() => report(Rule::I10, "the event lies outside any turn".into()),
            _ => {}
        }
    }

    fn turn_start(&mut self, body: &Body<'_>, report: &mut impl FnMut(Rule, String)) {
        let (named, expected) = (number(body.turn), self.last_turn.saturating_add(1));
        if let Some(open) = self.turn {
            report(Rule::I5, format!("turn {} starts while turn {open} is open", shown(named)));
        }
        if named != Some(expected) {
            report(Rule::I5, format!("the turn's number is {}, expected {expected}", shown(named)));
        }
        *self = Self { last_turn: named.unwrap_or(expected), ..Self::default() };
        self.turn = Some(self.last_turn);
    }

    fn turn_end(&mut self, body: &Body<'_>, report: &mut impl FnMut(Rule, String)) {
        let named = number(body.turn);
        if named.is_none() || named != self.turn {
            report(Rule::I6, format!("turn {} ends, open is {}", shown(named), shown(self.turn)));
        }
        if let Some(step) = self.step {
            report(Rule::I6, format!("the turn ends while step {step} is open"));
        }
        *self = Self { last_turn: self.last_turn, ..Self::default() };
    }

    fn step_start(&mut self, body: &Body<'_>, report: &mut impl FnMut(Rule, String)) {
        let (turn, named) = (number(body.turn), number(body.step));
        let expected = self.last_step.saturating_add(1);
        if turn.is_none() || turn != self.turn {
            let open = shown(self.turn);
            report(Rule::I7, format!("a step starts in turn {}, open is {open}", shown(turn)));
        }
        if let Some(open) = self.step {
            report(Rule::I7, format!("step {} starts while step {open} is open", shown(named)));
        }
        // Outside any turn there is no count to compare with.
        if self.turn.is_some() {
            if named != Some(expected) {
                report(Rule::I7, format!("the step's number is {}, expected {expected}", shown(named)));
            }
            self.last_step = named.unwrap_or(expected);
            self.step = Some(self.last_step);
            self.calls.clear();
        }
    }

    /// A chunk that names these.
    pub(super) fn chunk(&self, turn: u64, step: u64, mut report: impl FnMut(Rule, String)) {
        self.is_named(Some(turn), Some(step), &mut report);
    }

    /// I8: whether the event names the open turn and step.
    fn is_named(&self, turn: Option<u64>, step: Option<u64>, report: &mut impl FnMut(Rule, String)) -> bool {
        let is_named = turn.is_some() && step.is_some() && (turn, step) == (self.turn, self.step);
        if !is_named {
            let (open_turn, open_step) = (shown(self.turn), shown(self.step));
            let named = format!("turn {} and step {}", shown(turn), shown(step));
            report(Rule::I8, format!("the event names {named}, open are {open_turn} and {open_step}"));
        }
        is_named
    }

    fn in_step(&mut self, class: Class, body: &Body<'_>, report: &mut impl FnMut(Rule, String)) {
        let is_named = self.is_named(number(body.turn), number(body.step), report);
        match class {
            Class::StepEnd => {
                self.step = None;
                self.calls.clear();
            }
            Class::ToolCall if self.step.is_some() => {
                if let Some(id) = body.call_id() {
                    let unanswered = self.calls.entry(literal(id)).or_default();
                    *unanswered = unanswered.saturating_add(1);
                }
            }
            // A result that names another step was reported; which calls it could answer is not known.
            Class::ToolResult if is_named => self.tool_result(body, report),
            _ => {}
        }
    }

    fn tool_result(&mut self, body: &Body<'_>, report: &mut impl FnMut(Rule, String)) {
        let id = body.call_id().map(literal);
        if let Some(id) = &id
            && let Some(unanswered) = self.calls.get_mut(id)
        {
            *unanswered = unanswered.saturating_sub(1);
            if *unanswered == 0 {
                self.calls.remove(id);
            }
            return;
        }
        let is_interrupted = body.error_code().is_some_and(|code| code == *"interrupted");
        if body.is_error() != Some(true) || !is_interrupted {
            let id = id.as_deref().unwrap_or("of no id");
            report(Rule::I9, format!("the result answers no unanswered call {id} of this step"));
        }
    }
}

fn number(value: Option<JsonRef<'_>>) -> Option<u64> {
    value?.as_u64()
}

fn shown(number: Option<u64>) -> String {
    number.map_or_else(|| "none".into(), |number| number.to_string())
}
