use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::{Ran, Scheduler};
use crate::disk::Disk;
use crate::rt::{Runtime, Step, Task, TaskHandle};
use crate::testing::SimDisk;

struct Fn<F>(F);

impl<F: FnMut() -> Step + Send> Task for Fn<F> {
    fn step(&mut self) -> Step {
        (self.0)()
    }
}

fn spawn(scheduler: &Scheduler, step: impl FnMut() -> Step + Send + 'static) -> TaskHandle {
    scheduler.spawn("task", Box::new(Fn(step))).unwrap()
}

fn run<T: Send + 'static>(seed: u64, body: impl FnOnce(&Scheduler) -> T + Send + 'static) -> Ran<T> {
    let scheduler = Scheduler::new(seed);
    let inside = scheduler.clone();
    scheduler.run(move || body(&inside))
}

/// Three actors that note their turns.
fn interleaved(seed: u64) -> Ran<Vec<u32>> {
    run(seed, |scheduler| {
        let order = Arc::new(Mutex::new(Vec::new()));
        let actors: Vec<_> = (0..3)
            .map(|who| {
                let (order, inside) = (Arc::clone(&order), scheduler.clone());
                scheduler.spawn_actor("actor", move || {
                    for _ in 0..5 {
                        order.lock().push(who);
                        inside.yield_now();
                    }
                })
            })
            .collect();
        actors.into_iter().for_each(|actor| actor.join().unwrap());
        Arc::try_unwrap(order).unwrap().into_inner()
    })
}

#[test]
fn one_seed_twice_is_one_order_and_seeds_differ() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..60 {
        let (first, second) = (interleaved(seed), interleaved(seed));
        assert_eq!((first.value.clone(), first.trace_hash), (second.value, second.trace_hash));
        assert_eq!(first.failure, None);
        seen.insert(first.value.unwrap());
    }
    assert!(seen.len() > 50, "{}", seen.len());
}

#[test]
fn waits_end_by_wake_ups_and_one_that_is_missing_is_found() {
    for (seed, wakes) in (0..40).map(|seed| (seed, seed % 2 == 0)) {
        let ran = run(seed, move |scheduler| {
            let word = Arc::new(AtomicU32::new(0));
            let (seen, inside) = (Arc::clone(&word), scheduler.clone());
            let actor = scheduler.spawn_actor("waiter", move || {
                while seen.load(Ordering::SeqCst) == 0 {
                    inside.wait(&seen, 0);
                }
            });
            scheduler.sleep(Duration::from_millis(1));
            word.store(1, Ordering::SeqCst);
            if wakes {
                scheduler.wake_all(&word);
            }
            actor.join().unwrap();
        });
        // Now and then a wait ends for no reason, and then nothing is missing.
        match &ran.failure {
            None => assert!(ran.value.is_some()),
            Some(text) => {
                assert!(
                    !wakes && text.contains("nothing can end this run") && text.contains("waiter"),
                    "{text}"
                );
            }
        }
        assert!(!wakes || ran.failure.is_none(), "seed {seed}");
    }
    let missing = (0..40).filter(|seed| {
        let ran = run(*seed, |scheduler| scheduler.wait(&AtomicU32::new(0), 0));
        ran.failure.is_some()
    });
    assert!(missing.count() > 30);
}

#[test]
fn one_is_woken_by_wake_one() {
    let ran = run(3, |scheduler| {
        let (word, woken) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let actors: Vec<_> = (0..3)
            .map(|_| {
                let (word, woken, inside) = (Arc::clone(&word), Arc::clone(&woken), scheduler.clone());
                scheduler.spawn_actor("waiter", move || {
                    while word.load(Ordering::SeqCst) == 0 {
                        inside.wait(&word, 0);
                    }
                    woken.fetch_add(1, Ordering::SeqCst);
                })
            })
            .collect();
        scheduler.sleep(Duration::from_secs(1));
        word.store(1, Ordering::SeqCst);
        scheduler.wake_one(&word);
        scheduler.sleep(Duration::from_secs(1));
        let first = woken.load(Ordering::SeqCst);
        scheduler.wake_all(&word);
        actors.into_iter().for_each(|actor| actor.join().unwrap());
        (first, woken.load(Ordering::SeqCst))
    });
    assert_eq!((ran.value, ran.failure), (Some((1, 3)), None));
}

#[test]
fn tasks_sleep_ring_and_are_joined() {
    let ran = run(1, |scheduler| {
        let (steps, end) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, stop) = (Arc::clone(&steps), Arc::clone(&end));
        let task = spawn(scheduler, move || {
            count.fetch_add(1, Ordering::SeqCst);
            if stop.load(Ordering::SeqCst) { Step::Done } else { Step::Sleep(Some(Duration::from_secs(5))) }
        });
        scheduler.sleep(Duration::from_secs(17));
        let by_time = steps.load(Ordering::SeqCst);
        task.ring();
        scheduler.sleep(Duration::from_millis(1));
        let by_bell = steps.load(Ordering::SeqCst);
        end.store(true, Ordering::SeqCst);
        task.ring();
        task.join().unwrap();
        let gone = spawn(scheduler, || Step::Sleep(None));
        drop(gone);
        (by_time, by_bell, scheduler.monotonic() >= Duration::from_secs(17))
    });
    assert_eq!((ran.value, ran.failure), (Some((4, 5, true)), None));
}

#[test]
fn panics_and_left_tasks_are_failures() {
    let ran = run(1, |scheduler| {
        let task = spawn(scheduler, || panic!("on purpose"));
        task.join().unwrap_err()
    });
    assert!(ran.value.is_some() && ran.failure.unwrap().contains("task panicked: on purpose"));
    let ran = run(1, |scheduler| std::mem::forget(spawn(scheduler, || Step::Sleep(None))));
    assert!(ran.failure.unwrap().contains("nothing can end this run"));
}

#[test]
fn a_disk_call_where_nothing_may_wait_is_a_failure() {
    let ran = run(1, |scheduler| {
        let disk = SimDisk::new();
        let pausing = scheduler.clone();
        disk.on_pause(move |op| pausing.pause(op));
        disk.exists("f").unwrap();
        scheduler.steady(|| disk.exists("f").unwrap())
    });
    assert!(ran.failure.unwrap().contains("a disk call where nothing may wait"));
    let ran = run(1, |scheduler| {
        let _held = crate::log::LockScope::enter();
        scheduler.yield_now();
    });
    assert!(ran.failure.unwrap().contains("under a lock"));
}

/// Two actors at disk calls: each order of them occurs.
#[test]
fn disk_calls_interleave() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let ran = run(seed, |scheduler| {
            let disk = SimDisk::new();
            let pausing = scheduler.clone();
            disk.on_pause(move |op| pausing.pause(op));
            let actors = ["a", "b"].map(|name| {
                let disk = disk.clone();
                scheduler.spawn_actor("actor", move || drop(disk.create_excl(name).unwrap()))
            });
            actors.into_iter().for_each(|actor| actor.join().unwrap());
            disk.trace()
        });
        assert_eq!(ran.failure, None);
        seen.insert(ran.value.unwrap());
    }
    assert_eq!(seen.len(), 2, "{seen:?}");
}
