//! What other programs rely on when they call the tool: nothing is half done, nothing is said of the wrong thing.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::{HEADER, LINES, with_session};
use crate::tool::{Tool, lines_of};

/// The rules and seqs that `check --file` prints for these lines.
fn checked(tool: &Tool, lines: &[String], code: i32) -> Vec<(String, u64)> {
    let file = tool.file("checked.jsonl", lines_of(lines));
    let ran =
        tool.run(["check".as_ref(), "--json".as_ref(), "--file".as_ref(), file.as_os_str()]).exits(code);
    let told = |line: &Value| (line["rule"].as_str().unwrap().to_owned(), line["seq"].as_u64().unwrap());
    ran.json().iter().map(told).collect()
}

/// An import cuts such lines as a torn tail, or calls them damage. A check says what they are, and goes on.
#[test]
fn check_names_lines_that_are_out_of_place() {
    let tool = Tool::new();
    let mut lines = LINES.map(str::to_owned).to_vec();
    assert_eq!(checked(&tool, &lines, 0), []);
    let note = |seq: u64| format!(r#"{{"type":"x/note","seq":{seq},"time":1,"data":0}}"#);
    let open = |seqs: &[u64]| {
        let start = LINES[1].to_owned();
        [vec![HEADER.to_owned(), start], seqs.iter().map(|seq| note(*seq)).collect()].concat()
    };
    let i1 = |seq: u64| ("I1".to_owned(), seq);
    assert_eq!(checked(&tool, &open(&[1, 2, 2, 3]), 1), [i1(2)]);
    assert_eq!(checked(&tool, &open(&[1, 5, 6]), 1), [i1(5)]);
    assert_eq!(checked(&tool, &open(&[1, 0, 2]), 1), [i1(0)]);
    // With the end of a turn behind it, too; each is named.
    lines.insert(2, note(0));
    assert_eq!(checked(&tool, &lines, 1)[0], i1(0));
    // A packed row is its events.
    let row = r#"{"type":"text-chunks","seq0":4,"time0":1,"data":{"turn":1,"step":1,"index":0,"dt":[0],"texts":["a","b"]}}"#;
    let found = checked(&tool, &[HEADER.to_owned(), LINES[1].to_owned(), row.to_owned()], 1);
    assert_eq!(found[0], i1(4));
}

#[test]
fn a_refused_import_names_the_file_and_a_path_that_is_not_there_has_its_line() {
    let tool = with_session();
    let other = LINES.map(|line| line.replace("\"time\":", "\"time\":1"));
    let file = tool.file("other.jsonl", lines_of(&other));
    let ran = tool.run(["import".as_ref(), "--json".as_ref(), file.as_os_str(), "nowhere".as_ref()]).exits(1);
    let lines = ran.json();
    let of = |name: &str| {
        let named = |line: &&Value| line["file"].as_str().is_some_and(|file| file.ends_with(name));
        lines.iter().find(named).unwrap_or_else(|| panic!("{name}: {}", ran.out))["error"]["kind"].clone()
    };
    assert_eq!((of("other.jsonl"), of("nowhere")), (json!("conflict"), json!("not-found")));
    assert!(ran.err.contains("other.jsonl") && ran.err.contains("nowhere"), "{}", ran.err);
}

/// Who reads one line of what a command prints and goes away has not asked it to stop half-way.
#[test]
fn work_is_done_to_its_end_though_nobody_reads_about_it() {
    const SESSIONS: usize = 1500;
    let tool = Tool::new();
    for index in 0..SESSIONS {
        tool.file(&format!("in/{index}.jsonl"), HEADER.replace("\"s\"", &format!("\"i{index}\"")) + "\n");
    }
    let read_one_line = |args: &[&str], input: &[u8]| {
        let mut command = tool.command(args);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut to = child.stdin.take().unwrap();
        let mut line = String::new();
        let mut from = BufReader::with_capacity(64, child.stdout.take().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(move || to.write_all(input));
            from.read_line(&mut line).unwrap();
            drop(from);
        });
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(line.contains("i0") || line.contains("r0"), "{line}");
    };
    let stored = || tool.run(["ls", "--json"]).exits(0).out.lines().count();
    read_one_line(&["import", "in", "--json"], b"");
    assert_eq!(stored(), SESSIONS);
    read_one_line(&["export", "jsonl", "--out", "out", "--json"], b"");
    let folder = fs::read_dir(tool.path("out")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_dir(folder).unwrap().count(), SESSIONS);
    let creates: String =
        (0..SESSIONS).map(|index| format!("{{\"op\":\"create\",\"id\":\"r{index}\"}}\n")).collect();
    read_one_line(&["record"], creates.as_bytes());
    assert_eq!(stored(), 2 * SESSIONS);
}

#[test]
fn a_followers_end_comes_with_its_readers() {
    let tool = with_session();
    let mut child = tool.command(["tail", "s", "-f", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(60), "it goes on, though nobody can read it");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_store_that_is_not_there_is_called_so() {
    let tool = Tool::new();
    for command in [&["ls"][..], &["events", "s"], &["fork", "s"], &["verify"]] {
        let ran = tool.run(command.iter().copied()).exits(1);
        assert!(ran.err.contains("no store") && ran.out.is_empty(), "{}", ran.err);
    }
}

/// An index that was built after the damage has no record in the damaged place. What is missing is known all the same.
#[test]
fn damage_keeps_its_session_and_seqs_when_a_writer_has_been_there() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    for id in ["a", "b"] {
        recorder.ok(&format!(r#"{{"op":"create","id":"{id}"}}"#));
    }
    for seq in 0..9 {
        for id in ["a", "b"] {
            let data = format!("needle-{id}{seq}-{}", "x".repeat(600));
            recorder.ok(&format!(r#"{{"op":"append","session":"{id}","type":"x","data":"{data}"}}"#));
            recorder.ok(r#"{"op":"flush"}"#);
        }
    }
    assert_eq!(recorder.end().1, Some(0));
    let segment = tool.store().join("segments/00000001.seg");
    let mut bytes = fs::read(&segment).unwrap();
    for needle in ["needle-a3", "needle-b6"] {
        let at = bytes.windows(needle.len()).position(|window| window == needle.as_bytes()).unwrap();
        bytes[at] ^= 1;
    }
    fs::write(&segment, bytes).unwrap();
    let places = || -> Vec<Value> {
        let findings = tool.run(["verify", "--json"]).exits(1).json();
        findings.iter().map(|found| json!([found["session"], found["fromSeq"], found["toSeq"]])).collect()
    };
    let expected = [json!(["a", 3, 3]), json!(["b", 6, 6])];
    assert_eq!(places(), expected);
    // A writer opens the store, recovers, and seals the segment.
    assert_eq!(tool.recorder().end(), (vec![], Some(0)));
    assert!(segment.with_extension("idx").exists());
    assert_eq!(places(), expected);
    let ran = tool.run(["events", "a"]).exits(1);
    assert!(
        ran.err.contains("a: event 3 is lost to damage: segments/00000001.seg: the record of seq 3 "),
        "{}",
        ran.err
    );
}
