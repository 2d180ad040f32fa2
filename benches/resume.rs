//! Resuming a session of 2,000 events (a fifth of them no chunks) out of 100 and deriving its messages; beside it a
//! JSONL file of the same events, read and parsed.

// A bench that cannot go on stops.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, missing_docs)]

mod workload;

use std::fs;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use sessionlog::SessionStore;
use workload::{calm, fill, mix, sized, timed, write_jsonl};

fn bench(c: &mut Criterion) {
    let items = mix();
    let (sessions, events) = (sized(100), sized(2_000));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    fill(SessionStore::open_writer(&path).unwrap(), sessions, events, &items);
    let store = SessionStore::open_writer(&path).unwrap();
    let file = dir.path().join("session.jsonl");
    write_jsonl(&file, "session", events, &items);

    let mut group = c.benchmark_group(format!("resume a session of {events} events"));
    calm(&mut group);
    let mut next = 0;
    let mut id = move |_| {
        next = (next + 37) % sessions;
        format!("session-{next}")
    };
    group.bench_function("resume", |b| {
        b.iter_custom(|rounds| {
            timed(rounds, &mut id, |id| store.resume(&id).unwrap().session, |session| session.detach())
        });
    });
    group.bench_function("resume and derive the messages", |b| {
        b.iter_custom(|rounds| {
            timed(
                rounds,
                &mut id,
                |id| {
                    let session = store.resume(&id).unwrap().session;
                    black_box(session.derive_messages().unwrap());
                    session
                },
                |session| session.detach(),
            )
        });
    });
    group.bench_function("jsonl, read and parsed", |b| {
        b.iter(|| {
            let text = fs::read_to_string(&file).unwrap();
            let parsed = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
            black_box(parsed.filter(|event| event.get("surfaceOp").is_some()).collect::<Vec<_>>());
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
