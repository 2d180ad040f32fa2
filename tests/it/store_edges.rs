//! What happens at the edges: a full disk, a forked process, batches beyond every bound, and one seed twice.

use std::sync::Arc;

use sessionlog::testing::{SeededRuntime, SimDisk};
use sessionlog::{CreateOptions, ErrorKind, ForkOptions, SessionStore, StoreOptions};

use crate::store_fixture::{
    Sim, append_waiting, chunk, create, lines, nodes, open_turn, raw, seed, texts, turn_end, turn_start, user,
};

#[test]
fn a_fork_that_would_read_through_too_many_sessions_is_a_copy() {
    let sim = Sim::new(1);
    let store = sim.options().fork_depth(3).unflushed_bytes(256 << 10).open("/sim").unwrap();
    let text = "z".repeat(30 << 10);
    let first = create(&store, "f0");
    append_waiting(&store, &first, &(0..50).map(|_| user(&text)).collect::<Vec<_>>());
    for n in 1..=8 {
        store.flush().unwrap();
        let before = store.counters().log.bytes_written;
        let child = store.fork(&format!("f{}", n - 1), ForkOptions::new().id(format!("f{n}"))).unwrap();
        store.flush().unwrap();
        // One in four is a copy, staged because it is large; it starts a new lineage.
        let written = store.counters().log.bytes_written - before;
        assert_eq!(written > 1_000_000, n % 4 == 0, "{n}: {written}");
        assert_eq!(child.header().seed_length(), Some(49 + n));
        child.append(user(&n.to_string())).unwrap();
    }
    let expected = lines(store.get("f8").unwrap().events());
    assert_eq!(expected.len(), 58);
    assert_eq!(expected[..50], lines(store.get("f0").unwrap().events()));
    for n in 0..8 {
        store.delete(&format!("f{n}")).unwrap();
    }
    store.close().unwrap();
    let store = sim.open();
    let session = store.resume("f8").unwrap().session;
    assert_eq!(lines(session.events()), expected);
    assert_eq!(texts(&session.derive_messages().unwrap()).len(), 58);
}

#[test]
fn a_batch_above_the_unflushed_bound_is_taken_when_nothing_else_waits() {
    let sim = Sim::new(2);
    let store = sim.options().unflushed_bytes(64 << 10).open("/sim").unwrap();
    let session = create(&store, "a");
    let batch: Vec<_> = (0..40).map(|_| raw("x/y", &format!("\"{}\"", "x".repeat(100 << 10)))).collect();
    append_waiting(&store, &session, &batch);
    append_waiting(&store, &session, &[user("b")]);
    session.flush().unwrap();
    assert_eq!(session.events().map(Result::unwrap).count(), 41);
    let beyond: Vec<_> = (0..129).map(|_| raw("x/y", &format!("\"{}\"", "x".repeat(1 << 20)))).collect();
    let error = session.append_batch(beyond).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert_eq!(session.seq(), 41);
}

#[test]
fn a_full_disk_refuses_what_does_not_fit_and_nothing_else() {
    let sim = Sim::new(3);
    let store = sim.options().segment_bytes(1 << 20).open("/sim").unwrap();
    let (session, other) = (create(&store, "a"), create(&store, "b"));
    session.append(user("first")).unwrap();
    store.flush().unwrap();
    sim.disk.set_free_space(Some(0));
    let data = format!("\"{}\"", "x".repeat(30 << 10));
    let mut error = None;
    for _ in 0..2000 {
        match session.append(raw("x/y", &data)) {
            Ok(_) => {}
            Err(refused) if refused.is_backpressure() => {
                if let Err(full) = store.wait_for_room(31 << 10) {
                    error = Some(full);
                    break;
                }
            }
            Err(refused) => {
                error = Some(refused);
                break;
            }
        }
    }
    let error = error.unwrap();
    assert!(error.is_full(), "{error}");
    let seq = session.seq();
    assert!(
        store
            .create(
                CreateOptions::new()
                    .id("c")
                    .seed(seed((0..40).map(|_| user(&"y".repeat(30 << 10))).collect()))
            )
            .unwrap_err()
            .is_full()
    );
    assert!(store.get("c").is_none());
    assert!(store.stat("c").unwrap_err().is_not_found());
    // Reading, deleting and flushing what was accepted go on.
    assert_eq!(session.events().map(Result::unwrap).count() as u64, seq);
    store.delete("b").unwrap();
    assert!(other.append(user("x")).unwrap_err().is_closed());
    store.flush().unwrap();
    assert_eq!(session.durable_seq(), seq.checked_sub(1));
    // And so do appends once there is space.
    sim.disk.set_free_space(None);
    append_waiting(&store, &session, &[raw("x/y", &data)]);
    store.close().unwrap();
    let store = sim.open();
    assert_eq!(store.stat("a").unwrap().events, seq + 1);
    assert!(store.stat("b").unwrap_err().is_not_found());
}

#[test]
fn a_forked_child_gets_a_typed_error_and_its_drop_does_nothing() {
    let sim = Sim::new(4);
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let slot = Arc::clone(&told);
    let options = sim.options().on_close_error(move |error| slot.lock().unwrap().push(error.clone()));
    let store = options.open("/sim").unwrap();
    let session = create(&store, "a");
    session.append(user("a")).unwrap();
    session.flush().unwrap();
    let calls = sim.disk.calls();
    sim.runtime.set_process_id(99_999);
    for error in [
        session.append(user("child")).unwrap_err(),
        session.flush().unwrap_err(),
        store.create(CreateOptions::new().id("b")).unwrap_err(),
        store.flush().unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Forked, "{error}");
    }
    drop(session);
    drop(store);
    assert!(told.lock().unwrap().is_empty(), "{told:?}");
    let writes = sim.disk.trace().split_off(usize::try_from(calls).unwrap());
    assert!(writes.iter().all(|call| !call.contains("write") && !call.contains("sync")), "{writes:?}");
}

/// A day in the life of a store.
fn workload(disk: &SimDisk, runtime: &Arc<SeededRuntime>) -> SessionStore {
    let options = StoreOptions::new().disk(Arc::new(disk.clone())).runtime(runtime.clone());
    let store = options.segment_bytes(64 << 10).open("/sim").unwrap();
    store.on_flush(|_| Ok(()));
    store.on_flush(|_| Ok(()));
    for n in 0..6 {
        let session = store.create(CreateOptions::new()).unwrap();
        append_waiting(&store, &session, &[turn_start(1), user(&"x".repeat(5000)), turn_end(1)]);
        append_waiting(&store, &session, &open_turn(20)[1..]);
        match n % 3 {
            0 => session.flush().unwrap(),
            1 => session.close().unwrap(),
            _ => drop(store.fork(session.id(), ForkOptions::new().at(2)).unwrap()),
        }
    }
    runtime.run_for(std::time::Duration::from_millis(50));
    store
}

#[test]
fn one_seed_twice_gives_one_trace() {
    let run = |seed| {
        let (disk, runtime) = (SimDisk::new(), Arc::new(SeededRuntime::new(seed)));
        let store = workload(&disk, &runtime);
        let sessions: Vec<_> = store.stored().unwrap().map(Result::unwrap).collect();
        store.close().unwrap();
        (sessions, disk.trace(), runtime.trace())
    };
    let (first, second, other) = (run(7), run(7), run(8));
    assert_eq!(first.0, second.0);
    assert!(first.1 == second.1, "the disk saw different calls");
    assert!(first.2 == second.2, "the tasks ran differently");
    assert!(first.2 != other.2 || first.0 != other.0, "the seed makes no difference");
}

#[test]
fn a_power_cut_at_any_call_leaves_whole_sessions() {
    // Every call of the workload that changes something, each with a few choices of what the disk kept.
    let runtime = Arc::new(SeededRuntime::new(11));
    let disk = SimDisk::new();
    let snapshots = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&snapshots);
    disk.on_call(move |n, op, disk| {
        if op.is_change() || op.is_sync() {
            log.lock().unwrap().extend((0..4).map(|kept| disk.crash(4 * n + kept)));
        }
    });
    let store = workload(&disk, &runtime);
    disk.clear_on_call();
    let whole: std::collections::HashMap<String, Vec<String>> =
        store.list().iter().map(|session| (session.id().to_owned(), lines(session.events()))).collect();
    drop(store);
    let snapshots = std::mem::take(&mut *snapshots.lock().unwrap());
    assert!(snapshots.len() > 100, "{}", snapshots.len());
    for (n, disk) in snapshots.into_iter().enumerate() {
        let sim = Sim::on(disk, 1000 + n as u64);
        let store = sim.open();
        assert!(store.recovery().losses.is_empty(), "{n}: {:?}", store.recovery());
        let stats: Vec<_> = store.stored().unwrap().map(Result::unwrap).collect();
        for stat in stats {
            let events = lines(store.open(&stat.id).unwrap().events());
            assert_eq!(events.len() as u64, stat.events);
            if let Some(all) = whole.get(&stat.id) {
                assert_eq!(events, all[..events.len()], "{n}");
                // Batches are whole: the first has three events, the second all the others.
                assert!([0, 3, all.len()].contains(&events.len()), "{n}: {}", events.len());
            }
            let resumed = store.resume(&stat.id).unwrap();
            resumed.session.append(chunk(1, 1, "on")).unwrap();
            assert_eq!(resumed.session.derive_messages().unwrap().len(), nodes(&resumed.session).len());
        }
        store.close().unwrap();
    }
}

/// G5: a flush behind a failed write says so even where all of the session is durable already.
#[test]
fn a_poisoned_store_refuses_every_flush_also_of_what_is_durable() {
    let sim = Sim::new(9);
    let store = sim.open();
    let (durable, other) = (create(&store, "durable"), create(&store, "other"));
    durable.append(user("a")).unwrap();
    store.flush().unwrap();
    durable.flush().unwrap();
    let ticket = durable.flush_ticket().unwrap();
    sim.disk.fail_nth(sessionlog::testing::DiskOp::Sync, 1, std::io::ErrorKind::Other);
    other.append(user("b")).unwrap();
    assert!(other.flush().unwrap_err().is_poisoned());
    for refused in [
        durable.flush(),
        durable.flush_to(sessionlog::Durability::Written),
        durable.flush_ticket().map(drop),
        store.flush(),
        store.flush_to(sessionlog::Durability::Durable),
        store.flush_ticket().map(drop),
    ] {
        assert!(refused.unwrap_err().is_poisoned());
    }
    ticket.wait().expect("what was durable before the failure was acknowledged rightly");
    assert_eq!(lines(durable.events()).len(), 1);
}
