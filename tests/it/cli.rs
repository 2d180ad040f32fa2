//! The command-line tool: what it prints, what it writes, how it exits.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::tool::{Tool, lines_of};

pub(crate) const HEADER: &str = r#"{"type":"session","version":0,"id":"s","createdAt":1.5,"cwd":"/w","parentSession":"p","seedLength":1}"#;

/// A session with a compaction, that stops in the middle of a turn.
pub(crate) const LINES: [&str; 9] = [
    HEADER,
    r#"{"type":"turn/start","seq":0,"time":10,"data":{"turn":1,"trigger":{"kind":"continuation"}}}"#,
    r#"{"type":"user/message","seq":1,"time":11,"data":{"content":[{"type":"text","text":"a"}],"source":{"kind":"user"}},"surfaceOp":"append"}"#,
    r#"{"type":"context/message","seq":2,"time":12,"data":{"content":[{"type":"text","text":"b"}],"source":{"kind":"plugin","plugin":"p"}},"surfaceOp":"append"}"#,
    r#"{"type":"step/start","seq":3,"time":13,"data":{"turn":1,"step":1}}"#,
    r#"{"type":"assistant/chunk","seq":4,"time":14,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"é"}}}"#,
    r#"{"type":"assistant/message","seq":5,"time":15,"data":{"turn":1,"step":1,"content":[{"type":"tool-call","id":"c","name":"n","arguments":"{}"}]},"sourceEventSeqs":[4],"surfaceOp":"append"}"#,
    r#"{"type":"tool/call","seq":6,"time":16,"data":{"turn":1,"step":1,"callId":"c","name":"n","arguments":"{}"}}"#,
    r#"{"type":"context/message","seq":7,"time":17,"data":{"content":[],"source":{"kind":"plugin","plugin":"q"}},"sourceEventSeqs":[1,2],"surfaceOp":{"op":"replace","start":1,"end":2},"origin":"x"}"#,
];

pub(crate) fn with_session() -> Tool {
    let tool = Tool::new();
    tool.import("s.jsonl", &LINES).exits(0);
    tool
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_demo_holds_and_its_store_agrees_with_it() {
    let tool = Tool::new();
    let dir = tool.path("demo");
    let demo =
        tool.run(["demo".as_ref(), "--json".as_ref(), "--dir".as_ref(), dir.as_os_str()]).exits(0).one();
    assert_eq!(demo["ok"], true);
    assert!(demo["recovery"]["cut"][0]["length"].as_u64().unwrap() > 0);
    assert_eq!(demo["killed"]["signal"], 9);
    assert!(demo["recorded"]["flushes"].as_u64().unwrap() > 5);
    let at = |command: &[&str]| {
        let mut args: Vec<&OsStr> = vec!["--store".as_ref(), dir.as_os_str(), "--json".as_ref()];
        args.extend(command.iter().map(AsRef::<OsStr>::as_ref));
        tool.run(args)
    };
    let id = demo["session"].as_str().unwrap();
    let events = at(&["events", id]).exits(0).json();
    assert_eq!(json!(events.len()), demo["events"]);
    let closers = demo["closers"].as_array().unwrap();
    assert_eq!(&events[events.len() - closers.len()..], &closers[..]);
    assert_eq!(json!(at(&["messages", id]).exits(0).json()), demo["messages"]);
    assert_eq!(json!(at(&["verify"]).exits(0).json()), demo["verify"]["findings"]);
    assert_eq!(at(&["check", id]).exits(0).out, "");
    let surface = at(&["surface", id]).exits(0).json();
    let nodes = demo["surface"].as_array().unwrap();
    assert_eq!(surface.len(), nodes.len());
    for (line, node) in surface.iter().zip(nodes) {
        assert_eq!(
            (&line["seq"], line.get("prev"), &line["type"]),
            (&node["seq"], node.get("prev"), &node["type"])
        );
    }
    // Again in the same place: refused, and nothing changed.
    let again = tool.run(["demo".as_ref(), "--dir".as_ref(), dir.as_os_str()]).exits(1);
    assert!(again.err.contains("not empty"), "{}", again.err);
    assert_eq!(at(&["events", id]).exits(0).json().len(), events.len());
}

#[test]
fn the_demo_in_words_says_that_the_power_cut_is_played() {
    let tool = Tool::new();
    let demo = tool.run(["demo"]).exits(0);
    for words in ["acknowledged", "plays the power cut", "torn bytes", "quarantine", "it shadows", "verify"] {
        assert!(demo.out.contains(words), "{words}: {}", demo.out);
    }
    assert!(!demo.out.contains("NO "), "{}", demo.out);
    assert!(!demo.out.contains('\u{1b}'), "a terminal would obey it");
}

#[test]
fn ls_and_show_leave_out_what_is_not_there() {
    let tool = with_session();
    tool.import("t.jsonl", &[r#"{"type":"session","version":0,"id":"t","createdAt":2}"#]).exits(0);
    let lines = tool.run(["ls", "--json"]).exits(0).json();
    let all = [
        "id",
        "createdAt",
        "cwd",
        "parentSession",
        "seedLength",
        "events",
        "bytes",
        "firstTime",
        "lastTime",
        "open",
    ];
    assert_eq!(keys(&lines[0]), BTreeSet::from(all));
    assert_eq!(keys(&lines[1]), BTreeSet::from(["id", "createdAt", "events", "bytes", "open"]));
    assert_eq!((&lines[0]["createdAt"], &lines[0]["open"]), (&json!(1.5), &json!(true)));
    assert_eq!(
        (&lines[0]["firstTime"], &lines[0]["lastTime"], &lines[0]["events"]),
        (&json!(10), &json!(17), &json!(8))
    );
    let shown = tool.run(["show", "s", "--json"]).exits(0).one();
    assert_eq!(shown["header"], serde_json::from_str::<Value>(HEADER).unwrap());
    assert_eq!((&shown["surface"], &shown["closers"]), (&json!(2), &json!(3)));
    for command in
        ["ls", "show s", "events s", "messages s", "surface s", "provenance s 7", "stats", "tail s"]
    {
        assert!(!tool.run(command.split(' ')).exits(0).out.is_empty(), "{command}");
    }
}

#[test]
fn events_are_the_lines_as_exported() {
    let tool = with_session();
    assert_eq!(tool.run(["events", "s", "--json"]).exits(0).out, lines_of(&LINES[1..]));
    assert_eq!(
        tool.run(["events", "s", "--json", "--from", "2", "--limit", "2"]).exits(0).out,
        lines_of(&LINES[3..5])
    );
    let only =
        tool.run(["events", "s", "--json", "--type", "context/message", "--limit", "1", "--from", "3"]);
    assert_eq!(only.exits(0).out, lines_of(&LINES[8..]));
    assert_eq!(tool.run(["events", "s", "--json", "--from", "99"]).exits(0).out, "");
    assert_eq!(tool.run(["tail", "s", "--json", "-n", "2"]).exits(0).out, lines_of(&LINES[7..]));
    assert!(tool.run(["events", "nobody"]).exits(1).err.contains("nobody"));
}

#[test]
fn messages_surface_and_provenance() {
    let tool = with_session();
    let messages = tool.run(["messages", "s", "--json"]).exits(0).json();
    assert_eq!(messages.len(), 2);
    assert_eq!(keys(&messages[0]), BTreeSet::from(["role", "content"]));
    assert_eq!(messages[0]["content"][0]["text"], "<context source=\"plugin\">");
    let surface = tool.run(["surface", "s", "--json"]).exits(0).json();
    assert_eq!(surface[0], json!({"seq": 7, "next": 5, "type": "context/message"}));
    assert_eq!(surface[1], json!({"seq": 5, "prev": 7, "type": "assistant/message"}));
    let of = |seq: &str| tool.run(["provenance", "s", seq, "--json"]).exits(0).one();
    assert_eq!(of("7"), json!({"seq": 7, "sources": [1, 2], "derived": [], "shadows": [1, 2]}));
    assert_eq!(of("2"), json!({"seq": 2, "sources": [], "derived": [7], "shadows": [], "shadowedBy": 7}));
    assert_eq!(of("4"), json!({"seq": 4, "sources": [], "derived": [5], "shadows": []}));
    tool.run(["provenance", "s", "8"]).exits(1);
}

#[test]
fn check_finds_what_is_broken_in_a_session_and_in_a_file() {
    let tool = with_session();
    assert_eq!(tool.run(["check", "s"]).exits(0).out, "");
    let file = tool.file(
        "bad.jsonl",
        lines_of(&[
            HEADER,
            r#"{"type":"x","seq":0,"time":1,"data":1}"#,
            r#"{"type":"user/message","seq":1,"time":1,"data":{"content":[]},"surfaceOp":"prepend"}"#,
            r#"{"type":"turn/start","seq":2,"data":{"turn":1}}"#,
        ]),
    );
    let check =
        |path: &Path| tool.run(["check".as_ref(), "--json".as_ref(), "--file".as_ref(), path.as_os_str()]);
    let found = check(&file).exits(1).json();
    let rules: Vec<(&str, u64)> =
        found.iter().map(|line| (line["rule"].as_str().unwrap(), line["seq"].as_u64().unwrap())).collect();
    assert!(
        rules.contains(&("I10", 0)) && rules.contains(&("I4", 1)) && rules.contains(&("V", 2)),
        "{rules:?}"
    );
    assert_eq!(keys(&found[0]), BTreeSet::from(["rule", "seq", "message"]));
    let damaged =
        tool.file("hole.jsonl", lines_of(&[HEADER, "", r#"{"type":"turn/end","seq":1,"time":1,"data":{}}"#]));
    assert_eq!(check(&damaged).exits(1).one()["rule"], "X1");
    let torn = tool.file("torn.jsonl", format!("{HEADER}\nx"));
    assert!(check(&torn).exits(0).err.contains("torn tail of 1 bytes"));
    assert_eq!(tool.run(["ls", "--json"]).exits(0).json().len(), 1, "check stores nothing");
}

#[test]
fn repair_is_dry_or_durable_and_done_once() {
    let tool = with_session();
    let dry = tool.run(["repair", "s", "--dry-run", "--json"]).exits(0);
    let types: Vec<Value> = dry.json().iter().map(|event| event["type"].clone()).collect();
    assert_eq!(types, ["tool/result", "step/end", "turn/end"]);
    assert_eq!(tool.run(["stats", "--json"]).exits(0).one()["events"], 8);
    let dry_all = tool.run(["repair", "--all", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(
        (dry_all.len(), &dry_all[0]["session"], &dry_all[2]["event"]["type"]),
        (3, &json!("s"), &json!("turn/end"))
    );
    assert_eq!(tool.run(["repair", "s", "--json"]).exits(0).out, dry.out);
    assert_eq!(tool.run(["repair", "s", "--json"]).exits(0).out, "");
    assert_eq!(tool.run(["repair", "--all", "--json"]).exits(0).out, "");
    let events = tool.run(["events", "s", "--json"]).exits(0).out;
    assert_eq!(events, lines_of(&LINES[1..]) + &dry.out);
    assert_eq!(tool.run(["ls", "--json"]).exits(0).one()["open"], false);
}

#[test]
fn a_forks_file_is_complete_also_when_its_parent_is_gone() {
    let tool = with_session();
    assert!(tool.run(["fork", "s"]).exits(1).err.contains("turn"), "an open turn is refused");
    let fork =
        tool.run(["fork", "s", "--at", "1", "--id", "f", "--close-open-turn", "--json"]).exits(0).one();
    assert_eq!(
        (&fork["id"], &fork["parentSession"], &fork["seedLength"], &fork["cwd"]),
        (&json!("f"), &json!("s"), &json!(2), &json!("/w"))
    );
    let deleted = tool.run(["delete", "s", "--json"]).exits(0).one();
    assert_eq!(deleted, json!({"deleted": "s"}));
    tool.run(["delete", "s"]).exits(1);
    let out = tool.path("out");
    tool.run(["export".as_ref(), "jsonl".as_ref(), "f".as_ref(), "--out".as_ref(), out.as_os_str()]).exits(0);
    let exported = fs::read_dir(&out).unwrap().next().unwrap().unwrap().path().join("f.jsonl");
    let text = fs::read_to_string(exported).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[1], lines[2], lines.len()), (LINES[1], LINES[2], 4));
    assert!(lines[3].contains("turn/end"));
}

#[test]
fn wrong_usage_exits_2_and_help_says_what_codes_mean() {
    let tool = Tool::new();
    for wrong in [
        "",
        "sing",
        "show",
        "check",
        "repair",
        "events s --from x",
        "provenance s",
        "repair s --all",
        "export",
        "export jsonl",
    ] {
        tool.run(wrong.split(' ').filter(|word| !word.is_empty())).exits(2);
    }
    let help = tool.run(["--help"]).exits(0).out;
    for words in ["Exit codes:", "$SESSIONLOG_STORE", "./.sessionlog", "demo", "import", "record", "tail"] {
        assert!(help.contains(words), "{words}");
    }
    assert!(!help.contains("demo-child"));
    assert!(tool.run(["record", "--help"]).exits(0).out.contains("68157440 bytes"));
}

#[test]
fn only_import_and_record_make_a_store() {
    let tool = Tool::new();
    for command in [
        "ls",
        "show s",
        "events s",
        "messages s",
        "surface s",
        "provenance s 0",
        "check s",
        "repair s",
        "fork s",
        "delete s",
        "verify",
        "stats",
        "backup b",
        "tail s",
        "export jsonl --out o",
        "repair --all",
        "repair s --dry-run",
    ] {
        assert!(!tool.run(command.split(' ')).exits(1).err.is_empty(), "{command}");
        assert!(!tool.store().exists(), "{command}");
    }
    tool.recorder().end();
    assert!(tool.store().exists());
    let tool = Tool::new();
    let mut command = tool.command(["ls"]);
    command.env("SESSIONLOG_STORE", "/nowhere");
    // --store goes before the environment.
    let output = command.output().unwrap();
    assert!(!String::from_utf8(output.stderr).unwrap().contains("/nowhere"));
}

#[test]
fn a_closed_pipe_is_success() {
    let tool = Tool::new();
    let data = "x".repeat(1000);
    let mut lines = vec![HEADER.to_owned()];
    lines.extend((0..2000).map(|seq| format!(r#"{{"type":"x","seq":{seq},"time":1,"data":"{data}"}}"#)));
    tool.import("s.jsonl", &lines).exits(0);
    for command in ["events s --json", "events s", "tail s -n 2000"] {
        let mut child =
            tool.command(command.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{command}");
    }
}

#[test]
fn damage_is_found_and_the_rest_stays_readable() {
    let tool = Tool::new();
    let word = |seq: u32| format!("needle-{seq:04}-{}", "x".repeat(100));
    let mut recorder = tool.recorder();
    recorder.ok(r#"{"op":"create","id":"s"}"#);
    for seq in 0..50 {
        recorder.ok(&format!(r#"{{"op":"append","session":"s","type":"x","data":"{}"}}"#, word(seq)));
        recorder.ok(r#"{"op":"flush"}"#);
    }
    assert_eq!(recorder.end().1, Some(0));
    tool.run(["verify"]).exits(0);
    let segment = fs::read_dir(tool.store().join("segments"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "seg"))
        .unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    let needle = word(20).into_bytes();
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    bytes[at + 3] ^= 4;
    fs::write(&segment, bytes).unwrap();
    let findings = tool.run(["verify", "--json"]).exits(1).json();
    let file = Path::new("segments").join(segment.file_name().unwrap());
    let finding = findings
        .iter()
        .find(|finding| finding["file"] == json!(file))
        .unwrap_or_else(|| panic!("{findings:?}"));
    assert_eq!(
        (&finding["session"], &finding["fromSeq"], &finding["toSeq"]),
        (&json!("s"), &json!(20), &json!(20))
    );
    let ran = tool.run(["events", "s", "--json"]).exits(1);
    let seqs: Vec<u64> = ran.json().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (0..50).filter(|seq| *seq != 20).collect::<Vec<u64>>());
    assert!(ran.err.contains("20"), "{}", ran.err);
    let out = tool.path("out");
    tool.run(["export".as_ref(), "jsonl".as_ref(), "--out".as_ref(), out.as_os_str()]).exits(1);
}

#[test]
fn readers_work_beside_a_writer_and_a_second_writer_is_refused() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    recorder.ok(r#"{"op":"create","id":"s"}"#);
    recorder.ok(r#"{"op":"flush"}"#);
    let mut tail = tool.command(["tail", "s", "-f", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut followed = BufReader::new(tail.stdout.take().unwrap());
    for seq in 0..3 {
        let event_type = if seq == 0 { "turn/start" } else { "x" };
        recorder.ok(&format!(r#"{{"op":"append","session":"s","type":"{event_type}","data":{{"turn":1}}}}"#));
        recorder.ok(r#"{"op":"flush","session":"s"}"#);
        let mut line = String::new();
        followed.read_line(&mut line).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["seq"], seq);
        assert_eq!(tool.run(["events", "s", "--json"]).exits(0).json().len(), seq + 1);
    }
    tail.kill().unwrap();
    tail.wait().unwrap();
    let holder = recorder.child.id().to_string();
    for command in ["import x.jsonl", "repair s", "fork s", "delete s"] {
        tool.file("x.jsonl", lines_of(&[HEADER]));
        let ran = tool.run(command.split(' ')).exits(1);
        assert!(ran.err.contains(&holder), "{command}: {}", ran.err);
    }
    for command in
        ["ls", "show s", "messages s", "surface s", "check s", "verify", "stats", "repair s --dry-run"]
    {
        tool.run(command.split(' ')).exits(0);
    }
    let copy = tool.path("copy");
    tool.run(["backup".as_ref(), copy.as_os_str()]).exits(0);
    recorder.ok(r#"{"op":"append","session":"s","type":"x","data":1}"#);
    assert_eq!(recorder.end().1, Some(0));
    let events =
        tool.run(["--store".as_ref(), copy.as_os_str(), "events".as_ref(), "s".as_ref(), "--json".as_ref()]);
    assert_eq!(events.exits(0).json().len(), 3);
}
