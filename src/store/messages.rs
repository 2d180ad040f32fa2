//! The messages of a surface's nodes, each derived once (M).
//!
//! Always: the cache holds nodes of the surface only, so its memory is that of the messages a model would get; a
//! second derivation reads and parses only what came since. Never: a lock is held while an event is read.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use crate::error::Result;
use crate::event::{Event, Message, derive_message};

#[derive(Default)]
pub(super) struct MessageCache {
    /// Per node its message, or that it derives none.
    known: Mutex<HashMap<u64, Option<Message>>>,
}

impl MessageCache {
    /// The messages of `nodes`, in their order. `read` gives the events of ascending seqs.
    pub(super) fn derive(
        &self,
        nodes: &[u64],
        read: impl FnOnce(&[u64]) -> Result<Vec<Event>>,
    ) -> Result<Vec<Message>> {
        // Messages are taken out at once: another derivation may forget what this one still needs.
        let mut found: Vec<Option<Option<Message>>> = {
            let known = self.known.lock();
            nodes.iter().map(|seq| known.get(seq).cloned()).collect()
        };
        let mut missing: Vec<u64> =
            nodes.iter().zip(&found).filter(|(_, slot)| slot.is_none()).map(|(seq, _)| *seq).collect();
        if !missing.is_empty() {
            missing.sort_unstable();
            let events = read(&missing)?;
            let fresh: HashMap<u64, Option<Message>> =
                events.iter().map(|event| (event.seq(), derive_message(event))).collect();
            for (seq, slot) in nodes.iter().zip(&mut found) {
                if slot.is_none() {
                    *slot = fresh.get(seq).cloned();
                }
            }
            self.remember(fresh, nodes);
        }
        Ok(found.into_iter().flatten().flatten().collect())
    }

    fn remember(&self, fresh: HashMap<u64, Option<Message>>, nodes: &[u64]) {
        let mut known = self.known.lock();
        known.extend(fresh);
        // Shadowed nodes go once they are as many as the others, so that forgetting costs O(new) as well.
        if known.len() > nodes.len().saturating_mul(2) {
            let on_surface: HashSet<u64> = nodes.iter().copied().collect();
            known.retain(|seq, _| on_surface.contains(seq));
        }
    }
}
