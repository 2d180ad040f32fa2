//! Interleavings inside the short locks (T4), chosen by shuttle: writer token, wake-up words, reservation.
//!
//! The code is the engine's own, unchanged: its runtime seam, the disk's hook, and the points before its looks at what
//! threads share are where shuttle takes over. Always: all that shuttle can choose is sequentially consistent; what weaker
//! memory orders allow is not tried. A wake-up that is lost shows as a deadlock.

mod runtime;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sessionlog::rt::at_points;
use sessionlog::testing::workload::event;
use sessionlog::testing::{DiskOp, SimDisk};
use sessionlog::{CreateOptions, SessionStore, StoreOptions};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};

use crate::crash::{Judged, Verdict, holds, rounds};
use runtime::Chosen;

const THREADS: usize = 3;
const SEGMENT: usize = 64 << 10;

fn open(disk: &SimDisk, runtime: &Chosen, unflushed: usize) -> SessionStore {
    StoreOptions::new()
        .create(true)
        .segment_bytes(SEGMENT as u64)
        .unflushed_bytes(unflushed)
        .disk(Arc::new(disk.clone()))
        .runtime(Arc::new(runtime.clone()))
        .open("")
        .unwrap()
}

fn text(thread: usize, number: usize) -> String {
    format!("event {number} of thread {thread}.")
}

fn segments(disk: &SimDisk) -> Vec<String> {
    disk.files().into_iter().filter(|file| file.ends_with(".seg")).collect()
}

fn is_durable(disk: &SimDisk, text: &str) -> bool {
    segments(disk)
        .iter()
        .filter_map(|file| disk.durable_contents(file))
        .any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

/// Threads that append and flush, each to a session of its own. What a flush acknowledged is durable when it returns.
fn flushes(unflushed: usize, length: usize) {
    let (disk, runtime) = (SimDisk::new(), Chosen::default());
    runtime.enter();
    let store = open(&disk, &runtime, unflushed);
    disk.on_call(|_, op, _| {
        if op.is_change() || op.is_sync() {
            Chosen::point();
        }
    });
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let (store, disk) = (store.clone(), disk.clone());
            thread::spawn(move || {
                let session = store.create(CreateOptions::new().id(number.to_string())).unwrap();
                for seq in 0..2 {
                    let text = format!("{}{}", text(number, seq), "x".repeat(length));
                    let (event, _) = event(seq, &text).unwrap();
                    while let Err(error) = session.append(event.clone()) {
                        assert!(error.is_backpressure(), "{error}");
                        store.wait_for_room(event.data().len()).unwrap();
                    }
                    session.flush().unwrap();
                    assert!(is_durable(&disk, &text), "acknowledged and not durable: {text:.30}");
                }
                Chosen::point();
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    for file in segments(&disk) {
        assert!(disk.contents(&file).unwrap().len() <= SEGMENT, "{file} is written beyond what was prepared");
    }
    for number in 0..THREADS {
        assert_eq!(store.open(&number.to_string()).unwrap().events().flatten().count(), 2);
    }
    store.close().unwrap();
}

/// The leader's write panics once. Everybody who waits is told, and so is everybody who comes later.
fn unwinding() {
    let (disk, runtime) = (SimDisk::new(), Chosen::default());
    runtime.enter();
    let store = open(&disk, &runtime, 1 << 20);
    let sessions: Vec<_> = (0..THREADS)
        .map(|number| store.create(CreateOptions::new().id(number.to_string())).unwrap())
        .collect();
    store.flush().unwrap();
    let fallen = Arc::new(AtomicBool::new(false));
    let once = Arc::clone(&fallen);
    disk.on_call(move |_, op, _| {
        Chosen::point();
        if op == DiskOp::Write && !once.swap(true, Ordering::SeqCst) {
            std::panic::resume_unwind(Box::new("the leader falls"));
        }
    });
    let threads: Vec<_> = sessions
        .into_iter()
        .enumerate()
        .map(|(number, session)| {
            let runtime = runtime.clone();
            thread::spawn(move || {
                if let Err(error) = session.append(event(0, &text(number, 0)).unwrap().0) {
                    assert!(error.is_poisoned(), "{error}");
                }
                let flushed = catch_unwind(AssertUnwindSafe(|| session.flush()));
                runtime.step();
                match flushed {
                    Err(_) => true,
                    Ok(told) => {
                        let error = told.expect_err("nothing is acknowledged after a leader has unwound");
                        assert!(error.is_poisoned(), "{error}");
                        false
                    }
                }
            })
        })
        .collect();
    let unwound = threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|fell| *fell).count();
    assert!(unwound <= 1);
    assert!(fallen.load(Ordering::SeqCst));
    assert!(store.close().is_err());
}

fn explore(scheduler: impl Scheduler + 'static, judged: &mut Judged, run: fn()) -> Verdict {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::FailAfter(100_000);
    config.failure_persistence = shuttle::FailurePersistence::None;
    let count = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&count);
    let tried = catch_unwind(AssertUnwindSafe(|| {
        at_points(Chosen::point, || {
            Runner::new(scheduler, config).run(move || {
                counter.fetch_add(1, Ordering::SeqCst);
                run();
            })
        })
    }));
    *judged += count.load(Ordering::SeqCst);
    tried.map(drop).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}

/// So many interleavings by chance, and as many with few changes of who goes first (PCT, depth 3).
fn both(seed: u64, count: usize, judged: &mut Judged, run: fn()) -> Verdict {
    explore(RandomScheduler::new_from_seed(seed, count), judged, run)?;
    explore(PctScheduler::new_from_seed(seed, 3, count), judged, run)
}

pub(crate) fn commits(seed: u64, judged: &mut Judged) -> Verdict {
    both(seed, 250, judged, || flushes(1 << 20, 10))
}

/// The bound of unflushed bytes lets one event in at a time: threads wait for room.
pub(crate) fn rooms(seed: u64, judged: &mut Judged) -> Verdict {
    both(seed, 100, judged, || flushes(700, 500))
}

/// More than a segment holds: threads append around a rotation, into reserved space alone.
pub(crate) fn reservations(seed: u64, judged: &mut Judged) -> Verdict {
    both(seed, 20, judged, || flushes(1 << 20, 12_000))
}

pub(crate) fn fallen_leaders(seed: u64, judged: &mut Judged) -> Verdict {
    both(seed, 100, judged, unwinding)
}

fn campaign(what: &str, run: fn(u64, &mut Judged) -> Verdict) {
    let mut judged = 0;
    (0..rounds()).for_each(|round| holds(run(1 + round, &mut judged)));
    println!("{what}: {judged} interleavings");
}

#[test]
fn threads_that_flush_are_all_woken_and_what_they_are_told_is_durable() {
    campaign("flushes", commits);
}

#[test]
fn threads_that_wait_for_room_all_get_it() {
    campaign("waits for room", rooms);
}

#[test]
fn threads_that_fill_a_segment_stay_in_prepared_space() {
    campaign("rotations", reservations);
}

#[test]
fn a_leader_that_unwinds_stops_the_writer_and_everybody_is_told() {
    campaign("unwinding leaders", fallen_leaders);
}
