//! Readers in other processes beside a live writer (G8, D4), and appends beside a sync that hangs (C1).

use std::sync::Arc;
use std::time::Duration;

use sessionlog::rt::RealRuntime;
use sessionlog::testing::oracle::look;
use sessionlog::testing::workload::{Op, event, open, options};
use sessionlog::testing::{SeededRuntime, SimDisk, Workload};
use sessionlog::{CreateOptions, SessionStore, StoreOptions};

use super::{Judged, Verdict, agrees, campaign, fails, worst_cut};

/// A follower across rotations: after each flush it sees all that is acknowledged, and what it has seen is still there
/// after a power cut that keeps nothing unsynced.
pub(crate) fn follower(seed: u64, judged: &mut Judged) -> Verdict {
    let what = "a follower";
    let disk = SimDisk::new();
    let mut workload = fails(Workload::new(&disk, seed), what)?;
    fails(workload.run(&[Op::Create, Op::Append(20), Op::FlushAll]), what)?;
    let runtime = Arc::new(SeededRuntime::new(seed));
    let follower = fails(options(&disk.other_process(), &runtime).open_read_only(""), what)?;
    for op in Workload::script(seed, 150).into_iter().filter(|op| *op != Op::Reopen) {
        fails(workload.step(op), what)?;
        // What nobody flushes reaches the cache, and the follower must not take it for durable.
        let drained = matches!(op, Op::Idle(_)) && seed.is_multiple_of(2);
        if drained {
            fails(workload.step(Op::Append(30)), what)?;
            workload.runtime.run_for(Duration::from_millis(3));
        }
        if drained || matches!(op, Op::Flush | Op::FlushAll | Op::Idle(_)) {
            fails(follower.refresh(), what)?;
            let model = workload.model.lock().clone();
            let sight = look(&follower, &model);
            let whole = sight.wrong.is_empty() && sight.lost.is_empty() && sight.told.is_empty();
            agrees(whole, || format!("{what}, after {op:?}: {sight:?}"))?;
            outlives(&follower, &worst_cut(&disk), &format!("{what}, after {op:?}"))?;
            *judged += 1;
        }
    }
    let segments = disk.files().iter().filter(|name| name.ends_with(".seg")).count();
    agrees(segments > 1, || format!("{what}: only {segments} segments"))
}

/// Everything that the follower shows is there after the cut.
fn outlives(follower: &SessionStore, cut: &SimDisk, what: &str) -> Verdict {
    let (store, _) = fails(open(cut, 3), what)?;
    for stat in fails(follower.stored(), what)? {
        let stat = fails(stat, what)?;
        let left = store.stat(&stat.id).map_or(0, |stat| stat.events);
        agrees(left >= stat.events, || {
            format!(
                "{what}: {} events of {} were shown, {left} are left by a power cut",
                stat.events, stat.id
            )
        })?;
    }
    Ok(())
}

#[test]
fn a_follower_sees_every_acknowledged_event_across_rotations_and_none_that_a_power_cut_takes() {
    campaign(8000, 20, "looks of a follower", follower);
    campaign(8001, 20, "looks of a follower", follower);
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
