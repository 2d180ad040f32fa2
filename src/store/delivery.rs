//! The order in which a session's `event` listeners hear of its events (A8).
//!
//! Always: events leave in the order in which they came in, one at a time per session, with no lock held while a
//! listener runs. Never: an append waits for another thread's listener. The thread that finds the queue idle
//! delivers what is in it, also what others add meanwhile.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::event::Event;

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    busy: bool,
}

#[derive(Default)]
pub(super) struct Delivery {
    queue: Mutex<Queue>,
}

impl Delivery {
    /// Adds events to be heard. Called under the session's lock, so that the order is that of the seqs.
    pub(super) fn push(&self, events: impl IntoIterator<Item = Event>) {
        self.queue.lock().events.extend(events);
    }

    /// Delivers until the queue is empty, unless another thread is at it.
    pub(super) fn drain(&self, mut hear: impl FnMut(&Event)) {
        let Some(mut event) = self.start() else { return };
        let idle = Idle(self);
        loop {
            hear(&event);
            event = {
                let mut queue = self.queue.lock();
                match queue.events.pop_front() {
                    Some(next) => next,
                    None => {
                        queue.busy = false;
                        break;
                    }
                }
            };
        }
        std::mem::forget(idle);
    }

    fn start(&self) -> Option<Event> {
        let mut queue = self.queue.lock();
        if queue.busy {
            return None;
        }
        let event = queue.events.pop_front()?;
        queue.busy = true;
        Some(event)
    }
}

/// Lets the next append deliver when `hear` unwound. Listeners are contained, so this is a second fence.
struct Idle<'a>(&'a Delivery);

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        self.0.queue.lock().busy = false;
    }
}
