//! Sessions that go on under another number: what a large addition to a stored session is kept as until it is whole.
//!
//! Always: a fork of a session of its own id *continues* it. Its parent is the first one of them, so that each is found
//! from there whatever becomes of those between, and it takes all events of the one before it, which gets no more from
//! then on. Users see all of them as one session: under the id stands the newest, and nothing lists the others. Never:
//! one that is continued is deleted before the session is: what damage takes of a newer one leaves the older to be read.

use std::collections::HashSet;

use crate::error::Result;

use super::Log;
use super::orphans::unknown;
use super::places::Span;
use super::shared::Shared;
use super::types::{Fork, Listed, SessionEntry};

impl Shared {
    /// The first of those that `entry` continues; none if it continues none.
    fn first(&self, entry: &SessionEntry) -> Result<Option<SessionEntry>> {
        // A directory run could say otherwise, but numbers descend.
        let Some(fork) = entry.fork.filter(|fork| fork.parent < entry.dense) else { return Ok(None) };
        Ok(self.session(fork.parent)?.filter(|first| first.id == entry.id))
    }

    /// Of the session that begins with `first`, the numbers below `dense`, newest first.
    fn below(&self, first: SessionEntry, dense: u64) -> Result<Vec<SessionEntry>> {
        let mut all = Vec::new();
        for child in self.children(first.dense)?.into_iter().rev().filter(|child| *child < dense) {
            all.extend(self.session(child)?.filter(|child| child.id == first.id));
        }
        all.push(first);
        Ok(all)
    }

    /// Of these visible sessions, ascending, those that no other one of them continues, each in the place of the first
    /// that it continues.
    pub(super) fn newest_of_each(&self, visible: &[Listed]) -> Result<Vec<u64>> {
        let mut continued = HashSet::new();
        let mut newest = Vec::with_capacity(visible.len());
        for listed in visible.iter().rev() {
            let entry = if listed.is_fork { self.session(listed.dense)? } else { None };
            match entry.map(|entry| self.first(&entry)).transpose()?.flatten() {
                Some(first) if continued.insert(first.dense) => newest.push((first.dense, listed.dense)),
                Some(_) => {}
                None if continued.contains(&listed.dense) => {}
                None => newest.push((listed.dense, listed.dense)),
            }
        }
        newest.sort_unstable();
        Ok(newest.into_iter().map(|(_, dense)| dense).collect())
    }

    /// The session that holds what stands before the events of `entry`, up to `to`. Where damage took its beginning, so
    /// that nothing tells what it continues, only a part is its own and the rest stands in the one before it (G3).
    pub(super) fn before(
        &self,
        entry: &SessionEntry,
        fork: Fork,
        to: u64,
    ) -> Result<(Option<Span>, SessionEntry)> {
        let found = self.session(fork.ancestor)?;
        let first = match &found {
            Some(found) if found.id == entry.id => None,
            _ => self.first(entry)?,
        };
        let above_first = first.as_ref().and_then(SessionEntry::inherits).map(|fork| fork.ancestor);
        // One of which damage left nothing is a hole, and what the others hold stays readable.
        let gone = || SessionEntry { next_seq: to, ..unknown(fork.ancestor) };
        let holder = found.unwrap_or_else(gone);
        match first.filter(|_| above_first != Some(fork.ancestor)) {
            None => Ok((None, holder)),
            Some(first) => {
                let older = self.below(first, fork.ancestor)?.swap_remove(0);
                Ok((Some(Span { entry: holder, from: older.next_seq.min(to), to }), older))
            }
        }
    }
}

impl Log {
    /// The number that whatever continues `entry` names as its parent.
    pub(crate) fn first_number(&self, entry: &SessionEntry) -> Result<u64> {
        Ok(self.shared().first(entry)?.map_or(entry.dense, |first| first.dense))
    }

    /// The sessions that `entry` continues, newest first.
    pub(crate) fn predecessors(&self, entry: &SessionEntry) -> Result<Vec<SessionEntry>> {
        match self.shared().first(entry)? {
            Some(first) => self.shared().below(first, entry.dense),
            None => Ok(Vec::new()),
        }
    }

    /// The session that goes on where `entry` ended, else `entry` as it is now; none when that was deleted.
    pub(crate) fn newest(&self, entry: &SessionEntry) -> Result<Option<SessionEntry>> {
        let Some(now) = self.session(entry.dense)?.filter(|now| !now.deleted) else { return Ok(None) };
        let newest = self.lookup(&now.id)?.filter(|newest| newest.dense > now.dense);
        let first = self.first_number(&now)?;
        match newest {
            Some(newest) if self.first_number(&newest)? == first => Ok(Some(newest)),
            _ => Ok(Some(now)),
        }
    }

    /// The visible sessions that were forked off `entry`, or off what it continues, oldest first.
    pub(crate) fn forks(&self, entry: &SessionEntry) -> Result<Vec<SessionEntry>> {
        let mut children = self.shared().children(entry.dense)?;
        for before in self.predecessors(entry)? {
            children.extend(self.shared().children(before.dense)?);
        }
        children.sort_unstable();
        let mut forks: Vec<SessionEntry> = Vec::with_capacity(children.len());
        for child in children {
            let Some(child) = self.session(child)?.filter(|child| child.id != entry.id) else { continue };
            forks.extend(self.newest(&child)?);
        }
        Ok(forks)
    }

    /// Stored record bytes of the session's own events, those of what it continues included.
    pub(crate) fn own_bytes(&self, entry: &SessionEntry) -> Result<u64> {
        let first = self.first_number(entry)?;
        let mut bytes = entry.bytes;
        let mut at = entry.dense;
        let mut fork = entry.inherits();
        // Numbers descend to the first one; what that inherits is not its own.
        while let Some(above) = fork.filter(|fork| (first..at).contains(&fork.ancestor)) {
            let Some(before) = self.session(above.ancestor)? else { break };
            bytes = bytes.saturating_add(before.bytes);
            (at, fork) = (before.dense, before.inherits());
        }
        Ok(bytes)
    }
}
