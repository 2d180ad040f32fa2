//! Stored sessions that get more from elsewhere than one batch holds: they go on under another number, and nobody sees
//! that. All of it appears at once or nothing does.

use std::sync::Arc;

use sessionlog::interop::import::import_file;
use sessionlog::interop::jsonl::{WriteOptions, export_session};
use sessionlog::testing::Random;
use sessionlog::{
    CreateOptions, Durability, ErrorKind, Event, ForkOptions, Header, NewEvent, Published, SessionReader,
    SessionStore, StoreOptions,
};

use crate::store_fixture::{
    Sim, assistant, at, chunk, create, lines, raw, replace, seed, step_end, step_start, texts, tool_call,
    turn_end, turn_start, user,
};

/// More than so many bytes are staged here.
const STAGED_PAST: usize = 2000;

pub(crate) fn options(sim: &Sim) -> StoreOptions {
    sim.options().staged_past(STAGED_PAST).segment_bytes(64 << 10)
}

pub(crate) fn open(sim: &Sim) -> SessionStore {
    options(sim).open("/sim").unwrap()
}

pub(crate) fn bring(
    store: &SessionStore,
    header: &Header,
    events: &[Event],
) -> sessionlog::Result<Published> {
    let mut import = store.import(header.clone())?;
    for event in events {
        import.push(event)?;
    }
    import.publish(Durability::Durable)
}

/// Messages of 300 bytes.
pub(crate) fn talk(count: usize) -> Vec<Event> {
    seed((0..count).map(|n| user(&format!("{n} {}", "y".repeat(300)))).collect())
}

pub(crate) fn header(id: &str) -> Header {
    Header::new(id, at(1)).unwrap()
}

/// Everything of a session that users can ask for; two that are the same for them give the same.
fn seen(store: &SessionStore, id: &str) -> Vec<String> {
    let reader = store.open(id).unwrap();
    let mut stat = store.stat(id).unwrap();
    stat.change_token.clear();
    let mut all = vec![format!("{stat:?}"), reader.header().to_line(), reader.seq().to_string()];
    all.extend(lines(reader.events()));
    all.extend(lines(reader.tail(7)));
    all.push(format!("{:?}", reader.surface().unwrap()));
    all.extend(texts(&reader.derive_messages().unwrap()));
    all.extend((0..reader.seq()).map(|seq| format!("{:?}", reader.provenance(seq).unwrap())));
    all.extend((0..reader.seq()).map(|seq| reader.event(seq).unwrap().to_line()));
    all.extend(reader.closers().unwrap().iter().map(Event::to_line));
    all.extend(store.repair_plan(id).unwrap().iter().map(Event::to_line));
    all.push(format!("{:?}", forks(store, id)));
    all
}

pub(crate) fn forks(store: &SessionStore, id: &str) -> Vec<String> {
    store.forks(id).unwrap().into_iter().map(|stat| format!("{} {}", stat.id, stat.events)).collect()
}

pub(crate) fn ids(store: &SessionStore) -> Vec<String> {
    store.stored().unwrap().map(|stat| stat.unwrap().id).collect()
}

/// Turns with chunks, calls, replacements and odd events, `count` of them, cut off anywhere.
fn history(random: &mut Random, count: usize) -> Vec<Event> {
    let mut events: Vec<NewEvent> = Vec::new();
    for turn in 1.. {
        events.extend([turn_start(turn), user(&format!("q{turn}")), step_start(turn, 1)]);
        let chunks = random.index(30);
        events.extend((0..chunks).map(|n| chunk(turn, 1, &format!(" word {n}"))));
        let call = format!("c{turn}");
        events.extend([assistant(turn, 1, &[&call]), tool_call(turn, 1, &call)]);
        if random.chance(1, 3) {
            let (from, to) = (events.len() as u64 - 2, events.len() as u64 - 2);
            events.push(replace(from, to, &[from]));
        }
        events.push(raw(
            "plugin/note",
            &format!(r#"{{"n":{turn}, "text":"{}"}}"#, "z".repeat(random.index(900))),
        ));
        if random.chance(4, 5) {
            events.extend([step_end(turn, 1), turn_end(turn)]);
        }
        if events.len() > count {
            break;
        }
    }
    events.truncate(count);
    seed(events)
}

/// From files, after a power cut, beside a writer, in a copy, rebuilt from the log alone, and when it goes on.
fn it_is_the_same_everywhere(round: u64, sims: &[Sim; 2], stores: [SessionStore; 2], expected: &[String]) {
    let [once, thrice] = stores;
    let children = thrice.forks("root").unwrap().len();
    let cut = Sim::on(sims[1].disk.crash(round), 7);
    assert_eq!(seen(&open(&cut), "s"), expected, "round {round}, after a power cut");
    assert_eq!(
        seen(&options(&Sim::on(sims[1].disk.other_process(), 8)).open_read_only("/sim").unwrap(), "s"),
        expected
    );
    let copy = Sim::new(9);
    thrice.backup_to(Arc::new(copy.disk.clone())).unwrap();
    assert_eq!(seen(&open(&copy), "s"), expected);
    once.close().unwrap();
    thrice.close().unwrap();
    let again = open(&sims[1]);
    assert_eq!((seen(&again, "s"), forks(&again, "root").len()), (expected.to_vec(), children));
    again.close().unwrap();
    for file in sims[1].disk.files() {
        if file.ends_with(".idx") || file.ends_with(".run") {
            assert!(sims[1].disk.remove(&file));
        }
    }
    let rebuilt = open(&sims[1]);
    assert_eq!(seen(&rebuilt, "s"), expected, "round {round}, rebuilt");
    let mut findings = Vec::new();
    let summary = rebuilt.verify(&mut |finding| findings.push(finding)).unwrap();
    assert_eq!((summary.findings, summary.sessions), (0, 6), "{findings:#?}");
    // It is resumed as if it had come at once: the same closers, and then the same events.
    let resumed = rebuilt.resume("s").unwrap();
    let other = open(&sims[0]);
    let again = other.resume("s").unwrap();
    assert_eq!(resumed.closers, again.closers);
    assert_eq!(
        resumed.session.append(user("on")).unwrap().seq,
        again.session.append(user("on")).unwrap().seq
    );
    assert_eq!(resumed.session.surface(), again.session.surface());
}

#[test]
fn a_session_that_was_extended_twice_is_the_one_that_came_at_once() {
    let mut staged = 0;
    for round in 0..12 {
        let mut random = Random::new(round);
        let all = history(&mut random, 300);
        let cuts = [60 + random.index(60), 160 + random.index(60)];
        // Of a session, and of one that is a child itself, also of one without an event of its own.
        let inherited = [0, 40, cuts[0]][usize::try_from(round % 3).unwrap()];
        let header = header("s").with_cwd("/w").unwrap();
        let header = if inherited > 0 {
            header.with_parent("root").with_seed_length(inherited as u64)
        } else {
            header
        };
        let sims = [Sim::new(round), Sim::new(round + 100)];
        let stores = [open(&sims[0]), open(&sims[1])];
        for (store, ends) in stores.iter().zip([&[300][..], &[cuts[0], cuts[1], 300]]) {
            bring(store, &self::header("root"), &all[..cuts[0]]).unwrap();
            create(store, "before").append(user("x")).unwrap();
            for (place, end) in ends.iter().enumerate() {
                let published = bring(store, &header, &all[..*end]).unwrap();
                match published {
                    Published::Extended { from } if place > 0 => assert_eq!(from, ends[place - 1] as u64),
                    Published::Forked { inherited: events, .. } if place == 0 => {
                        assert_eq!(events, inherited as u64);
                    }
                    Published::Created if place == 0 && inherited == 0 => {}
                    other => panic!("round {round}: {other:?}"),
                }
                if place == 0 {
                    create(store, "between");
                }
            }
            for (id, cut) in [("child", 30), ("late", 250)] {
                let child = all[..cut].iter().map(|event| NewEvent::from_event(event.clone()));
                let child = seed(child.chain([user("own")]).collect());
                let header = self::header(id).with_parent("s").with_seed_length(cut as u64);
                assert!(matches!(bring(store, &header, &child).unwrap(), Published::Forked { .. }));
            }
            store.flush().unwrap();
        }
        let [once, thrice] = &stores;
        let expected = seen(once, "s");
        assert_eq!(seen(thrice, "s"), expected, "round {round}");
        assert_eq!(ids(thrice), ["root", "before", "s", "between", "child", "late"], "round {round}");
        assert_eq!((forks(thrice, "s"), ids(once)), (forks(once, "s"), ids(thrice)));
        let numbers = |store: &SessionStore| store.stat("s").unwrap().change_token;
        staged += usize::from(numbers(thrice) != numbers(once));
        assert_eq!(forks(thrice, "root").len(), usize::from(inherited > 0));
        it_is_the_same_everywhere(round, &sims, stores, &expected);
    }
    assert_eq!(staged, 12, "every one of them went on under another number");
}

#[test]
fn what_is_given_up_or_refused_at_its_end_leaves_the_session_as_it_was() {
    let sim = Sim::new(1);
    let store = open(&sim);
    let all = talk(60);
    bring(&store, &header("s"), &all[..5]).unwrap();
    let before = (store.stat("s").unwrap(), seen(&store, "s"));
    for refused in [false, true] {
        let mut import = store.import(header("s")).unwrap();
        all[..50].iter().for_each(|event| import.push(event).unwrap());
        store.flush().unwrap();
        // Most of it is in the log by now; nobody sees it, whoever else looks included.
        assert_eq!((store.stat("s").unwrap(), seen(&store, "s")), before);
        assert_eq!(ids(&store), ["s"]);
        let cut = open(&Sim::on(sim.disk.crash(4), 9));
        assert_eq!((cut.stat("s").unwrap(), seen(&cut, "s")), before);
        // It is nobody else's meanwhile.
        assert_eq!(store.resume("s").unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(store.delete("s").unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(store.import(header("s")).unwrap_err().kind(), ErrorKind::Exists);
        if refused {
            import.push(&seed(vec![raw("x/y", "1")])[0]).unwrap_err();
            import.publish(Durability::Durable).unwrap_err();
        } else {
            drop(import);
        }
        assert_eq!((store.stat("s").unwrap(), seen(&store, "s")), before);
        store.resume("s").unwrap().session.detach();
    }
    assert_eq!(bring(&store, &header("s"), &all).unwrap(), Published::Extended { from: 5 });
    assert_eq!(lines(store.open("s").unwrap().events()), all.iter().map(Event::to_line).collect::<Vec<_>>());
    assert_eq!(bring(&store, &header("s"), &all).unwrap(), Published::Unchanged { stored: 60 });
    // A few more events are a plain batch: the number stays.
    let number =
        |store: &SessionStore| store.stat("s").unwrap().change_token.split('.').next().unwrap().to_owned();
    let (old, more) = (number(&store), talk(63));
    assert_eq!(bring(&store, &header("s"), &more).unwrap(), Published::Extended { from: 60 });
    assert_eq!(number(&store), old);
    // Live, it is not imported into.
    let session = store.resume("s").unwrap().session;
    assert_eq!(bring(&store, &header("s"), &talk(99)).unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(session.append(user("63")).unwrap().seq, 63);
}

/// A turn that is open where a session is continued, or where a child begins, is open behind what says nothing of turns.
#[test]
fn a_turn_that_was_open_before_is_open_still() {
    for depth in [1, 9] {
        let sim = Sim::new(13);
        let store = options(&sim).fork_depth(depth).open("/sim").unwrap();
        let mut all = vec![turn_start(1), user("go"), step_start(1, 1)];
        all.extend((0..60).map(|n| chunk(1, 1, &format!("{n} {}", "y".repeat(100)))));
        let all = seed(all);
        for end in [3, 30, 50] {
            bring(&store, &header("s"), &all[..end]).unwrap();
            assert!(store.stat("s").unwrap().open, "{end}");
        }
        let child = header("c").with_parent("s").with_seed_length(40);
        let published = bring(&store, &child, &all).unwrap();
        assert!(matches!(published, Published::Forked { .. }), "{published:?}");
        let open_ones = |store: &SessionStore| ["s", "c"].map(|id| store.stat(id).unwrap().open);
        assert_eq!(open_ones(&store), [true; 2]);
        let reader = options(&Sim::on(sim.disk.other_process(), 14)).open_read_only("/sim").unwrap();
        assert_eq!(open_ones(&reader), [true; 2]);
        store.close().unwrap();
        let store = open(&sim);
        assert_eq!(open_ones(&store), [true; 2]);
        assert_eq!(store.fork("s", ForkOptions::new()).unwrap_err().kind(), ErrorKind::OpenTurn);
        assert_eq!(store.resume("s").unwrap().closers.len(), 2);
        assert!(!store.stat("s").unwrap().open);
    }
}

/// The stored header stays, also the part of it that this version does not know.
#[test]
fn the_header_stays_the_stored_one() {
    let sim = Sim::new(2);
    let store = open(&sim);
    let stored = r#"{"type":"session","version":0,"createdAt":1,"id":"s","x":{"b":1,"a":2}}"#;
    let stored = Header::parse_line(stored).unwrap().0;
    bring(&store, &stored, &talk(3)).unwrap();
    let text = store.open("s").unwrap().header().to_line();
    for events in [40, 80] {
        bring(&store, &header("s"), &talk(events)).unwrap();
        assert_eq!(store.open("s").unwrap().header().to_line(), text);
    }
    assert_eq!(text, stored.to_line());
}

#[test]
fn deeper_than_references_may_go_the_events_are_copied() {
    let sim = Sim::new(3);
    let open = |sim: &Sim| options(sim).fork_depth(3).open("/sim").unwrap();
    let store = open(&sim);
    let all = talk(120);
    bring(&store, &header("s"), &all[..10]).unwrap();
    store.fork("s", ForkOptions::new().id("f0").at(4)).unwrap();
    let mut written = Vec::new();
    for end in (20..=120).step_by(10) {
        let before = store.counters().log.bytes_written;
        let mut import = store.import(header("s")).unwrap();
        all[..end].iter().for_each(|event| import.push(event).unwrap());
        store.flush().unwrap();
        let cut = open(&Sim::on(sim.disk.crash(end as u64), 9));
        assert_eq!(cut.stat("s").unwrap().events, end as u64 - 10);
        import.publish(Durability::Durable).unwrap();
        written.push(store.counters().log.bytes_written - before);
        store.fork("s", ForkOptions::new().id(format!("f{end}")).at(4)).unwrap();
        let other = Sim::new(77);
        let once = open(&other);
        bring(&once, &header("s"), &all[..end]).unwrap();
        let (mut seen, mut expected) = (seen(&store, "s"), seen(&once, "s"));
        let forks = seen.pop().unwrap();
        assert_eq!(forks.matches(" 5\"").count(), end / 10, "{forks}");
        expected.pop();
        assert_eq!(seen, expected, "{end}");
        assert_eq!(ids(&store)[0], "s");
        let after = open(&Sim::on(sim.disk.crash(end as u64), 9));
        assert_eq!(self::seen(&after, "s")[1..4], seen[1..4]);
    }
    // Every now and then all of it is written again.
    let copies = written.iter().filter(|bytes| **bytes > 8000).count();
    assert!((2..=5).contains(&copies), "{written:?}");
    store.delete("s").unwrap();
    assert_eq!(lines(store.open("f120").unwrap().events()).len(), 5);
    assert!(store.stat("s").unwrap_err().is_not_found());
}

#[test]
fn an_extended_session_is_deleted_as_a_whole_and_its_forks_stay() {
    for live in [false, true] {
        let sim = Sim::new(4);
        let store = open(&sim);
        let all = talk(90);
        for end in [5, 30, 60, 90] {
            bring(&store, &header("s"), &all[..end]).unwrap();
        }
        let child = store.fork("s", ForkOptions::new().id("c").at(70)).unwrap();
        if live {
            let session = store.resume("s").unwrap().session;
            store.delete("s").unwrap();
            assert!(session.append(user("a")).unwrap_err().is_closed());
        } else {
            store.delete("s").unwrap();
        }
        let gone = |store: &SessionStore| {
            assert!(store.stat("s").unwrap_err().is_not_found());
            assert_eq!(ids(store), ["c"]);
            assert_eq!(lines(store.open("c").unwrap().events()).len(), 71);
        };
        gone(&store);
        assert_eq!(child.append(user("own")).unwrap().seq, 71);
        child.detach();
        store.delete("c").unwrap();
        store.flush().unwrap();
        let cut = open(&Sim::on(sim.disk.crash(1), 5));
        assert!(ids(&cut).is_empty());
        // Its id is free, and a new session of it knows nothing of the old one.
        create(&store, "s").append(user("new")).unwrap();
        assert_eq!((store.stat("s").unwrap().events, forks(&store, "s").len()), (1, 0));
        store.close().unwrap();
        assert_eq!(open(&sim).stat("s").unwrap().events, 1);
    }
}

/// A fork that is being made of what the session was goes on, and one of what it is; neither may be deleted meanwhile.
#[test]
fn forks_beside_an_import_hold_what_they_refer_to() {
    let sim = Sim::new(5);
    let store = open(&sim);
    let all = talk(80);
    bring(&store, &header("s"), &all[..10]).unwrap();
    let mut import = store.import(header("s")).unwrap();
    all[..60].iter().for_each(|event| import.push(event).unwrap());
    let early = store.enter(store.prepare_fork("s", ForkOptions::new().id("early")).unwrap()).unwrap();
    let taken = store.fork("s", ForkOptions::new().id("taken")).unwrap();
    all[60..].iter().for_each(|event| import.push(event).unwrap());
    import.publish(Durability::Durable).unwrap();
    assert!(store.delete("s").unwrap_err().is_conflict());
    early.announce().unwrap();
    drop(early);
    assert_eq!(taken.append(user("own")).unwrap().seq, 10);
    assert_eq!(forks(&store, "s"), ["early 10", "taken 11"].map(str::to_owned));
    // A child that was continued itself is one child, in its place.
    let own: Vec<NewEvent> = all[..10].iter().map(|event| NewEvent::from_event(event.clone())).collect();
    let long =
        seed(own.into_iter().chain([user("own")]).chain((0..40).map(|_| user(&"w".repeat(300)))).collect());
    taken.detach();
    let header = store.open("taken").unwrap().header().clone();
    let mut import = store.import(header).unwrap();
    let kept: Vec<Event> = store.open("taken").unwrap().events().map(Result::unwrap).collect();
    kept.iter().chain(&long[11..]).for_each(|event| import.push(event).unwrap());
    import.publish(Durability::Durable).unwrap();
    assert_eq!(forks(&store, "s"), ["early 10", "taken 51"].map(str::to_owned));
    store.delete("s").unwrap();
    store.flush().unwrap();
    let cut = open(&Sim::on(sim.disk.crash(1), 6));
    assert_eq!(
        lines(cut.open("taken").unwrap().events())[..10],
        lines(cut.open("early").unwrap().events())[..]
    );
}

/// Who opened the session before keeps what was there, and finds what is new when it asks for that.
#[test]
fn readers_from_before_keep_what_they_saw_and_go_on_when_they_refresh() {
    let sim = Sim::new(6);
    let store = open(&sim);
    let all = talk(90);
    bring(&store, &header("s"), &all[..10]).unwrap();
    let other = options(&Sim::on(sim.disk.other_process(), 61)).open_read_only("/sim").unwrap();
    let mut readers = [store.open("s").unwrap(), other.open("s").unwrap()];
    let mut half_way: Vec<_> = readers.iter().map(SessionReader::events).collect();
    half_way.iter_mut().for_each(|events| drop(events.next().unwrap().unwrap()));
    for end in [50, 90] {
        bring(&store, &header("s"), &all[..end]).unwrap();
        assert!(other.refresh().unwrap());
        if end == 50 {
            for reader in &readers {
                assert_eq!((reader.seq(), lines(reader.events()).len()), (10, 10));
                assert_eq!(reader.surface().unwrap().len(), 10);
            }
            half_way.drain(..).for_each(|events| assert_eq!(lines(events).len(), 9));
        }
        for reader in &mut readers {
            assert!(reader.refresh().unwrap());
            assert!(!reader.refresh().unwrap());
            assert_eq!((reader.seq(), lines(reader.events()).len()), (end as u64, end));
            assert_eq!(reader.derive_messages().unwrap().len(), end);
        }
    }
    let [mut here, _] = readers;
    let mut late = store.open("s").unwrap();
    store.delete("s").unwrap();
    create(&store, "s").append(user("another")).unwrap();
    // Not the new session of that id.
    assert!(here.refresh().unwrap_err().is_not_found() && late.refresh().unwrap_err().is_not_found());
    assert_eq!(lines(here.events()).len(), 90);
}

/// Through files, and out again.
#[test]
fn files_that_grow_come_back_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let store = StoreOptions::new().staged_past(STAGED_PAST).open(folder.path().join("store")).unwrap();
    let mut random = Random::new(3);
    let all = history(&mut random, 400);
    let mut text = format!("{}\n", header("s").to_line());
    let file = folder.path().join("s.jsonl");
    for (from, to) in [(0, 90), (90, 200), (200, 400)] {
        all[from..to].iter().for_each(|event| text += &(event.to_line() + "\n"));
        std::fs::write(&file, &text).unwrap();
        import_file(&store, &file, Default::default()).unwrap();
        let out = folder.path().join(format!("out-{to}"));
        let written = export_session(&store, "s", &out, WriteOptions::default()).unwrap();
        assert!(std::fs::read_to_string(written.path).unwrap() == text, "{to}");
    }
    store.create(CreateOptions::new().id("t")).unwrap();
    assert_eq!(ids(&store), ["s", "t"]);
}
