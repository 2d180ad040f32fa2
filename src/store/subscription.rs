//! A bounded feed of a session's new events.
//!
//! Always: events come in seq order, and where some were dropped because the receiver was slow, their number
//! stands exactly in their place. Never: a slow receiver never delays or fails an append.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

use crossbeam_channel::{Receiver, Sender, TryRecvError, TrySendError, bounded};
use parking_lot::Mutex;

use crate::event::Event;
use crate::rt::Runtime;

/// What a [`Subscription`] hands out.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// The next event.
    Event(Event),
    /// So many events stood here and were dropped; read them from the session.
    Lagged(u64),
}

/// The largest capacity of a subscription, in events.
pub const MAX_SUBSCRIPTION: usize = 1 << 16;

struct Channel {
    /// Events dropped since the last one that was taken in. Also the lock that keeps their place exact.
    missed: Mutex<u64>,
    receiver_gone: AtomicBool,
    /// Nothing more will be sent.
    ended: AtomicBool,
    waiters: AtomicU32,
    word: AtomicU32,
    dropped: AtomicU64,
    runtime: Arc<dyn Runtime>,
}

/// The sending end, held by the session.
pub(super) struct Feed {
    sender: Sender<Notice>,
    channel: Arc<Channel>,
}

/// The receiving end of [`Session::subscribe`](crate::Session::subscribe). Dropping it ends the subscription.
pub struct Subscription {
    receiver: Receiver<Notice>,
    channel: Arc<Channel>,
}

/// A feed and its subscription, with room for `capacity` notices (at least 1).
pub(super) fn feed(capacity: usize, runtime: Arc<dyn Runtime>) -> (Feed, Subscription) {
    let (sender, receiver) = bounded(capacity.clamp(1, MAX_SUBSCRIPTION));
    let channel = Arc::new(Channel {
        missed: Mutex::new(0),
        receiver_gone: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        waiters: AtomicU32::new(0),
        word: AtomicU32::new(0),
        dropped: AtomicU64::new(0),
        runtime,
    });
    (Feed { sender, channel: Arc::clone(&channel) }, Subscription { receiver, channel })
}

impl Feed {
    /// Puts `event` in, or counts it as dropped. Returns how many were dropped by this call. Called under the
    /// session's lock, which keeps the seq order; it makes no system call.
    pub(super) fn send(&self, event: &Event) -> u64 {
        let mut missed = self.channel.missed.lock();
        if *missed > 0 {
            match self.sender.try_send(Notice::Lagged(*missed)) {
                Ok(()) => *missed = 0,
                Err(_) => return self.drop_one(&mut missed),
            }
        }
        match self.sender.try_send(Notice::Event(event.clone())) {
            Ok(()) => 0,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.drop_one(&mut missed),
        }
    }

    fn drop_one(&self, missed: &mut u64) -> u64 {
        *missed = missed.saturating_add(1);
        self.channel.dropped.fetch_add(1, Ordering::Relaxed);
        1
    }

    /// Wakes a receiver that waits. Called without the session's lock.
    pub(super) fn wake(&self) {
        self.channel.wake();
    }

    /// The receiver was dropped.
    pub(super) fn is_abandoned(&self) -> bool {
        self.channel.receiver_gone.load(Ordering::Acquire)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.channel.ended.store(true, Ordering::SeqCst);
        self.channel.wake();
    }
}

impl Channel {
    fn wake(&self) {
        // Pairs with the fence in `recv`: either the receiver sees the notice, or we see the waiter.
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) > 0 {
            self.word.fetch_add(1, Ordering::SeqCst);
            self.runtime.wake_all(&self.word);
        }
    }
}

impl Subscription {
    /// The next notice, or `None` when there is none at the moment.
    #[must_use]
    pub fn try_recv(&self) -> Option<Notice> {
        match self.receiver.try_recv() {
            Ok(notice) => Some(notice),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => self.take_missed(),
        }
    }

    /// Waits for the next notice. `None` when the session was closed, detached or deleted and all was received.
    #[must_use]
    pub fn recv(&self) -> Option<Notice> {
        loop {
            if let Some(notice) = self.try_recv() {
                return Some(notice);
            }
            self.channel.waiters.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let seen = self.channel.word.load(Ordering::SeqCst);
            let ended = self.channel.ended.load(Ordering::SeqCst);
            let notice = self.try_recv();
            if notice.is_none() && !ended {
                self.channel.runtime.wait(&self.channel.word, seen);
            }
            self.channel.waiters.fetch_sub(1, Ordering::SeqCst);
            if notice.is_some() || ended {
                return notice;
            }
        }
    }

    /// How many events were dropped so far because this subscription was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.channel.dropped.load(Ordering::Relaxed)
    }

    /// The channel is empty: what was dropped since then stands here. Under the lock nothing can be sent between
    /// the second look and the answer, so the place is exact.
    fn take_missed(&self) -> Option<Notice> {
        let mut missed = self.channel.missed.lock();
        if let Ok(notice) = self.receiver.try_recv() {
            return Some(notice);
        }
        let count = std::mem::take(&mut *missed);
        (count > 0).then_some(Notice::Lagged(count))
    }
}

impl Iterator for &Subscription {
    type Item = Notice;

    fn next(&mut self) -> Option<Notice> {
        self.recv()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.channel.receiver_gone.store(true, Ordering::Release);
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("waiting", &self.receiver.len()).finish_non_exhaustive()
    }
}
