//! Sessions that come in from elsewhere: new ones, known ones, children of known ones.

use sessionlog::{
    CreateOptions, Durability, ErrorKind, Event, ForkOptions, Header, NewEvent, Published, SessionStore,
};

use crate::store_fixture::{Sim, at, create, lines, raw, seed, user};

fn bring(store: &SessionStore, header: &Header, events: &[Event]) -> sessionlog::Result<Published> {
    let mut import = store.import(header.clone())?;
    for event in events {
        import.push(event)?;
    }
    import.publish(Durability::Durable)
}

fn rehearse(store: &SessionStore, header: &Header, events: &[Event]) -> sessionlog::Result<Published> {
    let mut import = store.rehearse_import(header)?;
    for event in events {
        import.push(event)?;
    }
    import.publish(Durability::Durable)
}

fn words(texts: &[&str]) -> Vec<Event> {
    seed(texts.iter().map(|text| user(text)).collect())
}

fn stored(store: &SessionStore, id: &str) -> Vec<String> {
    lines(store.open(id).unwrap().events())
}

fn spelled(events: &[Event]) -> Vec<String> {
    events.iter().map(Event::to_line).collect()
}

/// A rehearsal says what then happens, and writes nothing.
fn both(store: &SessionStore, header: &Header, events: &[Event]) -> sessionlog::Result<Published> {
    let before = (store.stored().unwrap().count(), store.stat(header.id()).ok());
    let rehearsed = rehearse(store, header, events);
    assert_eq!((store.stored().unwrap().count(), store.stat(header.id()).ok()), before);
    let done = bring(store, header, events);
    match (&rehearsed, &done) {
        (Ok(rehearsed), Ok(done)) => assert_eq!(rehearsed, done),
        (Err(rehearsed), Err(done)) => assert_eq!(rehearsed.to_string(), done.to_string()),
        other => panic!("{other:?}"),
    }
    done
}

#[test]
fn importing_twice_is_importing_once_and_a_longer_version_adds_what_is_new() {
    let sim = Sim::new(1);
    let store = sim.open();
    let header = Header::new("s", at(1)).unwrap();
    let all = words(&["a", "b", "c", "d", "e"]);
    assert_eq!(both(&store, &header, &all[..3]).unwrap(), Published::Created);
    assert_eq!(both(&store, &header, &all[..3]).unwrap(), Published::Unchanged { stored: 3 });
    assert_eq!(both(&store, &header, &all[..2]).unwrap(), Published::Unchanged { stored: 3 });
    assert_eq!(both(&store, &header, &all).unwrap(), Published::Extended { from: 3 });
    assert_eq!(stored(&store, "s"), spelled(&all));
    let after = Sim::on(sim.disk.crash(3), 2).open();
    assert_eq!(stored(&after, "s"), spelled(&all));
    assert_eq!(after.open("s").unwrap().surface().unwrap().len(), 5);
    // It goes on as any session does.
    assert_eq!(after.resume("s").unwrap().session.append(user("f")).unwrap().seq, 5);
    let error = both(&after, &header, &all).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists, "it is live: {error}");
}

#[test]
fn another_session_of_the_id_is_refused_with_the_first_event_that_differs() {
    let sim = Sim::new(2);
    let store = sim.open();
    let header = Header::new("s", at(1)).unwrap();
    bring(&store, &header, &words(&["a", "b", "c"])).unwrap();
    let error = both(&store, &header, &words(&["a", "x", "c", "d"])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("event 1 "), "{error}");
    let mut spelled_otherwise = words(&["a", "b"]);
    let line = spelled_otherwise[1].to_line().replace("\"seq\":1", "\"seq\": 1");
    spelled_otherwise[1] = Event::parse_line(&line).unwrap();
    let error = both(&store, &header, &spelled_otherwise).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "what comes back must be what came in: {error}");
    let error = both(&store, &Header::new("s", at(2)).unwrap(), &words(&["a"])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("createdAt"), "{error}");
    assert_eq!(stored(&store, "s"), spelled(&words(&["a", "b", "c"])));
    // Its id is free again after each of these.
    assert_eq!(store.resume("s").unwrap().session.seq(), 3);
}

#[test]
fn a_child_with_its_parents_events_refers_to_them() {
    let sim = Sim::new(3);
    let store = sim.open();
    let text = "p".repeat(5000);
    let parents: Vec<Event> = seed((0..100).map(|_| user(&text)).collect());
    bring(&store, &Header::new("parent", at(1)).unwrap(), &parents).unwrap();
    let header = |id: &str| Header::new(id, at(2)).unwrap().with_parent("parent").with_seed_length(80);
    let with = |tail: Vec<NewEvent>| {
        let inherited = parents[..80].iter().map(|event| NewEvent::from_event(event.clone()));
        seed(inherited.chain(tail).collect())
    };
    let child = with(vec![user("own")]);
    let written = || store.counters().log.bytes_written;
    let before = written();
    let published = both(&store, &header("child"), &child).unwrap();
    assert_eq!(published, Published::Forked { parent: "parent".to_owned(), inherited: 80 });
    assert!(written() - before < 20_000, "{} bytes were written", written() - before);
    assert_eq!(stored(&store, "child"), spelled(&child));
    let ids: Vec<_> = store.forks("parent").unwrap().into_iter().map(|stat| stat.id.to_string()).collect();
    assert_eq!(ids, ["child"]);
    // Large children are staged as references too.
    let large = with((0..400).map(|_| user(&text)).collect());
    let mut import = store.import(header("large")).unwrap();
    large.iter().for_each(|event| import.push(event).unwrap());
    store.flush().unwrap();
    // Most of it is in the log by now, and nobody sees it, a power cut included.
    assert!(store.stat("large").unwrap_err().is_not_found());
    assert!(Sim::on(sim.disk.crash(4), 9).open().stat("large").unwrap_err().is_not_found());
    drop(import);
    let published = both(&store, &header("large"), &large).unwrap();
    assert_eq!(published, Published::Forked { parent: "parent".to_owned(), inherited: 80 });
    assert_eq!(stored(&store, "large"), spelled(&large));
    let after = Sim::on(sim.disk.crash(5), 4).open();
    assert_eq!((stored(&after, "child"), stored(&after, "large")), (spelled(&child), spelled(&large)));
    assert_eq!(after.open("large").unwrap().surface().unwrap().len(), 480);
    after.delete("parent").unwrap();
    assert_eq!(stored(&after, "child"), spelled(&child));
}

#[test]
fn a_child_that_differs_from_its_parent_is_a_copy() {
    let sim = Sim::new(4);
    let store = sim.open();
    bring(&store, &Header::new("parent", at(1)).unwrap(), &words(&["a", "b", "c", "d"])).unwrap();
    let header = |id: &str, cut| Header::new(id, at(2)).unwrap().with_parent("parent").with_seed_length(cut);
    for (id, cut, texts) in [
        ("first", 3, &["x", "b", "c", "d"][..]),
        ("last", 3, &["a", "b", "x", "d"]),
        ("short", 3, &["a", "b"]),
        ("beyond", 5, &["a", "b", "c", "d", "e"]),
        ("none", 0, &["a", "b"]),
        ("orphan", 2, &["a", "b"]),
    ] {
        let header = if id == "orphan" { header(id, cut).with_parent("gone") } else { header(id, cut) };
        assert_eq!(both(&store, &header, &words(texts)).unwrap(), Published::Created, "{id}");
        assert_eq!(stored(&store, id), spelled(&words(texts)), "{id}");
    }
    assert!(store.forks("parent").unwrap().is_empty());
}

#[test]
fn an_import_given_up_or_cut_off_leaves_a_known_session_as_it_was() {
    let sim = Sim::new(5);
    let store = sim.open();
    let header = Header::new("s", at(1)).unwrap();
    let all = words(&["a", "b", "c"]);
    bring(&store, &header, &all[..1]).unwrap();
    let mut import = store.import(header.clone()).unwrap();
    all.iter().for_each(|event| import.push(event).unwrap());
    assert_eq!(store.create(CreateOptions::new().id("s")).unwrap_err().kind(), ErrorKind::Exists);
    drop(import);
    assert_eq!(stored(&store, "s"), spelled(&all[..1]));
    store.resume("s").unwrap().session.detach();
    assert_eq!(bring(&store, &header, &all).unwrap(), Published::Extended { from: 1 });
    let mut import = store.import(header).unwrap();
    import.push(&seed(vec![raw("x/y", "1")])[0]).unwrap_err();
    import.publish(Durability::Durable).unwrap_err();
    assert_eq!(stored(&store, "s"), spelled(&all));
}

#[test]
fn forks_of_forks_and_a_live_parent_are_referred_to() {
    let sim = Sim::new(6);
    let store = sim.open();
    let parent = create(&store, "a");
    for text in ["0", "1", "2"] {
        parent.append(user(text)).unwrap();
    }
    store.fork("a", ForkOptions::new().id("b")).unwrap().append(user("3")).unwrap();
    let events: Vec<Event> = store.open("b").unwrap().events().map(Result::unwrap).collect();
    let header = Header::new("c", at(2)).unwrap().with_parent("b").with_seed_length(4);
    let published = bring(&store, &header, &events).unwrap();
    assert_eq!(published, Published::Forked { parent: "b".to_owned(), inherited: 4 });
    assert_eq!(stored(&store, "c"), spelled(&events));
}

#[test]
fn an_extension_that_ends_with_a_piece_is_durable_too() {
    let sim = Sim::new(7);
    let store = sim.open();
    let header = Header::new("s", at(1)).unwrap();
    bring(&store, &header, &words(&["a"])).unwrap();
    let text = "l".repeat(4 << 20);
    let mut all = vec![user("a")];
    all.extend((0..8).map(|_| user(&text)));
    let all = seed(all);
    assert_eq!(bring(&store, &header, &all).unwrap(), Published::Extended { from: 1 });
    let after = Sim::on(sim.disk.crash(1), 8).open();
    assert_eq!(after.stat("s").unwrap().events, 9);
}
