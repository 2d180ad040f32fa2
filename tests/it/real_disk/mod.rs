//! The engine in real processes on real file systems: calls that fail, no space, no descriptors, no right to write, and
//! cuts of the power under a mounted file system.
//!
//! Whatever happens to a recorder: what it said to be acknowledged is there afterwards, and nothing is acknowledged
//! behind a failed write (G1, G5).

mod cuts;
mod recorder;
mod shim;
mod space;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use sessionlog::testing::workload::event;
use sessionlog::{SessionStore, StoreOptions};

/// What a recorder said.
#[derive(Debug, Default)]
struct Said {
    /// Acknowledged events by session.
    acknowledged: BTreeMap<String, usize>,
    /// What was refused: the operation and the kind of the error.
    refused: Vec<String>,
    /// The writer was poisoned.
    poisoned: bool,
    /// It came to its end.
    done: bool,
}

impl Said {
    fn of(output: &Output) -> Self {
        let mut said = Self::default();
        String::from_utf8_lossy(&output.stdout).lines().for_each(|line| said.hear(line));
        said
    }

    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["ack", id, seq] => {
                // A line that was cut off acknowledges nothing.
                let Ok(seq) = seq.parse::<usize>() else { return };
                let known = self.acknowledged.entry((*id).to_owned()).or_default();
                *known = (*known).max(seq + 1);
            }
            ["refused", ..] => self.refused.push(words[1..].join(" ")),
            ["poisoned"] => self.poisoned = true,
            ["done"] => self.done = true,
            _ => {}
        }
    }

    fn events(&self) -> usize {
        self.acknowledged.values().sum()
    }
}

/// Begins the runs whose sessions have some large events.
const LARGE: &str = "large";

/// The text of event `seq` of a session.
fn text(id: &str, seq: usize) -> String {
    let length = if id.contains(LARGE) && seq % 5 == 3 { 200 << 10 } else { seq * 131 % 1500 };
    format!("{id} {seq} {}", "x".repeat(length))
}

fn options() -> StoreOptions {
    StoreOptions::new().create(true).segment_bytes(64 << 10)
}

/// All that was acknowledged is there, whatever else is; every event is what was appended.
fn check(store: &SessionStore, said: &Said, what: &str) {
    assert!(store.recovery().losses.is_empty(), "{what}: {:?}", store.recovery());
    for (id, count) in &said.acknowledged {
        let events = store.open(id).unwrap_or_else(|error| panic!("{what}: {id}: {error}")).events();
        let lines: Vec<String> = events.map(|event| event.unwrap().to_line()).collect();
        assert!(lines.len() >= *count, "{what}: {id} has {} of {count} acknowledged events", lines.len());
        for (seq, line) in lines.iter().enumerate() {
            assert_eq!(*line, event(seq, &text(id, seq)).unwrap().1, "{what}: {id}");
        }
    }
}

/// Opens what a recorder left, for reading, for writing and once more, and checks it each time.
fn reopened(directory: &Path, said: &Said, what: &str) {
    let reader = options().open_read_only(directory).unwrap_or_else(|error| panic!("{what}: read: {error}"));
    check(&reader, said, what);
    drop(reader);
    for _ in 0..2 {
        let store = options().open(directory).unwrap_or_else(|error| panic!("{what}: write: {error}"));
        check(&store, said, what);
        store.close().unwrap();
    }
}

/// A command that runs the test `name` of this program, behind `before` (a wrapper with its arguments).
fn this_test(before: &[&str], name: &str) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut command = match before {
        [] => Command::new(&program),
        [wrapper, arguments @ ..] => {
            let mut command = Command::new(wrapper);
            command.args(arguments).arg(&program);
            command
        }
    };
    command.args([&format!("real_disk::{name}"), "--exact", "--nocapture", "--test-threads=1"]);
    command
}

/// What a child printed, for messages.
fn shown(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
