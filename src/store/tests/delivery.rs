use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::event;
use crate::store::delivery::Delivery;

#[test]
fn what_is_added_while_a_listener_runs_is_heard_behind_it_by_the_same_thread() {
    let delivery = Delivery::default();
    delivery.push([event(0)]);
    let mut heard = Vec::new();
    delivery.drain(|event| {
        heard.push(event.seq());
        if event.seq() < 3 {
            delivery.push([super::event(event.seq() + 1)]);
            // Another thread would find the queue busy and go on.
            delivery.drain(|_| panic!("two at a time"));
        }
    });
    assert_eq!(heard, [0, 1, 2, 3]);
}

#[test]
fn many_threads_hear_everything_once_and_in_order() {
    let delivery = Arc::new(Delivery::default());
    let next = Arc::new(Mutex::new(0));
    let heard = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (delivery, next, heard) = (Arc::clone(&delivery), Arc::clone(&next), Arc::clone(&heard));
            std::thread::spawn(move || {
                for _ in 0..500 {
                    {
                        // The session's lock.
                        let mut next = next.lock().unwrap();
                        delivery.push([event(*next)]);
                        *next += 1;
                    }
                    delivery.drain(|event| {
                        assert_eq!(heard.fetch_add(1, Ordering::SeqCst), event.seq());
                    });
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(heard.load(Ordering::SeqCst), 4000);
}

#[test]
fn an_unwinding_listener_does_not_end_delivery() {
    let delivery = Delivery::default();
    delivery.push([event(0), event(1)]);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        delivery.drain(|_| panic!("not contained"));
    }));
    assert!(unwound.is_err());
    let mut heard = Vec::new();
    delivery.drain(|event| heard.push(event.seq()));
    assert_eq!(heard, [1]);
}
