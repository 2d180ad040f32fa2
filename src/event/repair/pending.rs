//! The tool calls that an assistant message asked for and no result has answered, in the order they were asked.
//!
//! A call that is asked for again keeps its place; one that was answered and is asked for again goes to the end.

use std::collections::{BTreeMap, HashMap};

use super::Spelled;
use crate::event::JsonStr;
use crate::event::literal::literal;

/// Pending calls by id. Ids are compared by content: the key is the id's literal.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending {
    places: HashMap<String, u64>,
    calls: BTreeMap<u64, Call>,
    next_place: u64,
}

/// One pending call.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// The id as a JSON string literal.
    pub(super) id: String,
    /// The step of the assistant message that last made it pending.
    pub(super) step: Spelled,
    /// The tool/call that was logged since.
    pub(super) started: Option<u64>,
}

impl Pending {
    pub(super) fn add(&mut self, id: JsonStr<'_>, step: &Spelled) {
        let id = literal(id);
        let place = *self.places.entry(id.clone()).or_insert(self.next_place);
        if place == self.next_place {
            self.next_place += 1;
        }
        self.calls.insert(place, Call { id, step: step.clone(), started: None });
    }

    pub(super) fn note(&mut self, id: JsonStr<'_>, seq: u64) {
        let call = self.places.get(&literal(id)).and_then(|place| self.calls.get_mut(place));
        if let Some(call) = call {
            call.started = Some(seq);
        }
    }

    pub(super) fn remove(&mut self, id: JsonStr<'_>) {
        if let Some(place) = self.places.remove(&literal(id)) {
            self.calls.remove(&place);
        }
    }

    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.calls.clear();
    }

    pub(super) fn in_order(&self) -> impl Iterator<Item = &Call> {
        self.calls.values()
    }
}
