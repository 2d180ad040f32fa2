//! Opening a store of 1,000 sessions and listing them; beside it the first line of 1,000 JSONL files.

// A bench that cannot go on stops.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, missing_docs)]

mod workload;

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufRead, BufReader};

use criterion::{Criterion, criterion_group, criterion_main};
use sessionlog::{SessionStore, StoreOptions};
use workload::{calm, fill, mix, sized, timed, write_jsonl};

fn bench(c: &mut Criterion) {
    let items = mix();
    let (sessions, events) = (sized(1_000), sized(200));
    let dir = tempfile::tempdir().unwrap();
    let (store, files) = (dir.path().join("store"), dir.path().join("files"));
    fill(SessionStore::open_writer(&store).unwrap(), sessions, events, &items);
    fs::create_dir(&files).unwrap();
    for n in 0..sessions {
        write_jsonl(&files.join(format!("{n}.jsonl")), &format!("session-{n}"), events, &items);
    }

    let mut group = c.benchmark_group(format!("open {sessions} sessions"));
    calm(&mut group);
    group.bench_function("for writing", |b| {
        b.iter_custom(|rounds| {
            timed(
                rounds,
                |_| (),
                |()| SessionStore::open_writer(&store).unwrap(),
                |store| store.close().unwrap(),
            )
        });
    });
    group.bench_function("for reading", |b| {
        b.iter(|| StoreOptions::new().open_read_only(&store).unwrap());
    });
    group.bench_function("for reading, and list", |b| {
        b.iter(|| {
            let store = StoreOptions::new().open_read_only(&store).unwrap();
            let listed = store.stored().unwrap().map(|stat| stat.unwrap().events).sum::<u64>();
            assert_eq!(listed, sessions * events);
        });
    });
    group.bench_function("first lines of jsonl files", |b| {
        b.iter(|| {
            for entry in fs::read_dir(&files).unwrap() {
                let mut line = String::new();
                BufReader::new(File::open(entry.unwrap().path()).unwrap()).read_line(&mut line).unwrap();
                black_box(serde_json::from_str::<serde_json::Value>(&line).unwrap());
            }
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
