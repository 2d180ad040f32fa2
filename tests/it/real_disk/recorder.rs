//! The process that records: some threads with a session each, which say what was acknowledged and what was refused.

use std::path::Path;

use sessionlog::testing::workload::event;
use sessionlog::{CreateOptions, Session, SessionStore};

use super::{options, text};

/// The variable that names the store's directory.
pub(super) const DIRECTORY: &str = "SESSIONLOG_REAL_DIRECTORY";
/// How many events each thread appends.
pub(super) const EVENTS: &str = "SESSIONLOG_REAL_EVENTS";
/// A word that is part of the sessions' ids.
pub(super) const RUN: &str = "SESSIONLOG_REAL_RUN";
const THREADS: usize = 4;

/// Started by the other tests in a process of its own.
#[test]
fn recorder() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let events: usize = std::env::var(EVENTS).ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    let run = std::env::var(RUN).unwrap_or_default();
    // Behind what the test's own runner has begun to print.
    println!();
    let store = match options().open(Path::new(&directory)) {
        Ok(store) => store,
        Err(error) => return println!("refused open {:?}: {error}\ndone", error.kind()),
    };
    let sessions: Vec<Option<Session>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (store, id) = (&store, format!("s{run}-{thread}"));
                scope.spawn(move || record(store, &id, events))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    if store.fault().is_some() {
        println!("poisoned");
        sessions.iter().flatten().for_each(|session| poisoned(&store, session));
    }
    drop(sessions);
    if let Err(error) = store.close() {
        println!("refused close {:?}", error.kind());
    }
    println!("done");
}

/// Appends until the end, or until something is refused; the session.
fn record(store: &SessionStore, id: &str, events: usize) -> Option<Session> {
    let session = store.create(CreateOptions::new().id(id));
    let session = session.map_err(|error| println!("refused create {:?}", error.kind())).ok()?;
    for seq in 0..events {
        let (event, _) = event(seq, &text(id, seq)).unwrap();
        loop {
            match session.append(event.clone()) {
                Ok(_) => break,
                Err(error) if error.is_backpressure() => {
                    if let Err(error) = store.wait_for_room(event.data().len()) {
                        println!("refused wait {:?}", error.kind());
                        return Some(session);
                    }
                }
                Err(error) => {
                    println!("refused append {:?}", error.kind());
                    return Some(session);
                }
            }
        }
        if seq % 3 == 1 {
            continue;
        }
        match session.flush() {
            Ok(()) => println!("ack {id} {seq}"),
            Err(error) => {
                println!("refused flush {:?}", error.kind());
                return Some(session);
            }
        }
    }
    Some(session)
}

/// Behind a failed write nothing is taken and nothing acknowledged; reading goes on (G5).
fn poisoned(store: &SessionStore, session: &Session) {
    let id = session.id();
    let seq = usize::try_from(session.seq()).unwrap();
    assert!(
        session.append(event(seq, &text(id, seq)).unwrap().0).is_err(),
        "a poisoned writer takes an event"
    );
    assert!(session.flush().is_err() && store.flush().is_err(), "a poisoned writer acknowledges");
    assert!(store.create(CreateOptions::new().id(format!("{id}-late"))).is_err());
    let lines: Vec<String> = session.events().map(|event| event.unwrap().to_line()).collect();
    assert_eq!(lines.len(), seq, "all that was taken is read");
    for (seq, line) in lines.iter().enumerate() {
        assert_eq!(*line, event(seq, &text(id, seq)).unwrap().1);
    }
}
