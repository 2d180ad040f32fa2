//! Moving sessions out and in, each against its limit in the same run: JSONL export against `cat` of the same bytes,
//! import against the least that a reader of JSON must do (`serde_json::de::IgnoredAny`, line by line), SQLite export
//! against a plain program that inserts the same rows in one transaction. All outputs are synced to the disk. What a
//! job leaves to the disk, or frees there, is waited for before the next one begins: none pays for another one's.
//!
//! Import has two rows, a folder of sessions and one session of that size.
//!
//! `cargo bench --bench export` prints a table of medians over interleaved rounds. `ROUNDS` and `SESSIONS` (of about
//! 7 MB each) can be set.

// A bench that cannot go on stops.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::cast_precision_loss, missing_docs)]
#![allow(clippy::indexing_slicing)]

mod workload;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use sessionlog::SessionStore;
use sessionlog::interop::import::{ImportOptions, Importer, Target, survey};
use sessionlog::interop::jsonl::{WriteOptions, export_session};
use sessionlog::interop::sqlite::{SqliteOptions, Writer};
use workload::{Item, is_test, mix, sized};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A session as an agent would leave it, with nothing to complain about: one turn, one step, every result behind its call.
fn write_session(path: &Path, id: &str, events: u64, items: &[Item]) {
    let mut out = BufWriter::new(File::create(path).unwrap());
    writeln!(
        out,
        r#"{{"type":"session","version":0,"id":"{id}","createdAt":1790000000000,"cwd":"/srv/project"}}"#
    )
    .unwrap();
    let mut seq = 0;
    let mut put = |event_type: &'static str, data: String, surface: bool| {
        Item { event_type, data, surface }.line(seq, &mut out);
        seq += 1;
    };
    put("turn/start", r#"{"turn":1,"trigger":{"kind":"continuation"}}"#.to_owned(), false);
    put("step/start", r#"{"turn":1,"step":1}"#.to_owned(), false);
    for (_, item) in (0..events).zip(items.iter().cycle()) {
        let data = item.data.replacen(r#""turn":3,"step":2"#, r#""turn":1,"step":1"#, 1);
        if item.event_type == "tool/result" {
            let id = data.split('"').nth(7).unwrap();
            let call = format!(r#"{{"turn":1,"step":1,"callId":"{id}","name":"shell","arguments":"{{}}"}}"#);
            put("tool/call", call, false);
        }
        put(item.event_type, data, item.surface);
    }
}

/// Seconds that `work` takes on a disk that has nothing else to do.
fn seconds(work: impl FnOnce()) -> f64 {
    assert!(Command::new("sync").status().unwrap().success());
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The files' bytes, copied by `cat`, one process and one output a file, and synced.
fn cat(from: &[PathBuf], to: &Path) {
    fs::create_dir(to).unwrap();
    for (number, path) in from.iter().enumerate() {
        let out = File::create(to.join(number.to_string())).unwrap();
        let status =
            Command::new("cat").arg(path).stdout(Stdio::from(out.try_clone().unwrap())).status().unwrap();
        assert!(status.success());
        out.sync_all().unwrap();
    }
}

fn ignore(files: &[PathBuf]) {
    for path in files {
        let mut reader = BufReader::with_capacity(1 << 16, File::open(path).unwrap());
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).unwrap() > 0 {
            serde_json::from_slice::<serde::de::IgnoredAny>(&line).unwrap();
            line.clear();
        }
    }
}

fn import(folder: &Path, store: &Path) {
    let store = SessionStore::open_writer(store).unwrap();
    let survey = survey(&[folder.to_path_buf()]);
    let mut importer = Importer::new(Target::Store(&store), ImportOptions::default());
    importer.take_all(&survey.items, &mut |_| {}, &mut |_, imported| {
        let imported = imported.unwrap();
        assert_eq!(imported.note_count, 0, "{:?}", imported.notes);
        ControlFlow::Continue(())
    });
    store.flush().unwrap();
    store.close().unwrap();
}

fn export_jsonl(store: &SessionStore, out: &Path) {
    for stat in store.stored().unwrap() {
        export_session(store, &stat.unwrap().id, out, WriteOptions::default()).unwrap();
    }
}

fn export_sqlite(store: &SessionStore, out: &Path) {
    let mut writer = Writer::create(out, SqliteOptions::default()).unwrap();
    for stat in store.stored().unwrap() {
        let session = store.open(&stat.unwrap().id).unwrap();
        writer.put_session(session.header(), session.events()).unwrap();
    }
    writer.finish().unwrap();
}

/// A row of `events`, prepared.
struct Row {
    session: String,
    seq: i64,
    event_type: String,
    time: i64,
    data: String,
    sources: Option<String>,
    op: Option<String>,
}

/// The rows of all sessions, as a program would have them that does nothing but insert.
fn rows(store: &SessionStore) -> Vec<Row> {
    let mut rows = Vec::new();
    for stat in store.stored().unwrap() {
        let session = store.open(&stat.unwrap().id).unwrap();
        for event in session.events() {
            let event = event.unwrap();
            rows.push(Row {
                session: session.id().to_owned(),
                seq: i64::try_from(event.seq()).unwrap(),
                event_type: event.event_type().to_owned(),
                time: event.time().as_millis().unwrap(),
                data: event.data().as_str().to_owned(),
                sources: event.sources().map(|list| serde_json::to_string(list).unwrap()),
                op: event.surface_op().map(|op| op.to_string()),
            });
        }
    }
    rows
}

/// The least that such a program does: the same tables, one transaction, the file synced at its end.
fn insert(rows: &[Row], out: &Path) {
    let connection = rusqlite::Connection::open(out).unwrap();
    connection.execute_batch(
        "PRAGMA synchronous = OFF; BEGIN;
         CREATE TABLE sessions (id TEXT PRIMARY KEY, version INTEGER NOT NULL, created_at INTEGER NOT NULL, cwd TEXT,
           parent_session TEXT, seed_length INTEGER) STRICT;
         CREATE TABLE events (session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, seq INTEGER NOT NULL,
           type TEXT NOT NULL, time INTEGER NOT NULL, data TEXT NOT NULL, source_event_seqs TEXT, surface_op TEXT,
           PRIMARY KEY (session_id, seq)) STRICT;",
    )
    .unwrap();
    let mut session = connection.prepare("INSERT INTO sessions VALUES (?, 0, 0, NULL, NULL, NULL)").unwrap();
    let mut event = connection.prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)").unwrap();
    let mut last = "";
    for row in rows {
        if row.session != last {
            session.execute([&row.session]).unwrap();
            last = &row.session;
        }
        let Row { session, seq, event_type, time, data, sources, op } = row;
        event.execute(rusqlite::params![session, seq, event_type, time, data, sources, op]).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    File::open(out).unwrap().sync_all().unwrap();
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn write_inputs(folder: &Path, sessions: u64, events: u64, items: &[Item]) -> Vec<PathBuf> {
    fs::create_dir(folder).unwrap();
    for session in 0..sessions {
        let path = folder.join(format!("{session}.jsonl"));
        write_session(&path, &format!("session-{session}"), events, items);
    }
    files(folder)
}

fn size(files: &[PathBuf]) -> f64 {
    files.iter().map(|path| path.metadata().unwrap().len()).sum::<u64>() as f64
}

/// A line of the table: seconds for so many bytes.
fn row(work: &str, (time, bytes): (f64, f64), peer: &str, (peer_time, peer_bytes): (f64, f64), least: f64) {
    let (own, other) = (bytes / time / 1e6, peer_bytes / peer_time / 1e6);
    println!("{work:<14} {own:>5.0}   {peer:<18} {other:>5.0}  {:>5.2}  {least}", own / other);
}

fn main() {
    let rounds = if is_test() { 1 } else { setting("ROUNDS", 5) };
    let (sessions, events) = (sized(setting("SESSIONS", 16)), sized(10_000));
    let dir = tempfile::tempdir().unwrap();
    let items = mix();
    let (many, one) = (dir.path().join("many"), dir.path().join("one"));
    let inputs = write_inputs(&many, sessions, events, &items);
    let single = write_inputs(&one, 1, sessions * events, &items);
    let stored = dir.path().join("store");
    import(&many, &stored);
    let store = SessionStore::open_writer(&stored).unwrap();
    let rows = rows(&store);
    let mut times: [Vec<f64>; 8] = Default::default();
    for round in 0..rounds {
        let at = |name: &str| dir.path().join(format!("{name}-{round}"));
        times[0].push(seconds(|| cat(&inputs, &at("cat"))));
        times[1].push(seconds(|| export_jsonl(&store, &at("jsonl"))));
        times[2].push(seconds(|| ignore(&inputs)));
        times[3].push(seconds(|| import(&many, &at("store"))));
        times[4].push(seconds(|| ignore(&single)));
        times[5].push(seconds(|| import(&one, &at("single"))));
        times[6].push(seconds(|| insert(&rows, &at("plain"))));
        times[7].push(seconds(|| export_sqlite(&store, &at("sqlite"))));
        for name in ["cat", "jsonl", "store", "single"] {
            fs::remove_dir_all(at(name)).unwrap();
        }
        for name in ["plain", "sqlite"] {
            fs::remove_file(at(name)).unwrap();
        }
    }
    let bytes = size(&inputs);
    println!("{sessions} sessions, {} events, {bytes} bytes of JSONL, {rounds} rounds", sessions * events);
    println!("work            MB/s   peer                MB/s  ratio  at least");
    let all = |time: f64| (time, bytes);
    let [cat, export, ignore, import, insert, sqlite] =
        [0, 1, 2, 3, 6, 7].map(|row| all(median(times[row].clone())));
    let [ignore_one, import_one] = [4, 5].map(|row| (median(times[row].clone()), size(&single)));
    row("export jsonl", export, "cat", cat, 0.5);
    row("export sqlite", sqlite, "prepared rows", insert, 0.8);
    row("import jsonl", import, "IgnoredAny by line", ignore, 0.5);
    row("  one session", import_one, "IgnoredAny by line", ignore_one, 0.5);
}
