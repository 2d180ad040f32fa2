//! The live sessions of a store, and which ids and sessions are spoken for at the moment.
//!
//! Always: an id is in the table at most once, as a claim or as a session; `list` is in insertion order (L1).
//! Never: the table's lock is held at a disk call, a wait or a listener (T3).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, ErrorKind, Result};

use super::session::Session;

#[derive(Default)]
pub(super) struct LiveTable {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    slots: HashMap<Arc<str>, Slot>,
    order: BTreeMap<u64, Session>,
    next: u64,
    pins: HashMap<u64, Pin>,
    closed: bool,
}

enum Slot {
    /// Somebody is about to enter, import or delete a session of this id.
    Claimed,
    /// The place in the order.
    Live(u64),
}

/// What is going on with a stored session that others must not disturb.
enum Pin {
    /// So many forks of it are being made.
    Forks(u64),
    Deleting,
}

/// The right to bring an id in or to take it out. Given back when dropped.
pub(super) struct Claim {
    table: Arc<LiveTable>,
    id: Arc<str>,
    spent: bool,
}

/// Keeps a stored session from being forked and deleted at the same time. Given back when dropped.
pub(super) struct Pinned {
    table: Arc<LiveTable>,
    dense: u64,
}

/// What stands in the table for an id.
pub(super) enum Found {
    Session(Session),
    Claim(Claim),
}

impl LiveTable {
    pub(super) fn get(&self, id: &str) -> Option<Session> {
        self.inner.lock().session(id)
    }

    pub(super) fn list(&self) -> Vec<Session> {
        self.inner.lock().order.values().cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.inner.lock().order.len()
    }

    /// Claims `id`.
    pub(super) fn claim(self: &Arc<Self>, id: &str) -> Result<Claim> {
        match self.find_or_claim(id)? {
            Found::Claim(claim) => Ok(claim),
            Found::Session(_) => Err(Error::new(
                ErrorKind::Exists,
                format!("session {id:?} is live in this store already; use that handle, or detach it first"),
            )),
        }
    }

    /// The live session of `id`, or a claim on it.
    pub(super) fn find_or_claim(self: &Arc<Self>, id: &str) -> Result<Found> {
        let mut inner = self.inner.lock();
        if inner.closed {
            return Err(Error::new(ErrorKind::Closed, "the store was closed; open it again"));
        }
        if let Some(session) = inner.session(id) {
            return Ok(Found::Session(session));
        }
        if inner.slots.contains_key(id) {
            return Err(Error::new(
                ErrorKind::Exists,
                format!(
                    "session {id:?} is just being created, resumed, imported or deleted by another caller"
                ),
            ));
        }
        let id: Arc<str> = Arc::from(id);
        inner.slots.insert(Arc::clone(&id), Slot::Claimed);
        Ok(Found::Claim(Claim { table: Arc::clone(self), id, spent: false }))
    }

    /// Takes the session with `key` out, if it is the one that stands for `id`.
    pub(super) fn remove(&self, id: &str, key: u64) {
        let mut inner = self.inner.lock();
        let Some(Slot::Live(place)) = inner.slots.get(id) else { return };
        let place = *place;
        if inner.order.get(&place).is_some_and(|session| session.key() == key) {
            inner.slots.remove(id);
            // Dropped after the lock is released: a session's drop ends its subscriptions.
            let gone = inner.order.remove(&place);
            drop(inner);
            drop(gone);
        }
    }

    /// Ends the table: nothing enters any more. The sessions that were live.
    pub(super) fn close(&self) -> Vec<Session> {
        let mut inner = self.inner.lock();
        inner.closed = true;
        inner.slots.retain(|_, slot| matches!(slot, Slot::Claimed));
        std::mem::take(&mut inner.order).into_values().collect()
    }

    /// Keeps the stored session `dense` from being deleted while it is forked.
    pub(super) fn pin_for_fork(self: &Arc<Self>, dense: u64) -> Result<Pinned> {
        let mut inner = self.inner.lock();
        match inner.pins.entry(dense).or_insert(Pin::Forks(0)) {
            Pin::Forks(count) => *count += 1,
            Pin::Deleting => return Err(Error::new(ErrorKind::NotFound, "the parent is just being deleted")),
        }
        Ok(Pinned { table: Arc::clone(self), dense })
    }

    /// Keeps the stored session `dense` from being forked while it is deleted.
    pub(super) fn pin_for_delete(self: &Arc<Self>, dense: u64) -> Result<Pinned> {
        let mut inner = self.inner.lock();
        if inner.pins.contains_key(&dense) {
            return Err(Error::new(
                ErrorKind::Conflict,
                "the session is just being forked or deleted; try again",
            ));
        }
        inner.pins.insert(dense, Pin::Deleting);
        Ok(Pinned { table: Arc::clone(self), dense })
    }
}

impl Inner {
    fn session(&self, id: &str) -> Option<Session> {
        match self.slots.get(id)? {
            Slot::Live(place) => self.order.get(place).cloned(),
            Slot::Claimed => None,
        }
    }
}

impl Claim {
    pub(super) fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Turns the claim into a live session.
    pub(super) fn fill(mut self, session: Session) -> Result<()> {
        let mut inner = self.table.inner.lock();
        if inner.closed {
            return Err(Error::new(ErrorKind::Closed, "the store was closed; open it again"));
        }
        let place = inner.next;
        inner.next += 1;
        inner.slots.insert(Arc::clone(&self.id), Slot::Live(place));
        inner.order.insert(place, session);
        drop(inner);
        self.spent = true;
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.spent {
            self.table.inner.lock().slots.remove(&self.id);
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let mut inner = self.table.inner.lock();
        let gone = match inner.pins.get_mut(&self.dense) {
            Some(Pin::Forks(count)) if *count > 1 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        if gone {
            inner.pins.remove(&self.dense);
        }
    }
}
