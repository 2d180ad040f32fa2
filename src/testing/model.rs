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
    /// So many events the store has taken; those behind are being handed over.
    pub accepted: usize,
    /// So many events are acknowledged.
    pub acknowledged: usize,
    /// The session itself is acknowledged, even without an event.
    pub created: bool,
    /// Whether it was deleted.
    pub deletion: Deletion,
    /// The call that created it came back: a flush that begins now covers it.
    pub entered: bool,
    /// The call that deleted it came back: a flush that begins now covers that.
    pub removed: bool,
}

/// What a flush that begins at a moment will have made durable when it comes back.
#[derive(Debug, Clone, Default)]
pub struct Mark(Vec<(String, usize, bool)>);

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
        let known = Known {
            lines: inherited,
            ends,
            accepted: 0,
            acknowledged: 0,
            created: false,
            deletion: Deletion::No,
            entered: false,
            removed: false,
        };
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

    /// The store has taken all that was attempted of a session.
    pub fn accept(&mut self, id: &str) {
        if let Some(known) = self.sessions.get_mut(id) {
            known.accepted = known.lines.len();
            known.entered = true;
        }
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

    /// What a flush of one session, or of all, covers if it begins now: sessions that are still being created, and
    /// deletions under way, it does not.
    #[must_use]
    pub fn mark(&self, only: Option<&str>) -> Mark {
        let wanted = |id: &str, known: &Known| known.entered && only.is_none_or(|only| only == id);
        let all = self.sessions.iter().filter(|(id, known)| wanted(id, known));
        // A flush of one session says nothing of its deletion.
        Mark(all.map(|(id, known)| (id.clone(), known.accepted, known.removed && only.is_none())).collect())
    }

    /// The flush that began at `mark` came back well.
    pub fn acknowledge_mark(&mut self, mark: &Mark) {
        for (id, len, removed) in &mark.0 {
            let Some(known) = self.sessions.get_mut(id) else { continue };
            known.acknowledged = known.acknowledged.max(*len);
            known.created = true;
            if *removed && known.deletion == Deletion::Attempted {
                known.deletion = Deletion::Acknowledged;
            }
        }
    }

    /// What must be there by `self`, and may be there by `later`: for a look that took its time.
    #[must_use]
    pub fn until(&self, later: &Self) -> Self {
        let mut between = later.clone();
        for (id, known) in &mut between.sessions {
            let before = self.sessions.get(id);
            known.acknowledged = before.map_or(0, |before| before.acknowledged);
            known.created = before.is_some_and(|before| before.created);
            if known.deletion == Deletion::Acknowledged
                && before.is_none_or(|before| before.deletion != Deletion::Acknowledged)
            {
                known.deletion = Deletion::Attempted;
            }
        }
        between
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
