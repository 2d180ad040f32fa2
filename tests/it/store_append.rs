//! A1 to A7 on a session in a store: what is refused leaves no trace, batches are whole, handles agree.

use std::sync::Arc;

use sessionlog::event::{AssistantChunk, Block, Chunk, Source, Text, TextDelta, TurnStart, UserMessage};
use sessionlog::testing::SimDisk;
use sessionlog::{CreateOptions, Durability, ErrorKind, Invariants, NewEvent, SurfaceOp};

use crate::store_fixture::{
    Sim, at, chunk, create, lines, nodes, raw, replace, threaded, threaded_options, turn_end, turn_start,
    user,
};

#[test]
fn an_append_is_visible_at_once_and_still_there_after_a_reopen() {
    let sim = Sim::new(1);
    let store = sim.open();
    let session = create(&store, "a");
    let first = session.append(user("hi").with_time(at(5))).unwrap();
    assert_eq!((first.seq, first.time), (0, at(5)));
    let second = session.append(raw("x/y", r#"{"n":1.50}"#)).unwrap();
    assert_eq!(second.seq, 1);
    assert_eq!((session.seq(), nodes(&session)), (2, vec![0]));
    assert_eq!(session.event(1).unwrap().data().as_str(), r#"{"n":1.50}"#);
    let before = lines(session.events());
    assert_eq!(session.durable_seq(), None);
    session.flush().unwrap();
    assert_eq!(session.durable_seq(), Some(1));
    store.close().unwrap();
    let store = sim.open();
    assert_eq!(lines(store.open("a").unwrap().events()), before);
}

#[test]
fn a_refused_append_changes_nothing() {
    let sim = Sim::new(2);
    let store = sim.open();
    let session = create(&store, "a");
    session.append_batch(vec![user("a"), user("b"), raw("x/y", "1")]).unwrap();
    let cases = [
        (raw("user/message", "{}"), ErrorKind::Marker),
        (raw("x/y", "{}").with_surface_op(SurfaceOp::Append), ErrorKind::Marker),
        (user("c").with_sources(vec![9]), ErrorKind::Sources),
        (user("c").with_sources(vec![0, 0]), ErrorKind::Sources),
        (replace(0, 9, &[0, 1]), ErrorKind::Replace),
        (replace(0, 1, &[0]), ErrorKind::Replace),
        (NewEvent::raw("t".repeat(1025), "1").unwrap(), ErrorKind::TooLarge),
    ];
    let before = lines(session.events());
    for (event, kind) in cases {
        assert_eq!(session.append(event.clone()).unwrap_err().kind(), kind);
        let batch = vec![user("x"), replace(0, 1, &[0, 1]), event];
        assert_eq!(session.append_batch(batch).unwrap_err().kind(), kind);
        assert_eq!((session.seq(), nodes(&session)), (3, vec![0, 1]));
    }
    assert_eq!(lines(session.events()), before);
    session.append(replace(0, 1, &[0, 1])).unwrap();
    assert_eq!(nodes(&session), [3]);
    store.close().unwrap();
    assert_eq!(sim.open().open("a").unwrap().seq(), 4);
}

#[test]
fn payloads_beyond_the_limit_are_refused_before_encoding() {
    let sim = Sim::new(3);
    let store = sim.open();
    let session = create(&store, "a");
    let big = format!("\"{}\"", "x".repeat(64 << 20));
    assert_eq!(session.append(raw("x/y", &big)).unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(session.seq(), 0);
    session.append(raw("x/y", "1")).unwrap();
}

#[test]
fn appends_with_an_expected_seq_conflict_when_the_session_moved_on() {
    let sim = Sim::new(4);
    let store = sim.open();
    let session = create(&store, "a");
    session.append_expecting(0, user("a")).unwrap();
    let error = session.append_expecting(0, user("b")).unwrap_err();
    assert!(error.is_conflict());
    assert!(error.to_string().contains("is at seq 1, not at the expected 0"), "{error}");
    assert_eq!(session.append_batch_expecting(1, vec![user("b"), user("c")]).unwrap(), 1..3);
    assert!(session.append_batch_expecting(1, vec![]).unwrap_err().is_conflict());
    assert_eq!(session.append_batch(vec![]).unwrap(), 3..3);
    assert_eq!((session.seq(), store.counters().conflicts), (3, 2));
}

#[test]
fn without_room_an_append_is_refused_and_nothing_is_lost() {
    let disk = SimDisk::new();
    let store = threaded_options(&disk).unflushed_bytes(64 << 10).open("/sim").unwrap();
    let session = create(&store, "a");
    store.flush().unwrap();
    disk.block_sync();
    // Somebody waits for a sync that does not come; what is accepted meanwhile has nowhere to go.
    let flusher = {
        let session = session.clone();
        session.append(user("first")).unwrap();
        std::thread::spawn(move || session.flush())
    };
    disk.wait_until_sync_blocks();
    let data = format!("\"{}\"", "x".repeat(8 << 10));
    let (mut accepted, error) = (1, loop_until_refused(&session, &data));
    assert!(error.is_backpressure(), "{error}");
    accepted += session.seq() - 1;
    let surface = nodes(&session);
    assert!(session.append_batch(vec![user("x"), raw("x/y", &data)]).unwrap_err().is_backpressure());
    assert_eq!((session.seq(), nodes(&session)), (accepted, surface));
    disk.release_sync();
    flusher.join().unwrap().unwrap();
    store.wait_for_room(9 << 10).unwrap();
    session.append(raw("x/y", &data)).unwrap();
    session.flush().unwrap();
    assert_eq!(session.durable_seq(), Some(accepted));
    assert_eq!(
        session.events().map(|event| event.unwrap().seq()).collect::<Vec<_>>(),
        (0..=accepted).collect::<Vec<_>>()
    );
}

fn loop_until_refused(session: &sessionlog::Session, data: &str) -> sessionlog::Error {
    for _ in 0..10_000 {
        if let Err(error) = session.append(raw("x/y", data)) {
            return error;
        }
    }
    panic!("10,000 appends of 8 KiB went through with 64 KiB of room");
}

#[test]
fn append_returns_while_the_disk_is_stuck() {
    let (disk, store) = threaded();
    let session = create(&store, "a");
    session.append(user("a")).unwrap();
    disk.block_sync();
    let flusher = {
        let session = session.clone();
        std::thread::spawn(move || session.flush())
    };
    disk.wait_until_sync_blocks();
    for n in 0..100 {
        session.append(chunk(1, 1, &n.to_string())).unwrap();
    }
    let other = create(&store, "b");
    other.append(user("b")).unwrap();
    assert_eq!((session.seq(), session.durable_seq()), (101, None));
    disk.release_sync();
    flusher.join().unwrap().unwrap();
    assert!(session.durable_seq() >= Some(0));
}

#[test]
fn many_threads_on_one_session_leave_no_gap() {
    let (_disk, store) = threaded();
    let session = create(&store, "a");
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let session = session.clone();
            std::thread::spawn(move || {
                let mut seqs = Vec::new();
                for n in 0..200 {
                    let event = user(&format!("{thread}-{n}"));
                    if n % 10 == 0 {
                        seqs.extend(session.append_batch(vec![event.clone(), event]).unwrap());
                        session.flush().unwrap();
                    } else {
                        seqs.push(session.append(event).unwrap().seq);
                    }
                }
                seqs
            })
        })
        .collect();
    let mut seqs: Vec<u64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (0..8 * 220).collect::<Vec<_>>());
    assert_eq!(nodes(&session).len(), 8 * 220);
    assert_eq!(session.events().count(), 8 * 220);
}

#[test]
fn typed_events_go_through_the_same_door() {
    let sim = Sim::new(5);
    let store = sim.open();
    let session = create(&store, "a");
    let start: TurnStart = serde_json::from_str(r#"{"turn":1,"trigger":{"kind":"continuation"}}"#).unwrap();
    session.append_event(&start).unwrap();
    let message = UserMessage::new(vec![Block::Text(Text::new("hi"))], Source::user());
    session.append_message(&message, SurfaceOp::Append, None).unwrap();
    let delta = AssistantChunk::new(1, 1, Chunk::TextDelta(TextDelta::new(0, "x")));
    session.append_event(&delta).unwrap();
    assert_eq!(session.event(1).unwrap().read::<UserMessage>().unwrap(), message);
    assert_eq!(session.event(2).unwrap().data().as_str(), chunk(1, 1, "x").data().as_str());
    assert_eq!(nodes(&session), [1]);
}

#[test]
fn invariants_are_reported_or_refused_as_asked() {
    let sim = Sim::new(6);
    let store = sim.options().invariants(Invariants::Report).open("/sim").unwrap();
    let session = create(&store, "a");
    session.append_batch(vec![turn_end(1), turn_start(1)]).unwrap();
    assert_eq!(store.counters().violations, 1);
    store.close().unwrap();
    let store = sim.options().invariants(Invariants::Refuse).open("/sim").unwrap();
    // The open turn is closed by the resume, so turn 2 is the next one.
    let session = store.resume("a").unwrap().session;
    let error = session.append(turn_start(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invariant);
    session.append(turn_start(2)).unwrap();
    assert_eq!(session.append(turn_start(3)).unwrap_err().kind(), ErrorKind::Invariant);
    assert_eq!(session.seq(), 4);
}

#[test]
fn durability_levels_are_not_confused() {
    let sim = Sim::new(7);
    let store = sim.open();
    let session = create(&store, "a");
    session.append(user("a")).unwrap();
    let syncs = store.counters().log.syncs;
    session.flush_to(Durability::Accepted).unwrap();
    session.flush_to(Durability::Written).unwrap();
    assert_eq!((session.durable_seq(), store.counters().log.syncs), (None, syncs));
    // Durable survives a power cut.
    session.flush_to(Durability::Durable).unwrap();
    assert_eq!(session.durable_seq(), Some(0));
    let crashed = Sim::on(sim.disk.crash(3), 71).open();
    assert_eq!(crashed.open("a").unwrap().seq(), 1);
    // Written survives the death of the process.
    session.append(user("b")).unwrap();
    session.flush_to(Durability::Written).unwrap();
    let killed = Sim::on(sim.disk.kill(), 70).open();
    assert_eq!(killed.open("a").unwrap().seq(), 2);
}

#[test]
fn a_poisoned_writer_keeps_reading_and_says_why() {
    let sim = Sim::new(8);
    let store = sim.open();
    let session = create(&store, "a");
    session.append(user("a")).unwrap();
    session.flush().unwrap();
    sim.disk.fail_from(sessionlog::testing::DiskOp::Sync, 1, std::io::ErrorKind::Other);
    session.append(user("b")).unwrap();
    session.flush().unwrap_err();
    assert!(session.append(user("c")).unwrap_err().is_poisoned());
    assert!(session.flush().unwrap_err().is_poisoned());
    assert!(store.create(CreateOptions::new().id("b")).unwrap_err().is_poisoned());
    assert!(store.get("b").is_none());
    assert_eq!((session.seq(), session.durable_seq()), (2, Some(0)));
    assert_eq!(lines(session.events()).len(), 2);
    assert!(store.fault().is_some());
}

#[test]
fn stores_sessions_and_reports_cross_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<sessionlog::SessionStore>();
    shared::<sessionlog::Session>();
    shared::<sessionlog::SessionReader>();
    shared::<sessionlog::MemorySession>();
    shared::<sessionlog::Events>();
    shared::<sessionlog::Stored>();
    shared::<sessionlog::Prepared>();
    shared::<sessionlog::DetachGuard>();
    shared::<sessionlog::Import>();
    shared::<sessionlog::Subscription>();
    shared::<sessionlog::FlushTicket>();
    shared::<Arc<sessionlog::RecoveryReport>>();
}
