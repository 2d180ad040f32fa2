use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::log::Ticket;
use crate::rt::{RealRuntime, Runtime};
use crate::store::listeners::{Flushing, Listeners};
use crate::store::ticket::{FlushTicket, Round};

fn start(listeners: &Listeners) -> Option<Arc<Round>> {
    let runtime: Arc<dyn Runtime> = Arc::new(RealRuntime::new());
    Round::start(&runtime, listeners.flush_calls(&Flushing { session: None, seq: 0 }))
}

#[test]
fn all_run_at_once() {
    let listeners = Listeners::default();
    // Nobody passes before all three are there.
    let barrier = Arc::new(Barrier::new(3));
    for _ in 0..3 {
        let barrier = Arc::clone(&barrier);
        listeners.on_flush(move |_| {
            barrier.wait();
            Ok(())
        });
    }
    start(&listeners).unwrap().wait().unwrap();
}

#[test]
fn the_first_failure_comes_after_all_have_settled() {
    let listeners = Listeners::default();
    let settled = Arc::new(AtomicUsize::new(0));
    listeners.on_flush(|_| Err(Error::new(ErrorKind::Full, "no room")));
    let count = Arc::clone(&settled);
    listeners.on_flush(move |_| {
        std::thread::sleep(Duration::from_millis(50));
        count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    let error = start(&listeners).unwrap().wait().unwrap_err();
    assert_eq!(settled.load(Ordering::SeqCst), 1);
    assert_eq!(error.kind(), ErrorKind::Listener);
    assert!(error.to_string().contains("no room"), "{error}");
}

#[test]
fn a_panic_is_a_failure() {
    let listeners = Listeners::default();
    listeners.on_flush(|_| panic!("oh no {}", 7));
    let error = start(&listeners).unwrap().wait().unwrap_err();
    assert!(error.to_string().contains("panicked: oh no 7"), "{error}");
}

#[test]
fn without_listeners_there_is_nothing_to_wait_for() {
    let listeners = Listeners::default();
    let id = listeners.on_flush(|_| panic!("removed"));
    assert!(listeners.remove(id));
    assert!(!listeners.remove(id));
    assert!(start(&listeners).is_none());
}

#[test]
fn a_ticket_is_a_future_that_is_woken() {
    let listeners = Listeners::default();
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    listeners.on_flush(move |_| {
        let _ = wait.lock().unwrap().recv();
        Ok(())
    });
    let mut ticket = pin!(FlushTicket::new(Ticket::ready(), start(&listeners), None));
    let (woken, hears) = mpsc::channel::<()>();
    let waker = Waker::from(Arc::new(Rings(std::sync::Mutex::new(woken))));
    let mut context = Context::from_waker(&waker);
    assert!(matches!(ticket.as_mut().poll(&mut context), Poll::Pending));
    go.send(()).unwrap();
    hears.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(matches!(ticket.as_mut().poll(&mut context), Poll::Ready(Ok(()))));
}

struct Rings(std::sync::Mutex<mpsc::Sender<()>>);

impl std::task::Wake for Rings {
    fn wake(self: Arc<Self>) {
        let _ = self.0.lock().unwrap().send(());
    }
}
