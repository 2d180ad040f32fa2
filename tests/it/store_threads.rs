//! Thousands of sessions from many threads, on the real disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sessionlog::{CreateOptions, SessionStore, StoreOptions};

use crate::store_fixture::{chunk, step_end, step_start, turn_end, turn_start, user};

const THREADS: usize = 8;
const SESSIONS: usize = 2000;

fn turn(store: &SessionStore, id: &str, text: &str) -> sessionlog::Result<()> {
    let session = store.create(CreateOptions::new().id(id))?;
    session.append_batch(vec![turn_start(1), user(text), step_start(1, 1)])?;
    for n in 0..5 {
        session.append(chunk(1, 1, &format!("{text}{n}")))?;
    }
    session.append_batch(vec![step_end(1, 1), turn_end(1)])?;
    assert_eq!(session.derive_messages()?.len(), 1);
    Ok(())
}

#[test]
fn thousands_of_sessions_from_many_threads() {
    let directory = tempfile::tempdir().unwrap();
    let store = StoreOptions::new().segment_bytes(1 << 20).open(directory.path()).unwrap();
    let heard = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&heard);
    store.on_event(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let store = store.clone();
            std::thread::spawn(move || {
                for n in (thread..SESSIONS).step_by(THREADS) {
                    let id = format!("s{n}");
                    turn(&store, &id, &n.to_string()).unwrap();
                    let session = store.get(&id).unwrap();
                    match n % 10 {
                        0 => session.flush().unwrap(),
                        1 => session.close().unwrap(),
                        2 => store.delete(&id).unwrap(),
                        3 => {
                            drop(store.fork(&id, sessionlog::ForkOptions::new().id(format!("f{n}"))).unwrap())
                        }
                        4 => {
                            session.detach();
                            assert!(store.resume(&id).unwrap().closers.is_empty());
                        }
                        _ => {}
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(heard.load(Ordering::Relaxed), 10 * SESSIONS as u64);
    store.close().unwrap();
    let store = StoreOptions::new().open(directory.path()).unwrap();
    assert!(store.recovery().clean, "{:?}", store.recovery());
    assert_eq!(store.stored().unwrap().count(), SESSIONS);
    for stat in store.stored().unwrap() {
        let stat = stat.unwrap();
        assert_eq!((stat.events, stat.open), (10, false), "{}", stat.id);
        let number = &stat.id[1..];
        let message = &store.open(&stat.id).unwrap().derive_messages().unwrap()[0];
        assert!(message.to_line().contains(&format!("\"text\":\"{number}\"")), "{}", stat.id);
    }
    let mut found = Vec::new();
    store.verify(&mut |finding| found.push(finding)).unwrap();
    assert!(found.is_empty(), "{found:?}");
}
