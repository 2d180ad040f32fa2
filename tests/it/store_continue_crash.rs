//! Crashes, full disks and damage, where a stored session goes on under another number: the old session or the new one,
//! never between, and no record of a few bytes takes more than itself.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use sessionlog::testing::{SeededRuntime, SimDisk};
use sessionlog::{Durability, Event, ForkOptions, Loss, NewEvent, Published, SessionStore};

use crate::store_continue::{bring, header, ids, open, options, talk};
use crate::store_fixture::{Sim, create, lines, user};

/// A power cut and a kill at every disk call of an import: before, the session is the old one; after, the new one.
#[test]
fn a_crash_at_every_call_leaves_the_old_session_or_the_new_one() {
    let all = talk(120);
    let disk = SimDisk::new();
    let sim = Sim::on(disk.clone(), 12);
    let store = options(&sim).unflushed_bytes(4 << 10).open("/sim").unwrap();
    bring(&store, &header("s"), &all[..20]).unwrap();
    create(&store, "other").append(user("x")).unwrap();
    store.flush().unwrap();
    let kept: Arc<Mutex<Vec<SimDisk>>> = Arc::default();
    let list = Arc::clone(&kept);
    disk.on_call(move |_, op, disk| {
        if op.is_change() || op.is_sync() {
            list.lock().unwrap().push(disk.snapshot());
        }
    });
    let mut import = store.import(header("s")).unwrap();
    all.iter().for_each(|event| import.push(event).unwrap());
    import.publish(Durability::Durable).unwrap();
    disk.clear_on_call();
    let moments = std::mem::take(&mut *kept.lock().unwrap());
    let (mut old, mut new) = (0, 0);
    for (call, moment) in moments.iter().enumerate() {
        let crashed = (0..3).map(|seed| moment.crash(call as u64 * 3 + seed)).chain([moment.kill_writer()]);
        for crashed in crashed {
            let runtime = Arc::new(SeededRuntime::new(call as u64));
            let sim = Sim { disk: crashed, runtime };
            let read = options(&sim).open_read_only("/sim").unwrap();
            let before = read.stat("s").unwrap().events;
            drop(read);
            let store = open(&sim);
            let events = lines(store.open("s").unwrap().events());
            assert!([20, 120].contains(&events.len()), "call {call}: {} events", events.len());
            assert_eq!(before, events.len() as u64, "a reader sees what a writer finds");
            assert!(events.iter().zip(&all).all(|(line, event)| *line == event.to_line()));
            assert_eq!(ids(&store), ["s", "other"]);
            let stat = store.stat("s").unwrap();
            assert!(!stat.damaged && store.recovery().losses.is_empty());
            *(if events.len() == 20 { &mut old } else { &mut new }) += 1;
            assert!(bring(&store, &header("s"), &all).is_ok());
            assert_eq!(lines(store.open("s").unwrap().events()).len(), 120);
        }
    }
    println!("{} calls: {old} crashes left the old session, {new} the new one", moments.len());
    assert!(old > 10 && new > 0);
    let cut = open(&Sim::on(disk.crash(99), 13));
    assert_eq!(cut.stat("s").unwrap().events, 120, "what was published as durable is");
}

/// A full disk refuses it and takes nothing away.
#[test]
fn a_full_disk_refuses_it_whole() {
    let sim = Sim::new(14);
    let store = open(&sim);
    let all = talk(2000);
    bring(&store, &header("s"), &all[..10]).unwrap();
    sim.disk.set_free_space(Some(100 << 10));
    let error = bring(&store, &header("s"), &all).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert_eq!(lines(store.open("s").unwrap().events()).len(), 10);
    sim.disk.set_free_space(None);
    assert_eq!(bring(&store, &header("s"), &all).unwrap(), Published::Extended { from: 10 });
    store.close().unwrap();
    assert_eq!(open(&sim).stat("s").unwrap().events, 2000);
}

/// What the number from before holds is damaged later on: it is told as damage of the session, as ever.
#[test]
fn damage_in_what_was_there_before_is_told_of_the_session() {
    let sim = Sim::new(7);
    let store = open(&sim);
    let all = talk(400);
    bring(&store, &header("s"), &all[..150]).unwrap();
    bring(&store, &header("s"), &all).unwrap();
    store.close().unwrap();
    let bytes = sim.disk.contents("segments/00000001.seg").unwrap();
    let place = |words: &[u8]| bytes.windows(words.len()).position(|window| window == words).unwrap() as u64;
    assert!(sim.disk.flip("segments/00000001.seg", place(b"\"77 yyy"), 2));
    let store = open(&sim);
    let reader = store.open("s").unwrap();
    let mut lost = Vec::new();
    let read: Vec<u64> = reader
        .events()
        .filter_map(|event| event.map_err(|error| lost.push(error)).ok())
        .map(|event| event.seq())
        .collect();
    assert_eq!((read.len(), lost.len()), (399, 1), "{lost:?}");
    assert!(!read.contains(&77) && lost[0].is_corruption(), "{lost:?}");
    let mut findings = Vec::new();
    store.verify(&mut |finding| findings.push(finding)).unwrap();
    let found = findings.iter().find(|finding| finding.kind == "damage").unwrap();
    assert_eq!((found.session.as_deref(), found.from_seq, found.to_seq), (Some("s"), Some(77), Some(77)));
    // It is not imported into, and goes on once that is accepted.
    let error = bring(&store, &header("s"), &talk(500)).unwrap_err();
    assert!(error.is_corruption() && error.to_string().contains("\"s\""), "{error}");
    assert_eq!(store.stat("s").unwrap().events, 400);
}

/// A record of a few bytes must not take a session with it: the one that it begins with under its new number, or that
/// makes it visible. Nor must a frame that has both and all between.
#[test]
fn a_flipped_bit_takes_no_event_but_those_in_its_record_or_frame() {
    let all = talk(50);
    for unflushed in [2 << 10, 1 << 20] {
        let sim = Sim::new(8);
        let store = options(&sim).unflushed_bytes(unflushed).open("/sim").unwrap();
        for end in [10, 30, 49] {
            bring(&store, &header("s"), &all[..end]).unwrap();
        }
        // What is appended later says that it was published.
        store.resume("s").unwrap().session.append(NewEvent::from_event(all[49].clone())).unwrap();
        store.close().unwrap();
        let file = "segments/00000001.seg";
        let bytes = sim.disk.contents(file).unwrap();
        let length = bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64;
        let place = |event: &Event| {
            let text = event.data().as_str().as_bytes();
            bytes.windows(text.len()).position(|window| window == text).unwrap() as u64
        };
        let places: Vec<u64> = all.iter().map(place).collect();
        let starts = |at: u64| &bytes[usize::try_from(at).unwrap()..][..4];
        let mut damaged = 0;
        // Here and there, and at both ends of each frame: its header, and the records that begin and publish.
        let frames: Vec<u64> = (512..length).step_by(8).filter(|at| starts(*at) == starts(512)).collect();
        let ends = frames.iter().flat_map(|at| (at - 40..*at).step_by(3).chain([at + 20, at + 75, at + 100]));
        for at in (512..length).step_by(101).chain(ends.filter(|at| (512..length).contains(at))) {
            let hurt = Sim::on(sim.disk.snapshot(), at);
            hurt.disk.flip(file, at, (at % 8) as u32);
            let look = |store: &SessionStore| {
                let losses = &store.recovery().losses;
                let found: HashSet<String> = ids(store).iter().flat_map(|id| readable(store, id)).collect();
                for (event, place) in all.iter().zip(&places) {
                    let reached = |loss: &Loss| (loss.offset..loss.offset + loss.length).contains(place);
                    let is_there = found.contains(&data(event));
                    let reached = losses.iter().any(reached);
                    assert!(is_there || reached, "bit flipped at {at}: {} is gone; {losses:?}", event.seq());
                }
                losses.len()
            };
            let reader = look(&options(&hurt).open_read_only("/sim").unwrap());
            let store = open(&hurt);
            assert_eq!(look(&store), reader);
            store.close().unwrap();
            look(&open(&hurt));
            damaged += usize::from(reader > 0);
        }
        println!("{damaged} flipped bits told, {} frames", frames.len());
        assert!(damaged > 100 && frames.len() > 4, "{damaged}, {frames:?}");
    }
}

/// What can be read of a session.
fn readable(store: &SessionStore, id: &str) -> Vec<String> {
    store.open(id).unwrap().events().flatten().map(|event| data(&event)).collect()
}

fn data(event: &Event) -> String {
    format!("{} {}", event.seq(), event.data().as_str())
}

/// A child keeps what it holds itself when damage leaves nothing of its parent.
#[test]
fn a_fork_of_a_session_that_is_lost_keeps_its_own_events() {
    let sim = Sim::new(15);
    let store = open(&sim);
    create(&store, "p").append(user("a")).unwrap();
    store.flush().unwrap();
    let child = store.fork("p", ForkOptions::new().id("c")).unwrap();
    child.append(user("own")).unwrap();
    drop(child);
    store.close().unwrap();
    assert!(sim.disk.flip("segments/00000001.seg", 513, 0), "the header of the first frame");
    for store in [options(&sim).open_read_only("/sim").unwrap(), open(&sim)] {
        assert_eq!(ids(&store), ["c"]);
        let events: Vec<_> = store.open("c").unwrap().events().collect();
        assert_eq!(events.len(), 2);
        assert!(events[0].as_ref().unwrap_err().is_corruption(), "{events:?}");
        assert!(events[1].as_ref().unwrap().data().contains("own"));
    }
}

/// The same of a new session that was staged.
#[test]
fn a_flipped_bit_in_the_record_that_publishes_a_session_leaves_it_to_be_found() {
    let sim = Sim::new(9);
    let store = open(&sim);
    create(&store, "other").append(user("x")).unwrap();
    bring(&store, &header("s"), &talk(30)).unwrap();
    store.close().unwrap();
    let file = "segments/00000001.seg";
    let bytes = sim.disk.contents(file).unwrap();
    // Kind 5, no flags, session 2, and the length of that.
    let publish = bytes.windows(4).rposition(|window| window == [5, 0, 2, 3]).unwrap() as u64;
    assert!(sim.disk.flip(file, publish + 2, 0));
    for _ in 0..2 {
        let store = open(&sim);
        assert_eq!(lines(store.open("s").unwrap().events()).len(), 30);
        assert!(store.stat("s").unwrap().damaged, "whether it was whole is not proven");
        assert!(store.resume("s").unwrap_err().is_corruption());
        store.close().unwrap();
    }
    // One that was never published goes, as long as nothing is damaged.
    let sim = Sim::new(10);
    let store = open(&sim);
    let mut import = store.import(header("t")).unwrap();
    talk(30).iter().for_each(|event| import.push(event).unwrap());
    store.flush().unwrap();
    let cut = Sim::on(sim.disk.crash(1), 11);
    assert!(ids(&open(&cut)).is_empty());
}
