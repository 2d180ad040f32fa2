//! R3 and S3: resuming closes what is open, once, and reads no more than it must.

use sessionlog::event::RepairState;
use sessionlog::{Event, SessionStore, StoreOptions};

use crate::store_fixture::{
    Sim, append_waiting, assistant, chunk, create, lines, nodes, open_turn, replace, step_end, step_start,
    texts, turn_end, turn_start, user,
};

/// The closers by a fold over everything.
fn folded(events: &[Event]) -> Vec<String> {
    let mut state = RepairState::default();
    events.iter().for_each(|event| state.observe(event));
    let Some(last) = events.last() else { return Vec::new() };
    state.closers(last.seq() + 1, last.time()).iter().map(Event::to_line).collect()
}

fn all(store: &SessionStore, id: &str) -> Vec<Event> {
    store.open(id).unwrap().events().map(Result::unwrap).collect()
}

#[test]
fn an_open_turn_is_closed_by_one_batch_and_only_once() {
    let sim = Sim::new(1);
    let store = sim.open();
    let session = create(&store, "a");
    session.append_batch(open_turn(3)).unwrap();
    session.flush().unwrap();
    let crashed = Sim::on(sim.disk.crash(1), 2);
    let store = crashed.open();
    let events = all(&store, "a");
    let expected = folded(&events);
    assert_eq!(expected.len(), 4);
    let plan: Vec<String> = store.repair_plan("a").unwrap().iter().map(Event::to_line).collect();
    assert_eq!(plan, expected);
    assert!(store.stat("a").unwrap().open);
    let resumed = store.resume("a").unwrap();
    assert_eq!(resumed.closers.iter().map(Event::to_line).collect::<Vec<_>>(), expected);
    let session = resumed.session;
    assert_eq!(session.seq(), 12);
    assert_eq!(lines(session.read_from(8)), expected);
    // The error results are on the surface, so the next request passes.
    assert_eq!(nodes(&session), [1, 6, 8, 9]);
    assert!(!store.stat("a").unwrap().open);
    session.append(turn_start(2)).unwrap();
    session.append(turn_end(2)).unwrap();
    session.close().unwrap();
    assert!(store.resume("a").unwrap().closers.is_empty());
    // Read-only opens write nothing and a balanced log is left alone.
    let records = store.counters().log.records;
    store.flush().unwrap();
    assert_eq!(store.counters().log.records, records);
}

#[test]
fn a_crash_before_the_closers_are_durable_repairs_to_the_same_log() {
    let sim = Sim::new(3);
    let store = sim.open();
    create(&store, "a").append_batch(open_turn(3)).unwrap();
    store.flush().unwrap();
    let first = Sim::on(sim.disk.crash(1), 4);
    let store = first.open();
    let once = store.resume("a").unwrap();
    let crashed = Sim::on(first.disk.crash(2), 5);
    let store = crashed.open();
    let twice = store.resume("a").unwrap();
    if twice.closers.is_empty() {
        assert_eq!(lines(twice.session.events()), lines(once.session.events()));
    } else {
        assert_eq!(twice.closers, once.closers);
    }
    assert_eq!(twice.session.seq(), 12);
}

#[test]
fn every_prefix_resumes_as_a_fold_over_it_would() {
    let sim = Sim::new(6);
    let store = sim.open();
    let mut events = open_turn(2);
    events.extend([step_end(1, 1), turn_end(1), turn_start(2), step_start(2, 1), assistant(2, 1, &["c9"])]);
    for cut in 0..=events.len() {
        let id = format!("s{cut}");
        let session = create(&store, &id);
        session.append_batch(events[..cut].to_vec()).unwrap();
        session.detach();
        let expected = folded(&all(&store, &id));
        let resumed = store.resume(&id).unwrap();
        assert_eq!(resumed.closers.iter().map(Event::to_line).collect::<Vec<_>>(), expected, "{cut}");
        assert!(store.repair_plan(&id).unwrap().is_empty());
    }
}

#[test]
fn a_closer_has_the_shape_of_the_last_message() {
    let sim = Sim::new(7);
    let store = sim.open();
    let session = create(&store, "a");
    let data = r#"{"turn":1,"step":1,"message":{"id":"m","role":"assistant","content":[{"type":"tool-call","id":"c","name":"ls","arguments":""}]}}"#;
    let message = crate::store_fixture::raw("assistant/message", data)
        .with_surface_op(sessionlog::SurfaceOp::Append)
        .with_sources(vec![]);
    session.append_batch(vec![turn_start(1), step_start(1, 1), message]).unwrap();
    session.detach();
    let resumed = store.resume("a").unwrap();
    assert!(
        resumed.closers[0].data().as_str().contains(r#""message":{"#),
        "{}",
        resumed.closers[0].to_line()
    );
}

/// 100,000 chunks and 10 messages in segments that are sealed.
fn long_session(options: &StoreOptions) {
    let store = options.clone().open("/sim").unwrap();
    let session = create(&store, "long");
    append_waiting(&store, &session, &[turn_start(1)]);
    for part in 0..10 {
        append_waiting(&store, &session, &[user(&part.to_string())]);
        for _ in 0..100 {
            let chunks: Vec<_> = (0..100).map(|n| chunk(1, 1, &format!(" w{n}"))).collect();
            append_waiting(&store, &session, &chunks);
        }
        session.flush().unwrap();
    }
    append_waiting(&store, &session, &[turn_end(1)]);
    // Enough behind it that every segment that holds the session is sealed.
    let filler = create(&store, "filler");
    for _ in 0..400 {
        append_waiting(&store, &filler, &[user(&"x".repeat(1000))]);
    }
    store.close().unwrap();
}

#[test]
fn resuming_a_long_session_decodes_its_messages_and_no_chunk() {
    let sim = Sim::new(8);
    let options = sim.options().segment_bytes(256 << 10);
    long_session(&options);
    let store = options.open("/sim").unwrap();
    let before = store.counters().log.decoded_records;
    let session = store.resume("long").unwrap().session;
    assert_eq!(nodes(&session).len(), 10);
    assert_eq!(session.derive_messages().unwrap().len(), 10);
    let decoded = store.counters().log.decoded_records - before;
    assert!(decoded <= 10, "{decoded} records were decoded");
    // A second derivation decodes nothing, and one more message one.
    session.derive_messages().unwrap();
    session.append(user("more")).unwrap();
    session.derive_messages().unwrap();
    let again = store.counters().log.decoded_records - before - decoded;
    assert!(again <= 1, "{again} more records were decoded");
    // The last ten events cost about ten records, also at the end of 100,000.
    let before = store.counters().log.decoded_records;
    assert_eq!(session.tail(10).count(), 10);
    let decoded = store.counters().log.decoded_records - before;
    assert!(decoded <= 20, "{decoded} records were decoded");
}

#[test]
fn a_reader_sees_what_the_session_sees() {
    let sim = Sim::new(9);
    let store = sim.open();
    let session = create(&store, "a");
    session.append_batch((0..6).map(|n| user(&n.to_string())).collect()).unwrap();
    session.append(replace(1, 3, &[1, 2, 3])).unwrap();
    session.append(replace(6, 4, &[4, 6])).unwrap();
    session.append(user("7").with_sources(vec![6, 0])).unwrap();
    let mut reader = store.open("a").unwrap();
    assert_eq!(reader.surface().unwrap(), session.surface());
    let messages = reader.derive_messages().unwrap();
    assert_eq!(texts(&messages), texts(&session.derive_messages().unwrap()));
    for seq in 0..session.seq() {
        assert_eq!(reader.provenance(seq).unwrap(), session.provenance(seq).unwrap());
    }
    let provenance = session.provenance(6).unwrap();
    assert_eq!((provenance.sources, provenance.derived), (vec![1, 2, 3], vec![7, 8]));
    assert_eq!((provenance.shadows, provenance.shadowed_by), (vec![1, 2, 3], Some(7)));
    assert!(!reader.refresh().unwrap());
    session.append(user("8")).unwrap();
    assert_eq!(reader.seq(), 9);
    assert!(reader.refresh().unwrap());
    assert_eq!(reader.surface().unwrap(), session.surface());
    assert_eq!(lines(reader.read_from(8)), lines(session.tail(2)));
    assert!(reader.event(10).unwrap_err().is_not_found());
}
