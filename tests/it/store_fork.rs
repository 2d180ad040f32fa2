//! L4 and D6: forks refer, read as if they had copied, and outlive their parents.

use sessionlog::{ErrorKind, Event, ForkOptions, Session, SessionStore};

use crate::store_fixture::{
    Sim, append_waiting, at, chunk, create, lines, nodes, open_turn, replace, step_end, texts, threaded,
    turn_end, turn_start, user,
};

fn fork(store: &SessionStore, parent: &str, id: &str) -> Session {
    store.fork(parent, ForkOptions::new().id(id)).unwrap()
}

fn own(event: &str) -> String {
    event.to_owned()
}

#[test]
fn a_fork_reads_as_if_it_had_the_events() {
    let sim = Sim::new(1);
    let store = sim.open();
    let parent = store.create(sessionlog::CreateOptions::new().id("p").cwd("/w").created_at(at(1))).unwrap();
    parent.append_batch((0..6).map(|n| user(&n.to_string())).collect()).unwrap();
    parent.append(replace(1, 3, &[1, 2, 3])).unwrap();
    let child = store.fork("p", ForkOptions::new().id("c").created_at(at(9))).unwrap();
    let header = r#"{"type":"session","version":0,"id":"c","createdAt":9,"cwd":"/w","parentSession":"p","seedLength":7}"#;
    assert_eq!(child.header().to_line(), header);
    assert_eq!(lines(child.events()), lines(parent.events()));
    assert_eq!(child.surface(), parent.surface());
    // From here on they are apart.
    child.append(user("child")).unwrap();
    parent.append(replace(0, 6, &[0, 6])).unwrap();
    assert_eq!(nodes(&child), [0, 6, 4, 5, 7]);
    assert_eq!(nodes(&parent), [7, 4, 5]);
    // At an event in the middle, before the replace.
    let early = store.fork("p", ForkOptions::new().id("e").at(4)).unwrap();
    assert_eq!((nodes(&early), early.seq()), (vec![0, 1, 2, 3, 4], 5));
    assert_eq!(early.header().seed_length(), Some(5));
    early.append(user("early")).unwrap();
    let expected: Vec<_> = ["p", "c", "e"].map(|id| lines(store.get(id).unwrap().events())).into();
    let derived: Vec<_> =
        ["p", "c", "e"].map(|id| texts(&store.get(id).unwrap().derive_messages().unwrap())).into();
    store.close().unwrap();
    let store = sim.open();
    for ((id, events), messages) in ["p", "c", "e"].iter().zip(expected).zip(derived) {
        let reader = store.open(id).unwrap();
        assert_eq!(lines(reader.events()), events, "{id}");
        assert_eq!(texts(&reader.derive_messages().unwrap()), messages, "{id}");
        let resumed = store.resume(id).unwrap();
        assert!(resumed.closers.is_empty());
        assert_eq!(resumed.session.surface(), reader.surface().unwrap());
    }
}

#[test]
fn an_open_turn_is_refused_or_closed_in_the_child() {
    let sim = Sim::new(2);
    let store = sim.open();
    let parent = create(&store, "p");
    parent.append_batch(open_turn(3)).unwrap();
    let error = store.fork("p", ForkOptions::new().id("c")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OpenTurn);
    assert!(store.get("c").is_none());
    let plan = store.repair_plan("p").unwrap();
    let child = store.fork("p", ForkOptions::new().id("c").close_open_turn(true)).unwrap();
    assert_eq!(lines(child.read_from(8)), plan.iter().map(Event::to_line).collect::<Vec<_>>());
    assert_eq!((child.header().seed_length(), child.seq()), (Some(8), 12));
    assert_eq!(parent.seq(), 8);
    parent.append_batch(vec![step_end(1, 1), turn_end(1), turn_start(2)]).unwrap();
    // Behind the turn's end nothing is open, whatever comes later.
    let at_end = store.fork("p", ForkOptions::new().id("d").at(9)).unwrap();
    assert_eq!(at_end.seq(), 10);
    assert_eq!(store.fork("p", ForkOptions::new().at(10)).unwrap_err().kind(), ErrorKind::OpenTurn);
    assert_eq!(store.fork("p", ForkOptions::new().at(0)).unwrap_err().kind(), ErrorKind::OpenTurn);
    // The fork and its closers are one batch.
    store.flush().unwrap();
    let store = Sim::on(sim.disk.crash(1), 3).open();
    assert_eq!(store.stat("c").unwrap().events, 12);
    assert!(!store.stat("c").unwrap().open);
}

#[test]
fn what_cannot_be_forked() {
    let sim = Sim::new(4);
    let store = sim.open();
    create(&store, "p").append(user("a")).unwrap();
    assert!(store.fork("x", ForkOptions::new()).unwrap_err().is_not_found());
    assert!(store.fork("p", ForkOptions::new().at(1)).unwrap_err().is_not_found());
    assert_eq!(store.fork("p", ForkOptions::new().id("p")).unwrap_err().kind(), ErrorKind::Exists);
    create(&store, "empty");
    let child = fork(&store, "empty", "c");
    assert_eq!((child.seq(), child.header().seed_length()), (0, Some(0)));
    child.append(user("b")).unwrap();
    store.close().unwrap();
    assert_eq!(sim.open().open("c").unwrap().seq(), 1);
}

#[test]
fn a_fork_of_a_long_session_writes_a_few_hundred_bytes() {
    let (_disk, store) = threaded();
    let parent = create(&store, "p");
    for _ in 0..1000 {
        let batch: Vec<_> = (0..100).map(|n| chunk(1, 1, &n.to_string())).collect();
        append_waiting(&store, &parent, &batch);
    }
    parent.append(user("a")).unwrap();
    store.flush().unwrap();
    let before = store.counters().log;
    let child = fork(&store, "p", "c");
    store.flush().unwrap();
    let after = store.counters().log;
    let written = after.bytes_written - before.bytes_written;
    assert!(written < 600, "{written} bytes were written");
    assert_eq!((child.seq(), nodes(&child)), (100_001, vec![100_000]));
    let decoded = store.counters().log.decoded_records - before.decoded_records;
    assert!(decoded <= 2, "{decoded} records were decoded");
    assert_eq!(child.event(77).unwrap(), parent.event(77).unwrap());
    assert_eq!(child.events().count(), 100_001);
}

#[test]
fn a_chain_of_a_thousand_forks_reads_through() {
    let (disk, store) = threaded();
    create(&store, "f0").append(user("0")).unwrap();
    for n in 1..=1000 {
        let child = fork(&store, &format!("f{}", n - 1), &format!("f{n}"));
        child.append(user(&n.to_string())).unwrap();
        if n % 3 != 0 {
            child.detach();
        }
    }
    let check = |store: &SessionStore| {
        let last = store.open("f1000").unwrap();
        let events: Vec<Event> = last.events().map(Result::unwrap).collect();
        assert_eq!(events.len(), 1001);
        for (n, event) in events.iter().enumerate() {
            assert!(event.data().contains(&format!(r#""text":"{n}""#)), "{}", event.to_line());
        }
        assert_eq!(last.derive_messages().unwrap().len(), 1001);
        assert_eq!(store.open("f500").unwrap().seq(), 501);
    };
    check(&store);
    store.close().unwrap();
    let store = crate::store_fixture::threaded_options(&disk).open("/sim").unwrap();
    check(&store);
    // The middle of the chain may go: what the others need stays.
    for n in (1..1000).step_by(7) {
        store.delete(&format!("f{n}")).unwrap();
    }
    store.delete("f0").unwrap();
    let last = store.open("f1000").unwrap();
    assert_eq!(last.events().map(Result::unwrap).count(), 1001);
    store.close().unwrap();
    let store = crate::store_fixture::threaded_options(&disk).open("/sim").unwrap();
    assert_eq!(lines(store.open("f1000").unwrap().events()), lines(last_events(&store)));
    assert_eq!(store.open("f1000").unwrap().derive_messages().unwrap().len(), 1001);
}

fn last_events(store: &SessionStore) -> sessionlog::Events {
    store.resume("f1000").unwrap().session.events()
}

#[test]
fn a_fork_of_a_fork_refers_to_whoever_holds_the_event() {
    let sim = Sim::new(6);
    let store = sim.open();
    create(&store, "a").append_batch(vec![user("0"), user("1"), user("2")]).unwrap();
    fork(&store, "a", "b").append(user("b3")).unwrap();
    let c = store.fork("b", ForkOptions::new().id("c").at(1)).unwrap();
    c.append(user("c2")).unwrap();
    let d = fork(&store, "c", "d");
    d.append(user("d3")).unwrap();
    let expected = lines(d.events());
    assert_eq!(d.header().parent_session(), Some("c"));
    // b holds none of what d inherits.
    store.delete("b").unwrap();
    store.delete("a").unwrap();
    store.delete("c").unwrap();
    assert_eq!(lines(d.events()), expected);
    store.close().unwrap();
    let store = sim.open();
    assert_eq!(lines(store.open("d").unwrap().events()), expected);
    assert!(expected[1].contains("\"1\"") && expected[2].contains("c2"), "{expected:?}");
    assert_eq!(store.stored().unwrap().map(|stat| stat.unwrap().id).collect::<Vec<_>>(), [own("d")]);
}

#[test]
fn a_parent_is_kept_while_a_fork_of_it_is_being_made() {
    let sim = Sim::new(7);
    let store = sim.open();
    create(&store, "p").append(user("a")).unwrap();
    let guard = store.enter(store.prepare_fork("p", ForkOptions::new().id("c")).unwrap()).unwrap();
    assert!(store.delete("p").unwrap_err().is_conflict());
    assert_eq!(lines(guard.session().events()).len(), 1);
    guard.session().append(user("b")).unwrap();
    assert_eq!(nodes(guard.session()), [0, 1]);
    guard.announce().unwrap();
    store.delete("p").unwrap();
    assert_eq!(lines(guard.session().events()).len(), 2);
    let child = guard.keep();
    store.close().unwrap();
    assert_eq!(child.id(), "c");
    assert_eq!(sim.open().open("c").unwrap().seq(), 2);
}

/// D2: the directory answers which sessions were forked off one, from runs and from memory alike.
#[test]
fn forks_are_listed_by_their_parent() {
    let sim = Sim::new(9);
    let store = sim.open();
    create(&store, "p").append(user("0")).unwrap();
    for id in ["a", "b", "c"] {
        drop(fork(&store, "p", id));
    }
    // A fork of a fork refers to the session that holds the event, and is a fork of the one it was made of.
    drop(fork(&store, "a", "aa"));
    store.delete("b").unwrap();
    let forks = |store: &SessionStore, id: &str| -> Vec<String> {
        store.forks(id).unwrap().into_iter().map(|stat| stat.id).collect()
    };
    assert_eq!((forks(&store, "p"), forks(&store, "a")), (vec![own("a"), own("c")], vec![own("aa")]));
    assert_eq!(store.forks("nobody").unwrap_err().kind(), ErrorKind::NotFound);
    store.close().unwrap();
    let store = sim.open();
    assert_eq!((forks(&store, "p"), forks(&store, "c")), (vec![own("a"), own("c")], vec![]));
}
