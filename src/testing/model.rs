//! What a store may and must hold: kept beside it by whoever drives it, with plain lists and no engine.
//!
//! Always: an event is attempted before it is appended and acknowledged after it was flushed, so whatever moment a
//! crash picks, the store must hold at least what is acknowledged and at most what was attempted.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What became of a session's deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deletion {
    /// Nobody asked.
    No,
    /// Asked for; it may or may not have come through.
    Attempted,
    /// Durable: the session must not be there any more.
    Acknowledged,
}

/// A session as its driver knows it.
#[derive(Debug, Clone)]
pub struct Known {
    /// Event lines by seq, inherited ones included.
    pub lines: Vec<Arc<str>>,
    /// Lengths at which the session may end: a batch is whole or not there (G2).
    pub ends: Vec<usize>,
    /// So many events are acknowledged.
    pub acknowledged: usize,
    /// The session itself is acknowledged, even without an event.
    pub created: bool,
    /// Whether it was deleted.
    pub deletion: Deletion,
}

/// All sessions by id.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// See [`Known`].
    pub sessions: BTreeMap<String, Known>,
}

impl Model {
    /// A session is about to be created; a fork begins with what it inherits.
    pub fn attempt_session(&mut self, id: &str, inherited: Vec<Arc<str>>) {
        let ends = vec![inherited.len()];
        let known = Known { lines: inherited, ends, acknowledged: 0, created: false, deletion: Deletion::No };
        self.sessions.insert(id.to_owned(), known);
    }

    /// Events are about to be appended as one batch.
    pub fn attempt(&mut self, id: &str, lines: impl IntoIterator<Item = String>) {
        let Some(known) = self.sessions.get_mut(id) else { return };
        known.lines.extend(lines.into_iter().map(Arc::from));
        known.ends.push(known.lines.len());
    }

    /// The last batch was refused: nothing of it may ever be seen.
    pub fn retract(&mut self, id: &str) {
        let Some(known) = self.sessions.get_mut(id) else { return };
        known.ends.pop();
        known.lines.truncate(known.ends.last().copied().unwrap_or(0));
    }

    /// Everything of one session is durable.
    pub fn acknowledge(&mut self, id: &str) {
        if let Some(known) = self.sessions.get_mut(id) {
            known.acknowledged = known.lines.len();
            known.created = true;
            if known.deletion == Deletion::Attempted {
                known.deletion = Deletion::Acknowledged;
            }
        }
    }

    /// Everything is durable.
    pub fn acknowledge_all(&mut self) {
        let ids: Vec<String> = self.sessions.keys().cloned().collect();
        ids.iter().for_each(|id| self.acknowledge(id));
    }

    /// A delete is about to be asked for.
    pub fn attempt_delete(&mut self, id: &str) {
        if let Some(known) = self.sessions.get_mut(id) {
            known.deletion = Deletion::Attempted;
        }
    }

    /// Ids of sessions that nobody asked to delete.
    #[must_use]
    pub fn undeleted(&self) -> Vec<String> {
        let kept = self.sessions.iter().filter(|(_, known)| known.deletion == Deletion::No);
        kept.map(|(id, _)| id.clone()).collect()
    }

    /// How many events are acknowledged, over all sessions that must be there.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        let kept = self.sessions.values().filter(|known| known.deletion == Deletion::No);
        kept.map(|known| known.acknowledged).sum()
    }
}
