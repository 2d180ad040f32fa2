//! JSONL files against the vectors: what is kept, what is cut, what is refused, and where.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sessionlog::event::{Checker, RepairState, Rule, Time};
use sessionlog::interop::jsonl::{MAX_LINE_BYTES, Reader};
use sessionlog::interop::{Ending, Hole, HoleReason, Verdict};
use sessionlog::{Error, ErrorKind};

fn vectors() -> Option<(PathBuf, Value)> {
    let shared = std::env::var("SESSIONLOG_SHARED")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../shared").to_owned());
    let folder = Path::new(&shared).join("conformance/jsonl");
    let index = folder.join("index.json");
    if !index.exists() {
        println!("skipped: {} is not there", index.display());
        return None;
    }
    let index = serde_json::from_str(&fs::read_to_string(index).unwrap()).unwrap();
    Some((folder, index))
}

fn judge(bytes: &[u8]) -> Result<Verdict, Error> {
    Reader::new(bytes, "a.jsonl")?.finish()
}

/// The rules that the kept events of a file break.
fn broken_rules(bytes: &[u8]) -> Vec<Rule> {
    let mut reader = Reader::new(bytes, "a.jsonl").unwrap();
    let mut checker = Checker::new();
    let mut rules = Vec::new();
    while let Some(violations) = reader.check_next(&mut checker).unwrap() {
        rules.extend(violations.iter().map(|violation| violation.rule));
    }
    rules
}

fn line_of(hole: &Hole) -> u64 {
    hole.line().unwrap().0
}

fn offset_of(hole: &Hole) -> u64 {
    hole.line().unwrap().1
}

fn torn(verdict: &Verdict) -> &Hole {
    match &verdict.ending {
        Ending::Torn(hole) => hole,
        other => panic!("{other:?}"),
    }
}

fn damaged(verdict: &Verdict) -> &Hole {
    match &verdict.ending {
        Ending::Damaged(hole) => hole,
        other => panic!("{other:?}"),
    }
}

/// What repair would append: types, seqs, calls, and what they came from. Texts are each one's own.
fn closers(bytes: &[u8]) -> Vec<Value> {
    let mut reader = Reader::new(bytes, "a.jsonl").unwrap();
    let (mut state, mut seq, mut time) = (RepairState::new(), 0, Time::from_millis(0));
    while let Some(event) = reader.next_event().unwrap() {
        state.observe(&event);
        (seq, time) = (event.seq() + 1, event.time().clone());
    }
    let closers = state.closers(seq, &time);
    closers.iter().map(|event| without_texts(serde_json::from_str(&event.to_line()).unwrap())).collect()
}

fn recorded_closers(upstream: &Value) -> Vec<Value> {
    upstream["closers"].as_array().unwrap().iter().cloned().map(without_texts).collect()
}

fn without_texts(mut event: Value) -> Value {
    if let Some(data) = event["data"].as_object_mut() {
        data.remove("content");
        data.remove("error");
    }
    event
}

/// Where the semantics differ from the recorded verdicts, or go beyond them. `true`: checked here.
fn differs(name: &str, bytes: &[u8], judged: &Result<Verdict, Error>) -> bool {
    let whole = |verdict: &Verdict| assert_eq!(verdict.ending, Ending::Whole, "{name}");
    let lines = u64::try_from(bytes.iter().filter(|byte| **byte == b'\n').count()).unwrap();
    match name {
        // Not one JSON object is a hole like any other, and its offset is the file's own.
        "line-null-in-tail" => {
            let verdict = judged.as_ref().unwrap();
            assert_eq!(torn(verdict).reason, HoleReason::NotAnObject, "{name}");
            assert_eq!((verdict.lost_bytes(), verdict.events), (5, lines - 2), "{name}");
        }
        "line-null-committed" => {
            assert_eq!(damaged(judged.as_ref().unwrap()).reason, HoleReason::NotAnObject, "{name}");
        }
        "invalid-utf8-in-tail-string" => {
            let hole = torn(judged.as_ref().unwrap());
            assert!(matches!(hole.reason, HoleReason::NotUtf8 { .. }), "{name}: {hole}");
            assert_eq!(line_of(hole), lines, "{name}");
        }
        "invalid-utf8-then-torn-tail" => {
            let hole = torn(judged.as_ref().unwrap());
            assert!(matches!(hole.reason, HoleReason::NotUtf8 { .. }), "{name}: {hole}");
        }
        "invalid-utf8-committed" => {
            let hole = damaged(judged.as_ref().unwrap());
            assert!(matches!(hole.reason, HoleReason::NotUtf8 { .. }), "{name}: {hole}");
        }
        // Read like any file, and refused as a session: the envelope's shape, I2, I4.
        "event-without-type"
        | "last-event-without-time"
        | "turn-start-without-data"
        | "event-without-data-unknown-type" => {
            whole(judged.as_ref().unwrap());
            assert!(broken_rules(bytes).contains(&Rule::V), "{name}");
        }
        "surface-event-without-op" => {
            whole(judged.as_ref().unwrap());
            assert!(broken_rules(bytes).contains(&Rule::I2), "{name}");
        }
        "bad-replace-in-file" => {
            whole(judged.as_ref().unwrap());
            assert!(broken_rules(bytes).contains(&Rule::I4), "{name}");
        }
        // The header counts, not where the file lies, so there is nothing to trip over.
        "header-cwd-differs-open" => whole(judged.as_ref().unwrap()),
        "header-cwd-differs-torn" => {
            assert_eq!(torn(judged.as_ref().unwrap()).reason, HoleReason::Unterminated, "{name}");
        }
        _ => return false,
    }
    true
}

#[test]
fn every_variant_gets_its_verdict() {
    let Some((folder, index)) = vectors() else { return };
    let (mut same, mut different) = (0, 0);
    for variant in index["variants"].as_array().unwrap() {
        let name = variant["name"].as_str().unwrap();
        let bytes = fs::read(folder.join(variant["file"].as_str().unwrap())).unwrap();
        let judged = judge(&bytes);
        if differs(name, &bytes, &judged) {
            different += 1;
            continue;
        }
        same += 1;
        let upstream = &variant["upstream"];
        let Some(error) = upstream["error"].as_str() else {
            let verdict = judged.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(verdict.events, upstream["kept"].as_u64().unwrap(), "{name}");
            assert_eq!(verdict.kept_bytes, upstream["committedBytes"].as_u64().unwrap(), "{name}");
            assert_eq!(verdict.lost_bytes(), upstream["tornBytes"].as_u64().unwrap(), "{name}");
            assert_eq!(matches!(verdict.ending, Ending::Torn(_)), verdict.lost_bytes() > 0, "{name}");
            assert_eq!(closers(&bytes), recorded_closers(upstream), "{name}");
            continue;
        };
        match error {
            "committed-line-unparsable" | "committed-seq-gap" => {
                let verdict = judged.unwrap_or_else(|error| panic!("{name}: {error}"));
                let hole = damaged(&verdict);
                assert_eq!(line_of(hole), upstream["eventLine"].as_u64().unwrap() + 1, "{name}");
                assert_eq!(hole.seq, line_of(hole) - 2, "{name}");
                let newlines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
                let before = newlines.map(|(at, _)| at + 1).nth(usize::try_from(line_of(hole)).unwrap() - 2);
                assert_eq!(offset_of(hole), u64::try_from(before.unwrap()).unwrap(), "{name}");
                if error == "committed-seq-gap" {
                    let found = upstream["gotSeq"].as_str().map(str::to_owned);
                    assert_eq!(hole.reason, HoleReason::Place { found }, "{name}");
                }
            }
            "unsupported-version" => assert_eq!(judged.unwrap_err().kind(), ErrorKind::Version, "{name}"),
            "no-header-line" | "header-not-json" | "not-a-session-header" => {
                let error = judged.unwrap_err();
                assert!(error.to_string().contains("a.jsonl"), "{name}: {error}");
                assert_ne!(error.kind(), ErrorKind::Version, "{name}: {error}");
            }
            other => panic!("{name}: {other} is not known"),
        }
    }
    println!("{same} variants as recorded, {different} as the semantics say");
    assert!(same > 200 && different > 20);
}

#[test]
fn every_cut_keeps_what_it_must() {
    let Some((folder, index)) = vectors() else { return };
    let mut count = 0;
    for base in index["cuts"].as_array().unwrap() {
        let bytes = fs::read(folder.join(base["file"].as_str().unwrap())).unwrap();
        for outcome in base["outcomes"].as_array().unwrap() {
            count += 1;
            let length = usize::try_from(outcome[0].as_u64().unwrap()).unwrap();
            let judged = judge(&bytes[..length]);
            let Some(kept) = outcome[1].as_u64() else {
                assert!(judged.is_err(), "{} cut to {length}", base["label"]);
                continue;
            };
            let verdict = judged.unwrap();
            assert_eq!(verdict.events, kept, "{} cut to {length}", base["label"]);
            assert_eq!(
                verdict.lost_bytes(),
                outcome[2].as_u64().unwrap(),
                "{} cut to {length}",
                base["label"]
            );
        }
    }
    println!("{count} cuts");
    assert!(count > 4000);
}

const HEADER: &str = r#"{"type":"session","version":0,"id":"s","createdAt":1}"#;

fn event(event_type: &str, seq: u64) -> String {
    format!(r#"{{"type":"{event_type}","seq":{seq},"time":1,"data":{{}}}}"#)
}

fn file(lines: &[&str]) -> Vec<u8> {
    let mut text = String::new();
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    text.into_bytes()
}

fn read_all(bytes: &[u8]) -> (Vec<String>, Verdict) {
    let mut reader = Reader::new(bytes, "a.jsonl").unwrap();
    let mut lines = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        lines.push(event.to_line());
    }
    (lines, reader.finish().unwrap())
}

#[test]
fn valid_lines_come_back_byte_for_byte() {
    let odd = [
        "{\"type\":\"x\",\"seq\":0,\"time\":1.50,\"data\":{\"a\":\"\\ud800\",\"b\":1E2}}\r",
        " {\"data\":null , \"time\":-0,\"seq\":1.0,\"type\":\"y\",\"origin\":{\"k\":[]}}\t",
        "{\"seq\":9,\"type\":\"z\",\"seq\":2,\"time\":3,\"data\":[]}",
        "{\"type\":\"w\",\"seq\":3e0,\"time\":4,\"data\":\"\u{2028}\"}",
    ];
    let mut lines = vec![HEADER];
    lines.extend(odd);
    let (read, verdict) = read_all(&file(&lines));
    assert_eq!(read, odd);
    assert_eq!(verdict.ending, Ending::Whole);
}

#[test]
fn a_hole_is_damage_when_a_later_line_ends_a_turn() {
    let start = event("turn/start", 0);
    let end = event("turn/end", 2);
    for hole in ["", "null", "[]", "{", "\0\0\0", "{\"type\":\"x\",\"seq\":7,\"time\":1,\"data\":1}"] {
        let verdict = judge(&file(&[HEADER, &start, hole, &end])).unwrap();
        let found = damaged(&verdict);
        assert_eq!((line_of(found), found.seq, verdict.events), (3, 1, 1), "{hole:?}");
        assert_eq!(offset_of(found), u64::try_from(HEADER.len() + start.len() + 2).unwrap());
        let verdict = judge(&file(&[HEADER, &start, hole, &event("step/start", 2)])).unwrap();
        assert_eq!(line_of(torn(&verdict)), 3, "{hole:?}");
    }
    // The line that is out of place may itself be the one that ends a turn; escapes do not hide it.
    let moved = r#"{"type":"turn\/end","seq":5,"time":1,"data":{}}"#;
    assert_eq!(line_of(damaged(&judge(&file(&[HEADER, &start, moved])).unwrap())), 3);
    assert_eq!(line_of(damaged(&judge(&file(&[HEADER, &start, "", moved])).unwrap())), 3);
    // Without its LF it proves nothing.
    let mut bytes = file(&[HEADER, &start, ""]);
    bytes.extend_from_slice(event("turn/end", 2).as_bytes());
    assert_eq!(line_of(torn(&judge(&bytes).unwrap())), 3);
}

#[test]
fn packed_rows_become_the_events_they_stand_for() {
    let rows = [
        r#"{"type":"text-chunks","seq0":0,"time0":10,"data":{"turn":1,"step":2,"index":0,"dt":[5,-7],"texts":["a\"\\","]\ud800","é"]}}"#,
        r#"{"type":"tool-call-chunks","seq0":3,"time0":20,"data":{"turn":1,"step":2,"index":1,"dt":[0],"id":"c","name":"n","args":["{","}"]}}"#,
        r#"{"type":"reasoning-chunks","seq0":5,"time0":0,"data":{"turn":1,"step":2,"index":2,"dt":[],"texts":[""]}}"#,
    ];
    let mut lines = vec![HEADER];
    lines.extend(rows);
    let (read, verdict) = read_all(&file(&lines));
    let chunk = |seq: u64, time: i64, chunk: &str| {
        format!(
            r#"{{"type":"assistant/chunk","seq":{seq},"time":{time},"data":{{"turn":1,"step":2,"chunk":{chunk}}}}}"#
        )
    };
    let expected = [
        chunk(0, 10, r#"{"type":"text-delta","index":0,"text":"a\"\\"}"#),
        chunk(1, 15, r#"{"type":"text-delta","index":0,"text":"]\ud800"}"#),
        chunk(2, 8, r#"{"type":"text-delta","index":0,"text":"é"}"#),
        chunk(3, 20, r#"{"type":"tool-call-delta","index":1,"id":"c","name":"n","argumentsDelta":"{"}"#),
        chunk(4, 20, r#"{"type":"tool-call-delta","index":1,"id":"c","name":"n","argumentsDelta":"}"}"#),
        chunk(5, 0, r#"{"type":"reasoning-delta","index":2,"text":""}"#),
    ];
    assert_eq!(read, expected);
    assert_eq!((verdict.packed_rows, verdict.packed_events, verdict.lost_bytes()), (3, 6, 0));
}

#[test]
fn a_malformed_row_is_a_hole() {
    let row = |data: &str| format!(r#"{{"type":"text-chunks","seq0":0,"time0":1,"data":{data}}}"#);
    for data in [
        r#"{"turn":1,"step":1,"index":0,"dt":[1],"texts":["a"]}"#,
        r#"{"turn":1,"step":1,"index":0,"dt":[],"texts":["a","b"]}"#,
        r#"{"turn":1,"step":1,"index":0,"dt":[],"texts":[]}"#,
        r#"{"turn":1,"step":1,"index":0,"dt":[1.5],"texts":["a","b"]}"#,
        r#"{"turn":1,"step":1,"index":0,"dt":[9223372036854775807],"texts":["a","b"]}"#,
        r#"{"turn":1,"step":1,"index":0,"dt":[],"texts":[7]}"#,
        r#"{"turn":"1","step":1,"index":0,"dt":[],"texts":["a"]}"#,
        r#"{"turn":1,"step":1,"index":0,"dt":[],"texts":["a"],"more":1}"#,
        r#"{"turn":1,"step":1,"index":0,"dt":[],"args":["a"]}"#,
        "[]",
    ] {
        let verdict = judge(&file(&[HEADER, &row(data), &event("turn/end", 1)])).unwrap();
        let hole = damaged(&verdict);
        assert_eq!((line_of(hole), verdict.events), (2, 0), "{data}");
        assert!(matches!(hole.reason, HoleReason::PackedRow(_)), "{data}: {hole}");
    }
    // A few megabytes that would be terabytes.
    let (id, dt, args) = ("i".repeat(100_000), vec!["0"; 99_999].join(","), vec!["\"\""; 100_000].join(","));
    let bomb = format!(
        r#"{{"type":"tool-call-chunks","seq0":0,"time0":1,"data":{{"turn":1,"step":1,"index":0,"id":"{id}","dt":[{dt}],"args":[{args}]}}}}"#
    );
    assert!(matches!(torn(&judge(&file(&[HEADER, &bomb])).unwrap()).reason, HoleReason::PackedRow(_)));
    let good = row(r#"{"turn":1,"step":1,"index":0,"dt":[],"texts":["a"]}"#);
    let moved = good.replace("\"seq0\":0", "\"seq0\":4");
    let hole = torn(&judge(&file(&[HEADER, &moved])).unwrap()).clone();
    assert_eq!(hole.reason, HoleReason::Place { found: Some("4".to_owned()) });
}

#[test]
fn a_line_over_the_limit_is_a_hole_and_is_not_held() {
    /// Endless `a`s, then the tail.
    struct Long {
        left: usize,
        tail: &'static [u8],
    }
    impl std::io::Read for Long {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            if self.left == 0 {
                return self.tail.read(into);
            }
            let length = into.len().min(self.left);
            into[..length].fill(b'a');
            self.left -= length;
            Ok(length)
        }
    }
    let source = std::io::Read::chain(
        std::io::Cursor::new(file(&[HEADER])),
        Long { left: MAX_LINE_BYTES + 1, tail: b"\n{\"type\":\"turn/end\"}\n" },
    );
    let verdict = Reader::new(std::io::BufReader::new(source), "a.jsonl").unwrap().finish().unwrap();
    let length = u64::try_from(MAX_LINE_BYTES + 2).unwrap();
    assert_eq!(damaged(&verdict).reason, HoleReason::TooLong { length });
}

#[test]
fn an_event_that_breaks_the_envelope_is_named_with_its_line() {
    let bytes = file(&[HEADER, &event("a", 0), r#"{"type":"b","seq":1,"data":1}"#]);
    let mut reader = Reader::new(&*bytes, "a.jsonl").unwrap();
    assert!(reader.next_event().unwrap().is_some());
    let error = reader.next_event().unwrap_err();
    assert!(error.to_string().contains("a.jsonl line 3, event 1"), "{error}");
    assert!(reader.next_event().unwrap().is_none());
    // A number that no double holds is no hole: the file is refused, not cut.
    let bytes = file(&[HEADER, r#"{"type":"b","seq":0,"time":1,"data":1e400}"#]);
    let error = Reader::new(&*bytes, "a.jsonl").unwrap().next_event().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidValue, "{error}");
}

#[test]
fn odd_values_are_kept_or_named_and_depth_needs_no_stack() {
    let line = |data: &str| format!(r#"{{"type":"x","seq":0,"time":1,"data":{data}}}"#);
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for data in ["9007199254740993", "-0", "1E-400", r#"{"a":1,"a":2}"#, r#""\u0000\u2028""#, &nested(9000)] {
        let bytes = file(&[HEADER, &line(data)]);
        let (read, verdict) = read_all(&bytes);
        assert_eq!((read, verdict.ending), (vec![line(data)], Ending::Whole));
    }
    let deep = file(&[HEADER, &line(&nested(300_000))]);
    let error = Reader::new(&*deep, "a.jsonl").unwrap().next_event().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidValue, "{error}");
    assert_eq!(broken_rules(&deep).len(), 1);
    let open = file(&[HEADER, &line(&"[".repeat(300_000)), &event("turn/end", 1)]);
    assert!(matches!(damaged(&judge(&open).unwrap()).reason, HoleReason::NotJson(_)));
    // Behind a hole such a line is looked at, too.
    let behind = file(&[HEADER, "", &line(&nested(300_000)).replace("\"x\"", "\"turn/end\"")]);
    assert_eq!(line_of(damaged(&judge(&behind).unwrap())), 2);
}
