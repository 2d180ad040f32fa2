//! Readers in other processes beside a live writer (G8, D4), and appends beside a sync that hangs (C1).

use std::sync::Arc;

use sessionlog::rt::RealRuntime;
use sessionlog::testing::oracle::look;
use sessionlog::testing::workload::{Op, event, options};
use sessionlog::testing::{SeededRuntime, SimDisk, Workload};
use sessionlog::{CreateOptions, StoreOptions};

#[test]
fn a_follower_sees_every_acknowledged_event_across_rotations() {
    let disk = SimDisk::new();
    let seed = super::first_seed() + 8000;
    let mut workload = Workload::new(&disk, seed).unwrap();
    workload.run(&[Op::Create, Op::Append(20), Op::FlushAll]).unwrap();
    let runtime = Arc::new(SeededRuntime::new(seed));
    let follower = options(&disk.other_process(), &runtime).open_read_only("").unwrap();
    let mut looks = 0;
    for op in Workload::script(seed, 150) {
        if op == Op::Reopen {
            continue;
        }
        workload.step(op).unwrap();
        if matches!(op, Op::Flush | Op::FlushAll | Op::Idle(_)) {
            follower.refresh().unwrap();
            let model = workload.model.lock().clone();
            let sight = look(&follower, &model);
            assert!(sight.wrong.is_empty() && sight.lost.is_empty(), "after {op:?}: {sight:?}");
            assert!(sight.told.is_empty(), "after {op:?}: {:?}", sight.told);
            looks += 1;
        }
    }
    let segments = disk.files().iter().filter(|name| name.ends_with(".seg")).count();
    println!("a follower looked {looks} times over {segments} segments");
    assert!(segments > 1 && looks > 20);
}

#[test]
fn an_append_returns_while_a_sync_hangs() {
    let disk = SimDisk::new();
    let store = StoreOptions::new()
        .create(true)
        .disk(Arc::new(disk.clone()))
        .runtime(Arc::new(RealRuntime::default()))
        .open("")
        .unwrap();
    let session = store.create(CreateOptions::new().id("a")).unwrap();
    session.append(event(0, "first").unwrap().0).unwrap();
    disk.block_sync();
    std::thread::scope(|scope| {
        let flusher = scope.spawn(|| session.flush());
        disk.wait_until_sync_blocks();
        for seq in 1..500 {
            session.append(event(seq, "beside a sync").unwrap().0).unwrap();
        }
        assert_eq!(session.events().count(), 500, "and is visible at once");
        assert!(!flusher.is_finished());
        disk.release_sync();
        flusher.join().unwrap().unwrap();
    });
    store.close().unwrap();
}
