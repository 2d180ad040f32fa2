use std::sync::Arc;

use super::event;
use crate::rt::{RealRuntime, Runtime};
use crate::store::subscription::{Notice, Subscription, feed};

fn runtime() -> Arc<dyn Runtime> {
    Arc::new(RealRuntime::new())
}

/// Seqs as they are, gaps as negative numbers.
fn taken(subscription: &Subscription) -> Vec<i64> {
    std::iter::from_fn(|| subscription.try_recv())
        .map(|notice| match notice {
            Notice::Event(event) => i64::try_from(event.seq()).unwrap(),
            Notice::Lagged(count) => -i64::try_from(count).unwrap(),
        })
        .collect()
}

#[test]
fn what_fits_comes_in_order() {
    let (feed, subscription) = feed(4, runtime());
    for seq in 0..4 {
        assert_eq!(feed.send(&event(seq)), 0);
    }
    assert_eq!(taken(&subscription), [0, 1, 2, 3]);
    assert_eq!(subscription.dropped(), 0);
    assert_eq!(subscription.try_recv(), None);
}

#[test]
fn a_gap_says_how_many_stood_there_at_its_place() {
    let (feed, subscription) = feed(2, runtime());
    let dropped: u64 = (0..10).map(|seq| feed.send(&event(seq))).sum();
    assert_eq!(dropped, 8);
    assert_eq!(taken(&subscription), [0, 1, -8]);
    feed.send(&event(10));
    assert_eq!(taken(&subscription), [10]);
    assert_eq!(subscription.dropped(), 8);
}

#[test]
fn a_gap_comes_before_what_was_sent_behind_it() {
    let (feed, subscription) = feed(3, runtime());
    (0..5).for_each(|seq| {
        feed.send(&event(seq));
    });
    assert_eq!(subscription.try_recv(), Some(Notice::Event(event(0))));
    assert_eq!(subscription.try_recv(), Some(Notice::Event(event(1))));
    feed.send(&event(5));
    assert_eq!(taken(&subscription), [2, -2, 5]);
}

#[test]
fn with_room_for_one_a_gap_takes_the_room() {
    let (feed, subscription) = feed(0, runtime());
    (0..3).for_each(|seq| {
        feed.send(&event(seq));
    });
    assert_eq!(subscription.try_recv(), Some(Notice::Event(event(0))));
    feed.send(&event(3));
    // The gap of 1 and 2 took the only place, so 3 was dropped as well.
    assert_eq!(taken(&subscription), [-2, -1]);
}

#[test]
fn every_event_is_received_or_counted_also_under_load() {
    let (feed, subscription) = feed(8, runtime());
    let sender = std::thread::spawn(move || {
        for seq in 0..20_000 {
            feed.send(&event(seq));
            feed.wake();
        }
    });
    let mut next = 0;
    while let Some(notice) = subscription.recv() {
        match notice {
            Notice::Event(event) => {
                assert_eq!(event.seq(), next);
                next += 1;
            }
            Notice::Lagged(count) => next += count,
        }
    }
    assert_eq!(next, 20_000);
    sender.join().unwrap();
}

#[test]
fn a_waiting_receiver_is_woken_and_the_end_is_told() {
    let (feed, subscription) = feed(8, runtime());
    let receiver = std::thread::spawn(move || (subscription.recv(), subscription.recv()));
    std::thread::sleep(std::time::Duration::from_millis(20));
    feed.send(&event(0));
    feed.wake();
    drop(feed);
    assert_eq!(receiver.join().unwrap(), (Some(Notice::Event(event(0))), None));
}

#[test]
fn a_dropped_receiver_is_noticed() {
    let (feed, subscription) = feed(1, runtime());
    assert!(!feed.is_abandoned());
    drop(subscription);
    assert!(feed.is_abandoned());
    feed.send(&event(0));
}
