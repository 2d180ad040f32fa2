//! A8: listeners hear everything once and in order, and what they do stays theirs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use sessionlog::testing::DiskOp;
use sessionlog::{Error, ErrorKind, Notice};

use crate::store_fixture::{Sim, chunk, create, open_turn, threaded, user};

#[test]
fn events_are_heard_in_seq_order_once_per_listener() {
    let (_disk, store) = threaded();
    let session = create(&store, "a");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    store.on_event(move |session, event| {
        // The event is visible to whoever hears of it.
        assert!(session.seq() > event.seq());
        log.lock().unwrap().push(event.seq());
        Ok(())
    });
    let own = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&own);
    session.on_event(move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let session = session.clone();
            std::thread::spawn(move || {
                for n in 0..250 {
                    session.append_batch(vec![chunk(1, 1, "a"), chunk(1, 1, &n.to_string())]).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*heard.lock().unwrap(), (0..2000).collect::<Vec<_>>());
    assert_eq!(own.load(Ordering::SeqCst), 2000);
}

#[test]
fn failing_listeners_reach_neither_the_appender_nor_the_others() {
    let sim = Sim::new(1);
    let store = sim.open();
    let session = create(&store, "a");
    store.on_event(|_, event| {
        if event.seq() % 2 == 0 { panic!("even") } else { Err(Error::new(ErrorKind::Full, "odd")) }
    });
    let heard = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&heard);
    store.on_event(move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    for n in 0..6 {
        assert_eq!(session.append(user("a")).unwrap().seq, n);
    }
    assert_eq!((heard.load(Ordering::SeqCst), store.counters().listener_failures), (6, 6));
}

#[test]
fn an_append_from_inside_a_listener_is_an_error_not_a_deadlock() {
    let sim = Sim::new(2);
    let store = sim.open();
    let (a, b) = (create(&store, "a"), create(&store, "b"));
    let errors = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&errors);
    let other = b.clone();
    a.on_event(move |session, _| {
        log.lock().unwrap().push(session.append(user("again")).unwrap_err());
        log.lock().unwrap().push(session.append_batch(vec![user("again")]).unwrap_err());
        // Another session is none of its business.
        other.append(user("from a"))?;
        session.flush()
    });
    let back = a.clone();
    let log = Arc::clone(&errors);
    b.on_event(move |_, _| {
        log.lock().unwrap().push(back.append(user("round")).unwrap_err());
        Ok(())
    });
    let log = Arc::clone(&errors);
    store.on_flush(move |flushing| {
        let session = flushing.session.clone().unwrap();
        log.lock().unwrap().push(session.append(user("f")).unwrap_err());
        log.lock().unwrap().push(session.flush().unwrap_err());
        Ok(())
    });
    a.append(user("a")).unwrap();
    let log = Arc::clone(&errors);
    store.on_created(move |session, _| {
        log.lock().unwrap().push(session.append(user("c")).unwrap_err());
        Ok(())
    });
    create(&store, "c");
    let errors = errors.lock().unwrap();
    assert_eq!(errors.len(), 6);
    for error in errors.iter() {
        assert_eq!(error.kind(), ErrorKind::Listener, "{error}");
    }
    assert_eq!((a.seq(), b.seq()), (1, 1));
    // Outside a listener everything goes on.
    drop(errors);
    a.append(user("a")).unwrap();
}

#[test]
fn a_listener_that_waits_for_another_appender_does_not_lock_up() {
    let (_disk, store) = threaded();
    let session = create(&store, "a");
    let once = AtomicBool::new(true);
    session.on_event(move |session, _| {
        if once.swap(false, Ordering::SeqCst) {
            let session = session.clone();
            std::thread::spawn(move || session.append(user("other thread")).unwrap()).join().unwrap();
        }
        Ok(())
    });
    session.append(user("a")).unwrap();
    assert_eq!(session.seq(), 2);
}

#[test]
fn flush_waits_for_all_listeners_and_the_disk() {
    let (_disk, store) = threaded();
    let session = create(&store, "a");
    let barrier = Arc::new(Barrier::new(3));
    let settled = Arc::new(AtomicU64::new(0));
    for place in 0..3 {
        let (barrier, settled) = (Arc::clone(&barrier), Arc::clone(&settled));
        let listener = move |flushing: &sessionlog::Flushing| {
            assert_eq!((flushing.session.as_ref().unwrap().id(), flushing.seq), ("a", 1));
            barrier.wait();
            settled.fetch_add(1, Ordering::SeqCst);
            match place {
                0 => Err(Error::new(ErrorKind::Full, "no room elsewhere")),
                1 => panic!("elsewhere"),
                _ => Ok(()),
            }
        };
        if place == 2 {
            session.on_flush(listener)
        } else {
            store.on_flush(listener)
        };
    }
    session.append(user("a")).unwrap();
    let error = session.flush().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Listener);
    assert_eq!((settled.load(Ordering::SeqCst), session.durable_seq()), (3, Some(0)));
}

#[test]
fn the_disks_failure_counts_before_a_listeners() {
    let sim = Sim::new(3);
    let store = sim.open();
    let session = create(&store, "a");
    store.on_flush(|_| Err(Error::new(ErrorKind::Full, "listener")));
    session.append(user("a")).unwrap();
    sim.disk.fail_from(DiskOp::Sync, 1, std::io::ErrorKind::Other);
    assert_ne!(session.flush().unwrap_err().kind(), ErrorKind::Listener);
}

#[test]
fn closers_of_a_resume_are_heard_and_those_of_a_fork_are_not() {
    let sim = Sim::new(4);
    let store = sim.open();
    let session = create(&store, "a");
    session.append_batch(open_turn(2)).unwrap();
    session.detach();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    store.on_event(move |session, event| {
        log.lock().unwrap().push((session.id().to_owned(), event.seq()));
        Ok(())
    });
    store.fork("a", sessionlog::ForkOptions::new().id("f").close_open_turn(true)).unwrap();
    assert!(heard.lock().unwrap().is_empty());
    let resumed = store.resume("a").unwrap();
    let expected: Vec<_> = resumed.closers.iter().map(|event| ("a".to_owned(), event.seq())).collect();
    assert_eq!(expected.len(), 4);
    assert_eq!(*heard.lock().unwrap(), expected);
}

#[test]
fn subscriptions_say_how_many_they_dropped() {
    let sim = Sim::new(5);
    let store = sim.open();
    let session = create(&store, "a");
    session.append(user("before")).unwrap();
    let small = session.subscribe(2).unwrap();
    let large = session.subscribe(100).unwrap();
    session.append_batch((0..5).map(|n| user(&n.to_string())).collect()).unwrap();
    assert!(session.append(crate::store_fixture::raw("user/message", "{}")).is_err());
    let seqs = |subscription: &sessionlog::Subscription| -> Vec<i64> {
        std::iter::from_fn(|| subscription.try_recv())
            .map(|notice| match notice {
                Notice::Event(event) => i64::try_from(event.seq()).unwrap(),
                Notice::Lagged(count) => -i64::try_from(count).unwrap(),
                _ => panic!("a notice of no known kind"),
            })
            .collect()
    };
    assert_eq!(seqs(&small), [1, 2, -3]);
    assert_eq!(seqs(&large), [1, 2, 3, 4, 5]);
    assert_eq!((small.dropped(), store.counters().notices_dropped), (3, 3));
    session.append(user("after")).unwrap();
    session.close().unwrap();
    assert_eq!(small.recv(), Some(Notice::Event(session.event(6).unwrap())));
    assert_eq!(small.recv(), None);
    assert!(session.subscribe(1).is_err());
}

#[test]
fn tickets_wait_or_are_awaited() {
    let (_disk, store) = threaded();
    let session = create(&store, "a");
    session.append(user("a")).unwrap();
    let ticket = session.flush_ticket().unwrap();
    session.append(user("b")).unwrap();
    block_on(ticket).unwrap();
    assert!(session.durable_seq() >= Some(0));
    drop(session.flush_ticket().unwrap());
    store.flush_ticket().unwrap().wait().unwrap();
    assert_eq!(session.durable_seq(), Some(1));
}

/// The smallest executor there is.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = std::pin::pin!(future);
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::park();
    }
}
