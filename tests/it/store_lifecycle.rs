//! L1 to L3: prepare, enter, announce; close and detach; and what a failure leaves.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sessionlog::testing::DiskOp;
use sessionlog::{CreateOptions, Error, ErrorKind, Header, Origin};

use crate::store_fixture::{
    Sim, append_waiting, at, create, lines, nodes, open_turn, raw, seed, threaded, turn_end, turn_start, user,
};

fn options(id: &str) -> CreateOptions {
    CreateOptions::new().id(id)
}

#[test]
fn nothing_is_written_before_the_announcement() {
    let sim = Sim::new(1);
    let store = sim.open();
    let prepared = store.prepare(options("a").seed(seed(vec![user("s")]))).unwrap();
    assert!(store.get("a").is_none());
    let guard = store.enter(prepared).unwrap();
    let session = guard.session().clone();
    assert_eq!(store.get("a").unwrap().seq(), 1);
    assert!(store.stat("a").unwrap_err().is_not_found());
    // What is appended now joins the first batch.
    session.append(user("b")).unwrap();
    assert_eq!((session.seq(), nodes(&session)), (2, vec![0, 1]));
    assert_eq!(lines(session.events()).len(), 2);
    assert_eq!(session.derive_messages().unwrap().len(), 2);
    assert_eq!(session.flush().unwrap_err().kind(), ErrorKind::InvalidArgument);
    store.flush().unwrap();
    assert_eq!(Sim::on(sim.disk.crash(1), 9).open().stored().unwrap().count(), 0);
    let records = store.counters().log.records;
    guard.announce().unwrap();
    assert_eq!(guard.announce().unwrap_err().kind(), ErrorKind::InvalidArgument);
    session.append(user("c")).unwrap();
    session.flush().unwrap();
    assert_eq!(store.counters().log.records - records, 4);
    guard.keep();
    let after = Sim::on(sim.disk.crash(1), 9).open();
    assert_eq!(after.open("a").unwrap().seq(), 3);
}

#[test]
fn a_dropped_guard_detaches_and_frees_the_id() {
    let sim = Sim::new(2);
    let store = sim.open();
    let guard = store.enter(store.prepare(options("a")).unwrap()).unwrap();
    let session = guard.session().clone();
    assert_eq!(store.enter(store.prepare(options("a")).unwrap()).unwrap_err().kind(), ErrorKind::Exists);
    drop(guard);
    assert!(store.get("a").is_none());
    assert!(session.append(user("a")).unwrap_err().is_closed());
    create(&store, "a");
    // An announced session detaches with its guard too, and stays stored.
    let guard = store.enter(store.prepare(options("b")).unwrap()).unwrap();
    guard.announce().unwrap();
    let session = guard.session().clone();
    session.append(user("a")).unwrap();
    guard.detach();
    let error = session.append(user("b")).unwrap_err();
    assert!(error.is_closed());
    assert!(error.to_string().contains("detached"), "{error}");
    assert_eq!(lines(session.events()).len(), 1);
    session.flush().unwrap();
    assert_eq!(store.stat("b").unwrap().events, 1);
}

#[test]
fn an_old_guard_does_not_disturb_a_later_session_of_the_same_id() {
    let sim = Sim::new(20);
    let store = sim.options().segment_bytes(64 << 10).open("/sim").unwrap();
    let guard = store.enter(store.prepare(options("a")).unwrap()).unwrap();
    guard.announce().unwrap();
    guard.session().append(user("0")).unwrap();
    guard.session().close().unwrap();
    let session = store.resume("a").unwrap().session;
    guard.session().detach();
    drop(guard);
    assert_eq!(store.get("a").unwrap().seq(), 1);
    // The log still keeps it in memory: a checkpoint in between does not make it forget what follows.
    let filler = create(&store, "filler");
    for n in 1..=5 {
        for _ in 0..120 {
            append_waiting(&store, &filler, &[user(&"x".repeat(2000))]);
        }
        store.flush().unwrap();
        sim.runtime.run_for(std::time::Duration::from_millis(100));
        append_waiting(&store, &session, &[user(&n.to_string())]);
        assert_eq!(store.stat("a").unwrap().events, n + 1);
    }
    assert!(store.counters().log.checkpoints > 0);
    assert_eq!(lines(session.events()).len(), 6);
    store.close().unwrap();
    assert_eq!(lines(sim.open().open("a").unwrap().events()).len(), 6);
}

#[test]
fn a_failing_created_listener_leaves_no_trace() {
    let sim = Sim::new(3);
    let store = sim.open();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    store.on_created(move |session, origin| {
        log.lock().unwrap().push((session.id().to_owned(), origin));
        Ok(())
    });
    let fails = store.on_created(|session, _| match session.id() {
        "error" => Err(Error::new(ErrorKind::Full, "no seat")),
        "panic" => panic!("no seat at all"),
        _ => Ok(()),
    });
    create(&store, "fine");
    store.flush().unwrap();
    let records = store.counters().log.records;
    for (id, text) in [("error", "no seat"), ("panic", "no seat at all")] {
        let error = store.create(options(id).seed(seed(vec![user("s")]))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Listener);
        assert!(error.to_string().contains(text), "{error}");
        assert!(store.get(id).is_none());
        assert!(store.stat(id).unwrap_err().is_not_found());
    }
    store.flush().unwrap();
    assert_eq!(store.counters().log.records, records);
    assert!(store.remove_listener(fails));
    create(&store, "error");
    let heard = heard.lock().unwrap();
    let ids: Vec<&str> = heard.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["fine", "error", "panic", "error"]);
    assert!(heard.iter().all(|(_, origin)| *origin == Origin::Created));
}

#[test]
fn ids_are_taken_while_live_and_while_stored() {
    let sim = Sim::new(4);
    let store = sim.open();
    let session = create(&store, "a");
    assert_eq!(store.create(options("a")).unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(store.resume("a").unwrap_err().kind(), ErrorKind::Exists);
    session.close().unwrap();
    assert!(session.append(user("a")).unwrap_err().is_closed());
    let error = store.create(options("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert!(error.to_string().contains("stored already"), "{error}");
    assert_eq!(store.resume("a").unwrap().session.append(user("a")).unwrap().seq, 0);
    for id in ["", &"x".repeat(1025)] {
        store.create(options(id)).unwrap_err();
    }
    for id in ["..", "a/b", "Abc", "abc", "\u{0}", "ünï", &"y".repeat(1024)] {
        create(&store, id);
    }
    store.close().unwrap();
    let store = sim.open();
    assert_eq!(store.stored().unwrap().count(), 8);
    assert_eq!(store.stat("..").unwrap().id, "..");
}

#[test]
fn omitted_ids_are_fresh_uuids_and_the_header_is_kept() {
    let sim = Sim::new(5);
    let store = sim.open();
    let one = store.create(CreateOptions::new()).unwrap();
    let two = store.create(CreateOptions::new()).unwrap();
    assert_ne!(one.id(), two.id());
    assert_eq!((one.id().len(), one.id().as_bytes()[14]), (36, b'4'));
    let made = options("h").cwd("/w").parent_session("p").created_at(at(7)).seed_length(1);
    let session = store.create(made.seed(seed(vec![user("s")]))).unwrap();
    let line = r#"{"type":"session","version":0,"id":"h","createdAt":7,"cwd":"/w","parentSession":"p","seedLength":1}"#;
    assert_eq!(session.header().to_line(), line);
    assert!(store.create(options("rel").cwd("w/x")).is_err());
    let odd = r#" {"version":0.0,"type":"session","id":"odd","createdAt":1.5,"origin":{"a":1}} "#;
    let header = Header::parse_line(odd).unwrap().0;
    store.create(CreateOptions::from_header(header)).unwrap();
    store.close().unwrap();
    let store = sim.open();
    assert_eq!(store.open("h").unwrap().header().to_line(), line);
    assert_eq!(store.open("odd").unwrap().header().to_line(), odd);
    assert_eq!(store.stat("odd").unwrap().created_at.spelling(), "1.5");
}

#[test]
fn live_sessions_are_listed_in_the_order_they_came_in() {
    let sim = Sim::new(6);
    let store = sim.open();
    for id in ["c", "a", "b"] {
        create(&store, id);
    }
    store.get("a").unwrap().detach();
    store.resume("a").unwrap();
    let live: Vec<String> = store.list().iter().map(|session| session.id().to_owned()).collect();
    assert_eq!(live, ["c", "b", "a"]);
    let stored: Vec<String> = store.stored().unwrap().map(|stat| stat.unwrap().id).collect();
    assert_eq!(stored, ["c", "a", "b"]);
}

#[test]
fn a_seed_is_refused_whole_by_event_and_fires_no_event() {
    let sim = Sim::new(7);
    let store = sim.open();
    let heard = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&heard);
    store.on_event(move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    let mut bad = seed(vec![user("a"), user("b"), user("c")]);
    bad.remove(1);
    let error = store.create(options("a").seed(bad)).unwrap_err();
    assert!(error.to_string().contains("event 1 of the seed has seq 2"), "{error}");
    assert!(store.get("a").is_none());
    // I5 to I10 only: accepted, and told.
    let odd = seed(vec![turn_end(4), turn_start(9), raw("x/y", "1")]);
    let prepared = store.prepare(options("a").seed(odd)).unwrap();
    assert!(!prepared.violations().is_empty());
    let guard = store.enter(prepared).unwrap();
    guard.announce().unwrap();
    let session = guard.keep();
    assert_eq!((session.seq(), heard.load(Ordering::SeqCst)), (3, 0));
    session.append(user("d")).unwrap();
    assert_eq!(heard.load(Ordering::SeqCst), 1);
}

#[test]
fn a_large_seed_is_staged_and_appears_whole() {
    let sim = Sim::new(8);
    let store = sim.options().unflushed_bytes(512 << 10).open("/sim").unwrap();
    let text = "x".repeat(10 << 10);
    let events = seed((0..300).map(|_| user(&text)).collect());
    let all: Vec<String> = events.iter().map(sessionlog::Event::to_line).collect();
    let disk = sim.disk.clone();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    // At every write, a look at what a power cut would leave.
    disk.on_call(move |n, op, disk| {
        if op == DiskOp::Write {
            log.lock().unwrap().push(disk.crash(n));
        }
    });
    let session = store.create(options("big").seed(events)).unwrap();
    session.append(user("more")).unwrap();
    sim.disk.clear_on_call();
    store.flush().unwrap();
    let snapshots = std::mem::take(&mut *seen.lock().unwrap());
    assert!(snapshots.len() > 3, "{}", snapshots.len());
    for (n, disk) in snapshots.into_iter().enumerate() {
        let store = Sim::on(disk, 100 + n as u64).open();
        match store.open("big") {
            Ok(reader) => assert!(reader.seq() >= 300, "{}", reader.seq()),
            Err(error) => assert!(error.is_not_found(), "{error}"),
        }
        create(&store, "next").append(user("a")).unwrap();
        store.close().unwrap();
    }
    assert_eq!(lines(session.events())[..300], all);
    store.close().unwrap();
    assert_eq!(lines(sim.open().open("big").unwrap().events())[..300], all);
}

#[test]
fn closing_the_store_ends_every_handle() {
    let sim = Sim::new(9);
    let store = sim.open();
    let session = create(&store, "a");
    session.append(user("a")).unwrap();
    let guard = store.enter(store.prepare(options("b")).unwrap()).unwrap();
    let other = store.clone();
    store.close().unwrap();
    for error in [
        session.append(user("b")).unwrap_err(),
        session.flush().unwrap_err(),
        session.event(0).unwrap_err(),
        other.create(options("c")).unwrap_err(),
        other.stat("a").unwrap_err(),
        other.flush().unwrap_err(),
        guard.announce().unwrap_err(),
        session.events().next().unwrap().unwrap_err(),
    ] {
        assert!(error.is_closed(), "{error}");
    }
    drop(guard);
    assert_eq!(other.list().len(), 0);
    other.close().unwrap();
    assert_eq!(sim.open().stat("a").unwrap().events, 1);
}

#[test]
fn dropping_the_last_handle_flushes() {
    let sim = Sim::new(10);
    let store = sim.open();
    let session = create(&store, "a");
    session.append(user("a")).unwrap();
    drop(store);
    // A session does not keep its store open.
    assert!(session.append(user("b")).unwrap_err().is_closed());
    let store = Sim::on(sim.disk.crash(5), 11).open();
    assert_eq!(store.stat("a").unwrap().events, 1);
}

#[test]
fn a_failing_close_is_reported_by_whoever_closes() {
    for explicit in [true, false] {
        let sim = Sim::new(11);
        let told = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&told);
        let store = sim
            .options()
            .on_close_error(move |error| *slot.lock().unwrap() = Some(error.clone()))
            .open("/sim")
            .unwrap();
        create(&store, "a").append(user("a")).unwrap();
        sim.disk.fail_from(DiskOp::Sync, 1, std::io::ErrorKind::Other);
        if explicit {
            store.close().unwrap_err();
            assert!(told.lock().unwrap().is_none());
        } else {
            drop(store);
            assert!(told.lock().unwrap().is_some());
        }
    }
}

#[test]
fn read_only_stores_refuse_writing_by_kind() {
    let sim = Sim::new(12);
    let store = sim.open();
    let session = create(&store, "a");
    session.append_batch(open_turn(3)).unwrap();
    session.flush().unwrap();
    let reader = sim.read();
    for error in [
        reader.create(options("b")).unwrap_err(),
        reader.resume("a").unwrap_err(),
        reader.delete("a").unwrap_err(),
        reader.flush().unwrap_err(),
        reader.fork("a", sessionlog::ForkOptions::new()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}");
    }
    let open = reader.open("a").unwrap();
    assert_eq!(lines(open.events()), lines(session.events()));
    assert_eq!(open.closers().unwrap().len(), 4);
    assert_eq!(open.surface().unwrap(), session.surface());
    assert!(!reader.is_writer());
}

#[test]
fn a_second_writer_is_told_who_holds_the_store() {
    let sim = Sim::new(13);
    let _store = sim.open();
    let error = Sim::on(sim.disk.other_process(), 14).options().open("/sim").unwrap_err();
    assert!(error.is_locked(), "{error}");
}

#[test]
fn concurrent_creations_of_one_id_let_one_through() {
    let (_disk, store) = threaded();
    for round in 0..20 {
        let id = format!("s{round}");
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (store, id) = (store.clone(), id.clone());
                std::thread::spawn(move || store.create(CreateOptions::new().id(id)).is_ok())
            })
            .collect();
        let through = threads.into_iter().map(|thread| thread.join().unwrap());
        assert_eq!(through.filter(|made| *made).count(), 1);
    }
    assert_eq!(store.list().len(), 20);
}
