//! P2 as a session sees it: holes are errors at their place, and a loss is accepted only by saying so.

use sessionlog::{Durability, Error, ErrorKind, Event, Header, Published, ResumeOptions, StoreOptions};

use crate::store_fixture::{
    Sim, append_waiting, at as at_time, create, lines, nodes, turn_end, turn_start, user,
};

fn small(sim: &Sim) -> StoreOptions {
    sim.options().segment_bytes(64 << 10)
}

/// The segment files that hold `text`, with where.
fn find(sim: &Sim, text: &str) -> (String, u64) {
    for path in sim.disk.files().into_iter().filter(|path| path.ends_with(".seg")) {
        let bytes = sim.disk.contents(&path).unwrap();
        if let Some(at) = bytes.windows(text.len()).position(|window| window == text.as_bytes()) {
            return (path, at as u64);
        }
    }
    panic!("{text} is in no segment");
}

fn refused<T: std::fmt::Debug>(result: sessionlog::Result<T>) -> Error {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    error
}

#[test]
fn a_damaged_event_is_an_error_at_its_place_and_nothing_else_is_lost() {
    let sim = Sim::new(1);
    let store = small(&sim).open("/sim").unwrap();
    let (a, b) = (create(&store, "a"), create(&store, "b"));
    for n in 0..200 {
        append_waiting(&store, &a, &[user(&format!("a-{n}-{}", "x".repeat(500)))]);
        append_waiting(&store, &b, &[user(&format!("b-{n}"))]);
        store.flush().unwrap();
    }
    let (all, other) = (lines(a.events()), lines(b.events()));
    store.close().unwrap();
    let (path, at) = find(&sim, "a-77-");
    assert!(sim.disk.flip(&path, at + 100, 3));
    let store = small(&sim).open("/sim").unwrap();
    let reader = store.open("a").unwrap();
    let error = refused(reader.event(77));
    assert_eq!(error.path().unwrap().to_str(), Some(path.as_str()));
    let events: Vec<_> = reader.events().collect();
    assert_eq!(events.len(), 200);
    for (n, event) in events.into_iter().enumerate() {
        match event {
            Ok(event) => assert_eq!(event.to_line(), all[n]),
            Err(error) => assert_eq!((n, error.kind()), (77, ErrorKind::Corrupt)),
        }
    }
    refused(reader.derive_messages());
    assert_eq!(lines(store.open("b").unwrap().events()), other);
    assert_eq!(store.resume("b").unwrap().session.derive_messages().unwrap().len(), 200);
    create(&store, "c").append(user("new")).unwrap();
    store.flush().unwrap();
}

#[test]
fn a_child_of_a_damaged_parent_is_a_copy() {
    let sim = Sim::new(9);
    let store = small(&sim).open("/sim").unwrap();
    let parent = create(&store, "p");
    for n in 0..200 {
        append_waiting(&store, &parent, &[user(&format!("p-{n}-{}", "x".repeat(500)))]);
        store.flush().unwrap();
    }
    let events: Vec<_> = parent.events().map(Result::unwrap).collect();
    store.close().unwrap();
    let (path, at) = find(&sim, "p-77-");
    assert!(sim.disk.flip(&path, at + 100, 3));
    let store = small(&sim).open("/sim").unwrap();
    let header = Header::new("child", at_time(2)).unwrap().with_parent("p").with_seed_length(150);
    // The child's file has all of it, whatever became of its parent.
    for mut import in [store.rehearse_import(&header).unwrap(), store.import(header).unwrap()] {
        events.iter().for_each(|event| import.push(event).unwrap());
        assert_eq!(import.publish(Durability::Durable).unwrap(), Published::Created);
    }
    let spelled: Vec<_> = events.iter().map(Event::to_line).collect();
    assert_eq!(lines(store.open("child").unwrap().events()), spelled);
}

#[test]
fn a_session_that_is_not_whole_goes_on_only_when_the_loss_is_accepted() {
    let sim = Sim::new(2);
    let store = small(&sim).open("/sim").unwrap();
    let session = create(&store, "a");
    for n in 0..300 {
        append_waiting(
            &store,
            &session,
            &[turn_start(n + 1), user(&format!("a-{n}-{}", "x".repeat(500))), turn_end(n + 1)],
        );
        session.flush().unwrap();
    }
    let all = lines(session.events());
    store.close().unwrap();
    // A whole segment of the middle is gone.
    let (path, _) = find(&sim, "a-150-");
    assert!(sim.disk.remove(&path));
    let _ = sim.disk.remove(&path.replace(".seg", ".idx"));
    let store = small(&sim).open("/sim").unwrap();
    let reader = store.open("a").unwrap();
    refused(reader.event(451));
    refused(reader.derive_messages());
    refused(reader.closers());
    let error = refused(store.resume("a"));
    assert!(error.to_string().contains("accept_loss"), "{error}");
    assert!(store.get("a").is_none());
    let resumed = store.resume_with("a", ResumeOptions::new().accept_loss(true)).unwrap();
    let session = resumed.session;
    let seq = session.seq();
    assert!(seq >= 900, "{seq}");
    let kept = nodes(&session).len();
    assert!(kept > 100 && kept < 300, "{kept}");
    assert_eq!(session.derive_messages().unwrap().len(), kept);
    session.append(turn_start(1000)).unwrap();
    session.append(turn_end(1000)).unwrap();
    // What is readable is what it was, and the hole is still a hole.
    let mut readable = 0;
    let mut holes = 0;
    for event in session.events() {
        match event {
            Ok(event) => {
                readable += 1;
                if let Some(line) = all.get(usize::try_from(event.seq()).unwrap()) {
                    assert_eq!(&event.to_line(), line);
                }
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                holes += 1;
            }
        }
    }
    assert!(readable > 300 && holes > 0, "{readable} {holes}");
    store.close().unwrap();
    // Accepted is accepted, also in the next life.
    let store = small(&sim).open("/sim").unwrap();
    let again = store.resume("a").unwrap();
    assert_eq!((again.session.seq(), nodes(&again.session).len()), (seq + 2, kept));
    assert!(!store.stat("a").unwrap().damaged);
}

#[test]
fn a_lost_end_puts_in_doubt_what_it_may_have_held() {
    let sim = Sim::new(3);
    let store = small(&sim).open("/sim").unwrap();
    let (a, b) = (create(&store, "a"), create(&store, "b"));
    a.append_batch(vec![turn_start(1), user("a")]).unwrap();
    b.append_batch(vec![turn_start(1), user("b")]).unwrap();
    store.flush().unwrap();
    a.append(user("the-last-of-a")).unwrap();
    a.flush().unwrap();
    b.append(user("the-last-of-b")).unwrap();
    b.flush().unwrap();
    store.close().unwrap();
    // The frame that holds the last event of a, header and all.
    let (path, at) = find(&sim, "the-last-of-a");
    let start = at - at % 512;
    let frame = sim.disk.contents(&path).unwrap();
    let magic =
        frame[..usize::try_from(at).unwrap()].windows(4).rposition(|window| window == b"\xFFSLF").unwrap();
    assert!(sim.disk.overwrite(&path, magic as u64, &[0xAA; 64]), "{start}");
    let store = small(&sim).open("/sim").unwrap();
    assert!(!store.recovery().losses.is_empty(), "{:?}", store.recovery());
    // The event of b that stands behind proves b whole; a may have lost its last ones.
    assert_eq!(store.open("b").unwrap().seq(), 3);
    store.resume("b").unwrap();
    assert!(store.stat("a").unwrap().damaged);
    refused(store.resume("a"));
    refused(store.fork("a", sessionlog::ForkOptions::new().close_open_turn(true)));
    let resumed = store.resume_with("a", ResumeOptions::new().accept_loss(true)).unwrap();
    // No seq that a lost event may have had is used again.
    assert!(resumed.closers[0].seq() > 2, "{:?}", resumed.closers);
    assert!(resumed.session.event(2).is_err());
    resumed.session.append(user("on")).unwrap();
    assert_eq!(resumed.session.derive_messages().unwrap().len(), 2);
    let seq = resumed.session.seq();
    store.close().unwrap();
    let store = small(&sim).open("/sim").unwrap();
    let again = store.resume("a").unwrap();
    assert!(again.closers.is_empty());
    assert_eq!((again.session.seq(), again.session.derive_messages().unwrap().len()), (seq, 2));
}

/// A store of two segments; of the first one nothing is left but what the directory knows.
#[test]
fn a_session_whose_segment_is_gone_is_listed_as_damaged() {
    let sim = Sim::new(4);
    let store = small(&sim).open("/sim").unwrap();
    create(&store, "a").append_batch(vec![turn_start(1), user("a"), turn_end(1)]).unwrap();
    store.flush().unwrap();
    let sim = Sim::on(sim.disk.kill_writer(), 5);
    drop(store);
    let store = small(&sim).open("/sim").unwrap();
    sim.runtime.run_for(std::time::Duration::from_millis(50));
    store.close().unwrap();
    assert!(sim.disk.files().iter().any(|file| file.ends_with(".run")), "{:?}", sim.disk.files());
    assert!(sim.disk.remove("segments/00000001.seg") && sim.disk.remove("segments/00000001.idx"));
    let store = small(&sim).open("/sim").unwrap();
    let stats: Vec<_> = store.stored().unwrap().map(Result::unwrap).collect();
    assert_eq!(
        stats.iter().map(|stat| (&*stat.id, stat.events, stat.damaged)).collect::<Vec<_>>(),
        [("a", 3, true)]
    );
    refused(store.resume("a"));
}

/// Every record of the parent is gone, its first one too: no number of it is known any more.
#[test]
fn a_child_keeps_its_own_events_when_nothing_is_left_of_its_parent() {
    let sim = Sim::new(6);
    let store = small(&sim).open("/sim").unwrap();
    let parent = create(&store, "p");
    parent.append_batch(vec![turn_start(1), user("p"), turn_end(1)]).unwrap();
    store.flush().unwrap();
    let child = store.fork("p", sessionlog::ForkOptions::new().id("c")).unwrap();
    child.append_batch(vec![turn_start(2), user("c"), turn_end(2)]).unwrap();
    let own: Vec<_> = lines(child.events()).split_off(3);
    store.flush().unwrap();
    store.close().unwrap();
    assert!(sim.disk.overwrite("segments/00000001.seg", 512, &[0xAA; 200]));
    let store = small(&sim).open("/sim").unwrap();
    assert!(store.open("p").is_err());
    let events: Vec<_> = store.open("c").unwrap().events().collect();
    assert_eq!(refused_or_lines(events), own);
    refused(store.resume("c"));
    let resumed = store.resume_with("c", ResumeOptions::new().accept_loss(true)).unwrap();
    assert_eq!(resumed.session.seq(), 6);
}

/// The lines of the events that can be read; there has to be one that cannot.
fn refused_or_lines(events: Vec<sessionlog::Result<Event>>) -> Vec<String> {
    let (read, holes): (Vec<_>, Vec<_>) = events.into_iter().partition(Result::is_ok);
    assert!(!holes.is_empty());
    holes.into_iter().for_each(|hole| drop(refused(hole)));
    read.into_iter().map(|event| event.unwrap().to_line()).collect()
}
