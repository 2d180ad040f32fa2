//! A log as the vectors see it: events, the surface they make, and the messages of its nodes.

use sessionlog::Result;
use sessionlog::event::{Event, JsonRef, NewEvent, Surface, check_append, derive_message};

/// A log that takes events one by one, each checked as an append.
#[derive(Default)]
pub(crate) struct Folded {
    pub(crate) events: Vec<Event>,
    pub(crate) surface: Surface,
}

impl Folded {
    pub(crate) fn of(events: Vec<Event>) -> Self {
        let mut folded = Self::default();
        for event in events {
            folded.append(event).unwrap();
        }
        folded
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.events.len() as u64
    }

    /// Checks the event, then folds it in.
    pub(crate) fn append(&mut self, event: Event) -> Result<()> {
        let seq = self.next_seq();
        assert_eq!(event.seq(), seq);
        check_append(seq, &NewEvent::from_event(event.clone()), &self.surface)?;
        if let Some(op) = event.surface_op() {
            self.surface.apply(seq, &op).unwrap();
        }
        self.events.push(event);
        Ok(())
    }

    pub(crate) fn nodes(&self) -> Vec<[Option<u64>; 3]> {
        self.surface.nodes().map(|node| [Some(node.seq), node.prev, node.next]).collect()
    }

    /// The messages as lines.
    pub(crate) fn messages(&self) -> Vec<String> {
        let events = self.surface.nodes().map(|node| &self.events[usize::try_from(node.seq).unwrap()]);
        events.filter_map(derive_message).map(|message| message.to_line()).collect()
    }
}

/// A vector's `[[seq, prev, next], …]`.
pub(crate) fn nodes(value: JsonRef<'_>) -> Vec<[Option<u64>; 3]> {
    let triple = |node: JsonRef<'_>| {
        let numbers: Vec<Option<u64>> = node.elements().map(|number| number.as_u64()).collect();
        <[Option<u64>; 3]>::try_from(numbers).unwrap()
    };
    value.elements().map(triple).collect()
}

/// A vector's messages as the texts they have there.
pub(crate) fn messages(value: JsonRef<'_>) -> Vec<String> {
    value.elements().map(|message| message.raw().to_owned()).collect()
}
