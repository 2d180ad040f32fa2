//! L5: sessions in numbers, and their end.

use sessionlog::event::Time;
use sessionlog::{CreateOptions, Durability, ErrorKind, ForkOptions, Header, Published, SessionStore};

use crate::store_fixture::{Sim, at, create, lines, raw, seed, turn_start, user};

fn token(store: &SessionStore, id: &str) -> String {
    store.stat(id).unwrap().change_token
}

#[test]
fn stat_knows_numbers_without_reading_events() {
    let sim = Sim::new(1);
    let store = sim.open();
    let session = store.create(CreateOptions::new().id("a").cwd("/w").created_at(at(3))).unwrap();
    let empty = store.stat("a").unwrap();
    assert_eq!((empty.events, empty.bytes, empty.first_time, empty.last_time), (0, 0, None, None));
    assert!(!empty.open && !empty.damaged);
    session.append(user("a").with_time(at(10))).unwrap();
    session.append(turn_start(1).with_time(Time::parse_json("20.4").unwrap())).unwrap();
    let live = store.stat("a").unwrap();
    assert_eq!((live.events, live.first_time, live.last_time, live.open), (2, Some(10), Some(20), true));
    assert_eq!((live.created_at.clone(), live.cwd.as_deref(), live.seed_length), (at(3), Some("/w"), None));
    assert!(live.bytes > 0);
    assert_ne!(empty.change_token, live.change_token);
    store.close().unwrap();
    let store = sim.open();
    let decoded = store.counters().log.decoded_records;
    assert_eq!(store.stat("a").unwrap(), live);
    assert_eq!(store.stored().unwrap().map(Result::unwrap).collect::<Vec<_>>(), [live]);
    assert_eq!(store.counters().log.decoded_records, decoded);
    assert!(store.stat("b").unwrap_err().is_not_found());
}

#[test]
fn the_times_of_a_fork_include_what_it_inherited() {
    let sim = Sim::new(4);
    let store = sim.open();
    let parent = create(&store, "a");
    for time in [10, 20, 30] {
        parent.append(user("a").with_time(at(time))).unwrap();
    }
    let fork = |of: &str, options: ForkOptions| store.fork(of, options).unwrap();
    fork("a", ForkOptions::new().id("end"));
    fork("a", ForkOptions::new().id("cut").at(1));
    parent.append(user("a").with_time(at(40))).unwrap();
    fork("end", ForkOptions::new().id("again"));
    fork("cut", ForkOptions::new().id("more").at(0)).append(user("m").with_time(at(5))).unwrap();
    let times = |store: &SessionStore, id: &str| {
        let stat = store.stat(id).unwrap();
        (stat.first_time.unwrap(), stat.last_time.unwrap())
    };
    let expected = [("end", (10, 30)), ("cut", (10, 20)), ("again", (10, 30)), ("more", (10, 5))];
    assert_eq!(times(&store, "a"), (10, 40));
    assert_eq!(expected.map(|(id, _)| (id, times(&store, id))), expected);
    store.delete("a").unwrap();
    store.close().unwrap();
    let store = sim.open();
    assert_eq!(expected.map(|(id, _)| (id, times(&store, id))), expected);
}

#[test]
fn the_change_token_changes_with_the_session_only() {
    let sim = Sim::new(2);
    let store = sim.open();
    let session = create(&store, "a");
    let first = token(&store, "a");
    create(&store, "b").append(user("b")).unwrap();
    assert_eq!(token(&store, "a"), first);
    session.append(user("a")).unwrap();
    let second = token(&store, "a");
    assert_ne!(first, second);
    store.delete("a").unwrap();
    create(&store, "a");
    assert!(![first, second].contains(&token(&store, "a")));
}

#[test]
fn a_deleted_session_is_gone_and_its_id_free() {
    let sim = Sim::new(3);
    let store = sim.open();
    let session = create(&store, "a");
    session.append(user("old")).unwrap();
    let reader = store.open("a").unwrap();
    store.delete("a").unwrap();
    for error in
        [session.append(user("x")).unwrap_err(), session.event(0).unwrap_err(), session.flush().unwrap_err()]
    {
        assert!(error.is_closed(), "{error}");
        assert!(error.to_string().contains("deleted"), "{error}");
    }
    assert!(store.get("a").is_none());
    for error in [
        store.open("a").unwrap_err(),
        store.stat("a").unwrap_err(),
        store.resume("a").unwrap_err(),
        store.delete("a").unwrap_err(),
    ] {
        assert!(error.is_not_found(), "{error}");
    }
    drop(reader);
    create(&store, "a").append(user("new")).unwrap();
    // A stored session that is not live can go too.
    create(&store, "b").close().unwrap();
    store.delete("b").unwrap();
    store.flush().unwrap();
    let store = Sim::on(sim.disk.crash(4), 5).open();
    assert_eq!(store.stored().unwrap().count(), 1);
    let events = lines(store.open("a").unwrap().events());
    assert_eq!(events.len(), 1);
    assert!(events[0].contains("new"), "{events:?}");
}

#[test]
fn a_session_that_was_not_announced_cannot_be_deleted() {
    let sim = Sim::new(4);
    let store = sim.open();
    let guard = store.enter(store.prepare(CreateOptions::new().id("a")).unwrap()).unwrap();
    assert!(store.delete("a").unwrap_err().is_conflict());
    guard.announce().unwrap();
    store.delete("a").unwrap();
    assert!(guard.session().append(user("a")).unwrap_err().is_closed());
}

#[test]
fn an_import_is_invisible_until_it_is_published() {
    let sim = Sim::new(5);
    let store = sim.options().unflushed_bytes(256 << 10).open("/sim").unwrap();
    let text = "y".repeat(20 << 10);
    let events = seed((0..200).map(|_| user(&text)).collect());
    let header = Header::new("big", at(1)).unwrap();
    let mut import = store.import(header.clone()).unwrap();
    for event in &events {
        import.push(event).unwrap();
    }
    assert!(store.stat("big").unwrap_err().is_not_found());
    assert_eq!(store.stored().unwrap().count(), 0);
    assert_eq!(store.create(CreateOptions::new().id("big")).unwrap_err().kind(), ErrorKind::Exists);
    store.flush().unwrap();
    // Killed or cut off now, nothing of it is there, and its id is free.
    let other = Sim::on(sim.disk.crash(7), 8).open();
    assert_eq!(other.stored().unwrap().count(), 0);
    create(&other, "big").append(user("a")).unwrap();
    assert_eq!(import.publish(Durability::Durable).unwrap(), Published::Created);
    assert_eq!(store.stat("big").unwrap().events, 200);
    assert!(store.get("big").is_none());
    let after = Sim::on(sim.disk.crash(9), 10).open();
    let expected: Vec<String> = events.iter().map(sessionlog::Event::to_line).collect();
    assert_eq!(lines(after.open("big").unwrap().events()), expected);
    assert_eq!(after.resume("big").unwrap().session.append(user("b")).unwrap().seq, 200);
}

#[test]
fn an_import_that_is_given_up_leaves_nothing() {
    let sim = Sim::new(6);
    let store = sim.open();
    for count in [3, 200] {
        let events = seed((0..count).map(|_| user(&"z".repeat(20 << 10))).collect());
        let mut import = store.import(Header::new("gone", at(1)).unwrap()).unwrap();
        events.iter().for_each(|event| import.push(event).unwrap());
        drop(import);
        assert!(store.stat("gone").unwrap_err().is_not_found());
    }
    let mut import = store.import(Header::new("bad", at(1)).unwrap()).unwrap();
    let events = seed(vec![user("a"), user("b"), raw("x/y", "1")]);
    import.push(&events[0]).unwrap();
    import.push(&events[2]).unwrap_err();
    // A refused event cannot be left out silently.
    import.push(&events[1]).unwrap_err();
    import.publish(Durability::Durable).unwrap_err();
    assert!(store.stat("bad").unwrap_err().is_not_found());
    create(&store, "gone");
    store.close().unwrap();
    let store = sim.open();
    assert_eq!(store.stored().unwrap().map(|stat| stat.unwrap().id).collect::<Vec<_>>(), ["gone"]);
    let mut found = Vec::new();
    store.verify(&mut |finding| found.push(finding)).unwrap();
    assert!(found.iter().all(|finding| finding.note), "{found:?}");
}

#[test]
fn every_kind_of_line_comes_back_byte_for_byte() {
    let sim = Sim::new(7);
    let store = sim.open();
    let mut texts = vec![
        r#"{"seq":0,"type":"x/y","time":1.50,"data":{"a":1e2}, "later":[1]}"#.to_owned(),
        r#"{"type":"user/message","seq":1,"time":-3,"data":{"content":[]},"sourceEventSeqs":[0],"surfaceOp":"append","ignorable":true}"#.to_owned(),
        r#"{"type":"assistant/chunk","seq":2,"time":4,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"\ud800\u0041"}}}"#.to_owned(),
        r#"{"type":"assistant/message","seq":3,"time":4,"data":{"turn":1,"step":1,"content":[]},"sourceEventSeqs":[],"surfaceOp":"append"}"#.to_owned(),
        r#"{"type":"user/message","seq":4,"time":5,"data":{"content":[]},"sourceEventSeqs":[3,1],"surfaceOp":{"op":"replace","start":1,"end":3}}"#.to_owned(),
        " {\"type\":\"x/z\",\"seq\":5.0,\"time\":5,\"data\":null}\r".to_owned(),
    ];
    let events: Vec<_> = texts.iter().map(|text| sessionlog::Event::parse_line(text).unwrap()).collect();
    let session = store.create(CreateOptions::new().id("a").seed(events)).unwrap();
    assert_eq!(lines(session.events()), texts);
    session.append(sessionlog::NewEvent::from_event(session.event(2).unwrap())).unwrap();
    texts.push(texts[2].replace("\"seq\":2", "\"seq\":6"));
    assert_eq!(lines(session.events()), texts);
    store.close().unwrap();
    let store = sim.open();
    let session = store.open("a").unwrap();
    assert_eq!(lines(session.events()), texts);
    let (mut rendered, mut events) = (Vec::new(), session.events());
    let mut line = String::from("before ");
    while let Some(read) = events.next_line(&mut line) {
        read.unwrap();
        rendered.push(line.split_off("before ".len()));
    }
    assert_eq!(rendered, texts, "without building the events");
}
