//! Appending from one thread to one session, flushed at the end only; beside it a JSONL file written through a buffer.

// A bench that cannot go on stops.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, missing_docs)]

mod workload;

use std::fs::File;
use std::io::{BufWriter, Write};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sessionlog::{CreateOptions, SessionStore};
use workload::{append, calm, mix, sized, timed};

fn bench(c: &mut Criterion) {
    let items = mix();
    let events = sized(20_000);
    let mut group = c.benchmark_group("append");
    calm(&mut group);
    group.throughput(Throughput::Elements(events));
    group.bench_function("sessionlog, one call an event", |b| {
        b.iter_custom(|rounds| {
            let dir = tempfile::tempdir().unwrap();
            let store = SessionStore::open_writer(dir.path()).unwrap();
            timed(
                rounds,
                |_| store.create(CreateOptions::new()).unwrap(),
                |session| {
                    for item in items.iter().cycle().take(events as usize) {
                        append(&store, &session, item);
                    }
                    session.flush().unwrap();
                    session
                },
                |session| session.detach(),
            )
        });
    });
    group.bench_function("jsonl, buffer of 64 KiB", |b| {
        b.iter_custom(|rounds| {
            let dir = tempfile::tempdir().unwrap();
            timed(
                rounds,
                |round| File::create(dir.path().join(format!("{round}.jsonl"))).unwrap(),
                |file| {
                    let mut out = BufWriter::with_capacity(64 << 10, file);
                    for (seq, item) in (0..events).zip(items.iter().cycle()) {
                        item.line(seq, &mut out);
                    }
                    out.flush().unwrap();
                    out.get_ref().sync_data().unwrap();
                },
                drop,
            )
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
