//! The listeners of a store or of one session (A8).
//!
//! Always: listeners are called without any lock held, in the order in which they were added; what one of them
//! does (an error, a panic) stays inside the call. Never: a listener that was removed is not called by a later
//! event.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;

use super::inside;
use super::session::Session;

/// Names a listener, to remove it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListenerId(u64);

/// How a session came into the store's live set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// Created, with or without a seed.
    Created,
    /// Forked from another session.
    Forked,
    /// Opened again for writing.
    Resumed,
}

/// What a flush listener is told.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Flushing {
    /// The session that is flushed; none when the whole store is.
    pub session: Option<Session>,
    /// The session's next sequence number when the flush began; 0 for a store.
    pub seq: u64,
}

type OnCreated = dyn Fn(&Session, Origin) -> Result<()> + Send + Sync;
type OnEvent = dyn Fn(&Session, &Event) -> Result<()> + Send + Sync;
type OnFlush = dyn Fn(&Flushing) -> Result<()> + Send + Sync;

/// An ordered list of callbacks of one kind.
struct Callbacks<F: ?Sized> {
    list: Mutex<Vec<(ListenerId, Arc<F>)>>,
    /// Mirrors the list's length: an append asks it without taking the lock.
    count: AtomicUsize,
}

impl<F: ?Sized> Default for Callbacks<F> {
    fn default() -> Self {
        Self { list: Mutex::new(Vec::new()), count: AtomicUsize::new(0) }
    }
}

impl<F: ?Sized> Callbacks<F> {
    fn add(&self, id: ListenerId, callback: Arc<F>) {
        let mut list = self.list.lock();
        list.push((id, callback));
        self.count.store(list.len(), Ordering::Release);
    }

    fn remove(&self, id: ListenerId) -> bool {
        let mut list = self.list.lock();
        let before = list.len();
        list.retain(|(own, _)| *own != id);
        self.count.store(list.len(), Ordering::Release);
        list.len() < before
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    fn snapshot(&self) -> Vec<Arc<F>> {
        if self.is_empty() {
            return Vec::new();
        }
        self.list.lock().iter().map(|(_, callback)| Arc::clone(callback)).collect()
    }
}

/// All listeners of one owner.
#[derive(Default)]
pub(super) struct Listeners {
    next: AtomicU64,
    created: Callbacks<OnCreated>,
    event: Callbacks<OnEvent>,
    flush: Callbacks<OnFlush>,
}

/// A flush listener with what it is to be told, ready to run on any thread.
pub(super) struct FlushCall {
    callback: Arc<OnFlush>,
    told: Flushing,
}

impl Listeners {
    pub(super) fn on_created(
        &self,
        callback: impl Fn(&Session, Origin) -> Result<()> + Send + Sync + 'static,
    ) -> ListenerId {
        let id = self.fresh();
        self.created.add(id, Arc::new(callback));
        id
    }

    pub(super) fn on_event(
        &self,
        callback: impl Fn(&Session, &Event) -> Result<()> + Send + Sync + 'static,
    ) -> ListenerId {
        let id = self.fresh();
        self.event.add(id, Arc::new(callback));
        id
    }

    pub(super) fn on_flush(
        &self,
        callback: impl Fn(&Flushing) -> Result<()> + Send + Sync + 'static,
    ) -> ListenerId {
        let id = self.fresh();
        self.flush.add(id, Arc::new(callback));
        id
    }

    pub(super) fn remove(&self, id: ListenerId) -> bool {
        self.created.remove(id) || self.event.remove(id) || self.flush.remove(id)
    }

    pub(super) fn hears_events(&self) -> bool {
        !self.event.is_empty()
    }

    /// Calls the `created` listeners until one fails.
    pub(super) fn call_created(&self, session: &Session, origin: Origin) -> Result<()> {
        let _stay = inside::enter(session.key(), inside::Kind::Created);
        for callback in self.created.snapshot() {
            contained("created", || callback(session, origin))?;
        }
        Ok(())
    }

    /// Calls every `event` listener; the number that failed.
    pub(super) fn call_event(&self, session: &Session, event: &Event) -> u64 {
        let _stay = inside::enter(session.key(), inside::Kind::Event);
        let mut failed = 0;
        for callback in self.event.snapshot() {
            if let Err(error) = contained("event", || callback(session, event)) {
                failed += 1;
                tracing::warn!(session = session.id(), seq = event.seq(), %error, "an event listener failed");
            }
        }
        failed
    }

    /// The `flush` listeners, each with what it is to be told.
    pub(super) fn flush_calls(&self, told: &Flushing) -> Vec<FlushCall> {
        let calls = self.flush.snapshot().into_iter();
        calls.map(|callback| FlushCall { callback, told: told.clone() }).collect()
    }

    fn fresh(&self) -> ListenerId {
        ListenerId(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

impl FlushCall {
    pub(super) fn run(&self) -> Result<()> {
        let key = self.told.session.as_ref().map_or(inside::STORE, Session::key);
        let _stay = inside::enter(key, inside::Kind::Flush);
        contained("flush", || (self.callback)(&self.told))
    }
}

/// Runs a listener and turns a panic into an error.
fn contained(kind: &str, call: impl FnOnce() -> Result<()>) -> Result<()> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.wrap(ErrorKind::Listener, format!("a {kind} listener failed"))),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let text = text.unwrap_or_else(|| "no message".to_owned());
            Err(Error::new(ErrorKind::Listener, format!("a {kind} listener panicked: {text}")))
        }
    }
}
