//! Forking a session of 100,000 events; beside it a copy of the same session as a JSONL file.

// A bench that cannot go on stops.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, missing_docs)]

mod workload;

use std::fs;

use criterion::{Criterion, criterion_group, criterion_main};
use sessionlog::{ForkOptions, SessionStore};
use workload::{calm, fill, mix, sized, timed, write_jsonl};

fn bench(c: &mut Criterion) {
    let items = mix();
    let events = sized(100_000);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    fill(SessionStore::open_writer(&path).unwrap(), 1, events, &items);
    let store = SessionStore::open_writer(&path).unwrap();
    let file = dir.path().join("parent.jsonl");
    write_jsonl(&file, "parent", events, &items);
    let fork = |options: ForkOptions| store.fork("session-0", options).unwrap();

    let mut group = c.benchmark_group(format!("fork a session of {events} events"));
    calm(&mut group);
    group.bench_function("at its end", |b| {
        b.iter_custom(|rounds| timed(rounds, |_| ForkOptions::new(), fork, |child| child.detach()));
    });
    group.bench_function("in its middle", |b| {
        b.iter_custom(|rounds| {
            timed(rounds, |_| ForkOptions::new().at(events / 2), fork, |child| child.detach())
        });
    });
    group.bench_function("copy of the jsonl file", |b| {
        b.iter(|| fs::copy(&file, dir.path().join("child.jsonl")).unwrap());
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
