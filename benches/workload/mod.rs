//! What the benches append: a mix of events like that of real agents, the same in every run.
//!
//! Four fifths are chunks of about 120 bytes, the rest tool calls, tool results (log-normal, median 2 KiB, to
//! 256 KiB) and messages. Sizes shrink when criterion only tests that the benches run.

// Each bench is a program of its own and uses a part of this.
#![allow(dead_code)]
// A bench that cannot go on stops, and says what it measured beside criterion's own report.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{BenchmarkGroup, SamplingMode, measurement::WallTime};
use sessionlog::{CreateOptions, NewEvent, Session, SessionStore, SurfaceOp};

/// The wall time is measured over whole loops that write to a disk: few samples, not many.
pub(crate) fn calm(group: &mut BenchmarkGroup<'_, WallTime>) {
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
}

/// Whether this is `cargo test --bench '*'`: everything runs once, small. `cargo bench` says `--bench`.
pub(crate) fn is_test() -> bool {
    let mut arguments = std::env::args();
    arguments.all(|argument| argument != "--bench") || std::env::args().any(|argument| argument == "--test")
}

/// `size`, or a fiftieth of it in a test.
pub(crate) fn sized(size: u64) -> u64 {
    if is_test() { (size / 50).max(2) } else { size }
}

/// An event to append.
pub(crate) struct Item {
    pub(crate) event_type: &'static str,
    pub(crate) data: String,
    pub(crate) surface: bool,
}

impl Item {
    /// The event, with its text checked as it is when it comes from a caller.
    pub(crate) fn event(&self) -> NewEvent {
        let event = NewEvent::raw(self.event_type, &self.data).unwrap();
        if self.surface { event.with_surface_op(SurfaceOp::Append) } else { event }
    }

    /// The event as a line of JSONL, without looking into its data: what a writer of such files does at least.
    pub(crate) fn line(&self, seq: u64, out: &mut impl Write) {
        let Self { event_type, data, .. } = self;
        let op = if self.surface { ",\"surfaceOp\":\"append\"" } else { "" };
        let time = 1_790_000_000_000 + seq;
        writeln!(out, "{{\"type\":\"{event_type}\",\"seq\":{seq},\"time\":{time},\"data\":{data}{op}}}")
            .unwrap();
    }
}

/// The mix, repeated for longer runs.
pub(crate) fn mix() -> Vec<Item> {
    let mut chance = Chance(0x5e55_1064);
    (0..4096).map(|_| item(&mut chance)).collect()
}

fn item(chance: &mut Chance) -> Item {
    let (event_type, length) = match chance.below(100) {
        0..80 => return chunk(chance),
        80..88 => ("tool/call", 300 + chance.below(200)),
        88..96 => ("tool/result", chance.log_normal(2048.0, 1.2).min(256 << 10)),
        96..98 => ("user/message", 800 + chance.below(1400)),
        _ => ("assistant/message", 800 + chance.below(1400)),
    };
    let text = chance.words(length);
    let data = match event_type {
        "tool/call" => format!(
            r#"{{"turn":3,"step":2,"callId":"call_{length}","name":"shell","arguments":"{{\"command\":\"{text}\"}}"}}"#
        ),
        "tool/result" => format!(
            r#"{{"turn":3,"step":2,"callId":"call_{length}","content":[{{"type":"text","text":"{text}"}}],"isError":false}}"#
        ),
        "user/message" => {
            format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"source":{{"kind":"user"}}}}"#)
        }
        _ => format!(r#"{{"turn":3,"step":2,"content":[{{"type":"text","text":"{text}"}}]}}"#),
    };
    Item { event_type, data, surface: event_type != "tool/call" }
}

fn chunk(chance: &mut Chance) -> Item {
    let length = 2 + chance.below(60);
    let text = chance.words(length);
    let data = format!(r#"{{"turn":3,"step":2,"chunk":{{"type":"text-delta","index":0,"text":"{text}"}}}}"#);
    Item { event_type: "assistant/chunk", data, surface: false }
}

/// Numbers that look random and are the same in every run (xorshift).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// About log-normal: a sum of uniform numbers stands for a normal one.
    fn log_normal(&mut self, median: f64, sigma: f64) -> u64 {
        let sum: u64 = (0..12).map(|_| self.below(1 << 20)).sum();
        let normal = sum as f64 / f64::from(1 << 20) - 6.0;
        (median * (sigma * normal).exp()) as u64
    }

    /// Text of so many bytes, in words, as compressible as such text is.
    fn words(&mut self, length: u64) -> String {
        const WORDS: [&str; 16] = [
            "the",
            "file",
            "of",
            "src/main.rs",
            "error",
            "and",
            "let",
            "result",
            "a",
            "to",
            "value",
            "is",
            "in",
            "test",
            "fn",
            "line",
        ];
        let mut text = String::new();
        while (text.len() as u64) < length {
            text.push_str(WORDS[(self.next() >> 40) as usize % WORDS.len()]);
            text.push(' ');
        }
        text.truncate(length as usize);
        text
    }
}

/// Appends, waiting for room where there is none, as a writer that outruns its disk must.
pub(crate) fn append(store: &SessionStore, session: &Session, item: &Item) {
    loop {
        match session.append(item.event()) {
            Ok(_) => return,
            Err(error) if error.is_backpressure() => store.wait_for_room(item.data.len() + 256).unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Fills a store with `sessions` sessions of `events` events each, interleaved in stretches of 50, and closes it.
pub(crate) fn fill(store: SessionStore, sessions: u64, events: u64, items: &[Item]) {
    let live: Vec<Session> = (0..sessions)
        .map(|n| store.create(CreateOptions::new().id(format!("session-{n}")).cwd("/srv/project")).unwrap())
        .collect();
    let mut seq = 0;
    while seq < events {
        let until = (seq + 50).min(events);
        for session in &live {
            for item in items.iter().cycle().skip(seq as usize % items.len()).take((until - seq) as usize) {
                append(&store, session, item);
            }
        }
        store.flush().unwrap();
        seq = until;
    }
    drop(live);
    store.close().unwrap();
}

/// The same session as a JSONL file.
pub(crate) fn write_jsonl(path: &Path, id: &str, events: u64, items: &[Item]) {
    let mut out = BufWriter::new(File::create(path).unwrap());
    let header = format!(
        r#"{{"type":"session","version":0,"id":"{id}","createdAt":1790000000000,"cwd":"/srv/project"}}"#
    );
    writeln!(out, "{header}").unwrap();
    for (seq, item) in (0..events).zip(items.iter().cycle()) {
        item.line(seq, &mut out);
    }
    out.flush().unwrap();
}

/// Time of `rounds` calls of `timed`, each with what `set_up` made, which is not timed; nor is `tear_down`.
pub(crate) fn timed<A, B>(
    rounds: u64,
    mut set_up: impl FnMut(u64) -> A,
    mut timed: impl FnMut(A) -> B,
    mut tear_down: impl FnMut(B),
) -> Duration {
    let mut total = Duration::ZERO;
    for round in 0..rounds {
        let input = set_up(round);
        let start = Instant::now();
        let output = timed(input);
        total += start.elapsed();
        tear_down(output);
    }
    total
}
