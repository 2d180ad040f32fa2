//! Waiting until events are durable, from 1, 8 and 64 threads with 16 sessions each: after every event, and (64
//! threads) after every 25th. Beside it the same threads with a file of JSONL each, and for one thread the bare
//! `pwrite` and `fdatasync`.
//!
//! The loop is closed: a thread appends again as soon as it has its acknowledgement. Beside criterion's report, the
//! median and the 99th percentile of the waits go to standard error.

// A bench that cannot go on stops.
#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::indexing_slicing)]
#![allow(clippy::cast_possible_truncation, missing_docs)]

mod workload;

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sessionlog::{CreateOptions, SessionStore};
use workload::{Item, append, calm, is_test, mix};

const SESSIONS_PER_THREAD: usize = 16;

/// Runs `threads` threads that share `waits` waits; the time from the first to the last, scaled to exactly `waits`.
fn closed_loop<W>(
    threads: usize,
    waits: u64,
    worker: impl Fn(usize) -> W + Sync,
    waited: &Mutex<Vec<Duration>>,
) -> Duration
where
    W: FnMut(u64),
{
    let each = waits.div_ceil(threads as u64);
    let start = Barrier::new(threads + 1);
    let elapsed = std::thread::scope(|scope| {
        for thread in 0..threads {
            let (start, worker) = (&start, &worker);
            scope.spawn(move || {
                let mut step = worker(thread);
                let mut mine = Vec::with_capacity(each as usize);
                start.wait();
                for round in 0..each {
                    let began = Instant::now();
                    step(round);
                    mine.push(began.elapsed());
                }
                waited.lock().unwrap().extend(mine);
            });
        }
        start.wait();
        Instant::now()
    })
    .elapsed();
    elapsed.mul_f64(waits as f64 / (each * threads as u64) as f64)
}

fn report(name: &str, waited: &Mutex<Vec<Duration>>) {
    let mut waited = std::mem::take(&mut *waited.lock().unwrap());
    waited.sort_unstable();
    if let (false, Some(last)) = (is_test(), waited.len().checked_sub(1)) {
        eprintln!("    {name}: wait p50 {:?}, p99 {:?}", waited[last / 2], waited[last * 99 / 100]);
    }
}

/// `threads` threads over a store, waiting after every `every` events.
fn engine(
    threads: usize,
    every: usize,
    waits: u64,
    items: &[Item],
    waited: &Mutex<Vec<Duration>>,
) -> Duration {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::open_writer(dir.path()).unwrap();
    let worker = |thread: usize| {
        let sessions: Vec<_> = (0..SESSIONS_PER_THREAD)
            .map(|n| store.create(CreateOptions::new().id(format!("{thread}-{n}"))).unwrap())
            .collect();
        let mut items = items.iter().cycle().skip(thread * 61);
        let store = &store;
        move |round: u64| {
            let session = &sessions[round as usize % sessions.len()];
            for item in items.by_ref().take(every) {
                append(store, session, item);
            }
            session.flush().unwrap();
        }
    };
    let elapsed = closed_loop(threads, waits, worker, waited);
    store.close().unwrap();
    elapsed
}

/// `threads` threads with a file each: one write of the lines, one fdatasync.
fn files(
    threads: usize,
    every: usize,
    waits: u64,
    items: &[Item],
    waited: &Mutex<Vec<Duration>>,
) -> Duration {
    let dir = tempfile::tempdir().unwrap();
    let worker = |thread: usize| {
        let mut file = File::create(dir.path().join(format!("{thread}.jsonl"))).unwrap();
        let mut items = items.iter().cycle().skip(thread * 61);
        let mut lines = Vec::new();
        move |round: u64| {
            lines.clear();
            for item in items.by_ref().take(every) {
                item.line(round, &mut lines);
            }
            file.write_all(&lines).unwrap();
            file.sync_data().unwrap();
        }
    };
    closed_loop(threads, waits, worker, waited)
}

/// The least that a durable append can cost here: a write into a file that is there already, and its fdatasync.
fn bare(waits: u64, waited: &Mutex<Vec<Duration>>) -> Duration {
    let dir = tempfile::tempdir().unwrap();
    let file = File::create(dir.path().join("bare")).unwrap();
    let page = [0x5a_u8; 4096];
    let pages = 4096;
    (0..pages).for_each(|n| file.write_all_at(&page, n * 4096).unwrap());
    file.sync_all().unwrap();
    let worker = |_| {
        let file = &file;
        move |round: u64| {
            file.write_all_at(&page, round % pages * 4096).unwrap();
            file.sync_data().unwrap();
        }
    };
    closed_loop(1, waits, worker, waited)
}

fn bench(c: &mut Criterion) {
    let items = mix();
    let waited = Mutex::new(Vec::new());
    for (name, every, counts) in [
        ("commit, wait after each event", 1, &[1, 8, 64][..]),
        ("commit, wait after 25 events", 25, &[64][..]),
    ] {
        let mut group = c.benchmark_group(name);
        calm(&mut group);
        group.throughput(Throughput::Elements(every as u64));
        for &threads in counts {
            group.bench_function(BenchmarkId::new("sessionlog", threads), |b| {
                b.iter_custom(|waits| engine(threads, every, waits, &items, &waited));
            });
            report("sessionlog", &waited);
            group.bench_function(BenchmarkId::new("a jsonl file a thread", threads), |b| {
                b.iter_custom(|waits| files(threads, every, waits, &items, &waited));
            });
            report("jsonl", &waited);
        }
        if every == 1 {
            group.bench_function(BenchmarkId::new("pwrite 4 KiB + fdatasync", 1), |b| {
                b.iter_custom(|waits| bare(waits, &waited));
            });
            report("bare", &waited);
        }
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
