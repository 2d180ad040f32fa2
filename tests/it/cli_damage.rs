//! What the commands say of a session that lost events: what can be read, the hole on standard error, and exit code 1.

use std::fs;

use serde_json::{Value, json};

use crate::tool::{Ran, Tool};

/// A session of 40 user messages in one turn, each flushed by itself, of which `lost` have a flipped bit.
fn damaged(lost: &[usize]) -> Tool {
    let tool = Tool::new();
    let word = |seq: usize| format!("needle-{seq:04}-{}", "x".repeat(100));
    let mut recorder = tool.recorder();
    recorder.ok(r#"{"op":"create","id":"s","cwd":"/w"}"#);
    recorder.ok(r#"{"op":"append","session":"s","type":"turn/start","data":{"turn":1,"trigger":{"kind":"continuation"}}}"#);
    for seq in 1..40 {
        let data =
            format!(r#"{{"content":[{{"type":"text","text":"{}"}}],"source":{{"kind":"user"}}}}"#, word(seq));
        recorder.ok(&format!(
            r#"{{"op":"append","session":"s","type":"user/message","data":{data},"surfaceOp":"append"}}"#
        ));
        recorder.ok(r#"{"op":"flush"}"#);
    }
    recorder.ok(r#"{"op":"create","id":"whole"}"#);
    // It proves that nothing of the session is missing.
    recorder.ok(r#"{"op":"append","session":"whole","type":"x","data":1}"#);
    assert_eq!(recorder.end().1, Some(0));
    let segment = tool.store().join("segments/00000001.seg");
    let mut bytes = fs::read(&segment).unwrap();
    for seq in lost {
        let needle = word(*seq).into_bytes();
        let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
        bytes[at + 3] ^= 4;
    }
    fs::write(&segment, bytes).unwrap();
    tool
}

/// The holes are named, each once.
fn names_the_holes(ran: &Ran) {
    for words in ["s: events 20 to 22 are lost to damage", "s: event 30 is lost to damage"] {
        assert_eq!(ran.err.matches(words).count(), 1, "{}", ran.err);
    }
    assert!(ran.err.contains("segments/00000001.seg"), "{}", ran.err);
}

const LOST: [usize; 4] = [20, 21, 22, 30];

#[test]
fn events_are_printed_around_the_holes_and_a_hole_is_named_once() {
    let tool = damaged(&LOST);
    let ran = tool.run(["events", "s", "--json"]).exits(1);
    let seqs: Vec<u64> = ran.json().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(
        seqs,
        (0..40).filter(|seq| LOST.iter().all(|lost| *lost as u64 != *seq)).collect::<Vec<u64>>()
    );
    names_the_holes(&ran);
    // From within a hole; and what is behind the last one that was asked for is no matter.
    let ran = tool.run(["events", "s", "--json", "--from", "21", "--limit", "3"]).exits(1);
    assert_eq!(ran.json().len(), 3);
    assert!(ran.err.contains("events 21 to 22 are lost") && !ran.err.contains("event 30"), "{}", ran.err);
    assert!(tool.run(["events", "s", "--from", "31"]).exits(0).err.is_empty());
    assert!(tool.run(["events", "s", "--limit", "20"]).exits(0).err.is_empty());
}

#[test]
fn show_prints_what_is_known_and_leaves_out_what_is_not() {
    let tool = damaged(&LOST);
    let ran = tool.run(["show", "s", "--json"]).exits(1);
    let shown = ran.one();
    assert_eq!((&shown["id"], &shown["events"], &shown["cwd"]), (&json!("s"), &json!(40), &json!("/w")));
    assert_eq!((shown.get("surface"), shown.get("closers")), (None, None), "{shown}");
    names_the_holes(&ran);
    let ran = tool.run(["show", "s"]).exits(1);
    assert!(ran.out.contains("unknown, events are lost"), "{}", ran.out);
    assert_eq!(tool.run(["show", "whole", "--json"]).exits(0).one()["surface"], 0);
}

#[test]
fn check_goes_on_behind_a_hole() {
    let tool = damaged(&LOST);
    let ran = tool.run(["check", "s", "--json"]).exits(1);
    let found: Vec<(Value, Value)> =
        ran.json().iter().map(|line| (line["rule"].clone(), line["seq"].clone())).collect();
    assert_eq!(found, [(json!("I1"), json!(23)), (json!("I1"), json!(31))]);
    names_the_holes(&ran);
    assert_eq!(
        tool.run(["check", "whole"]).exits(1).err,
        "",
        "its event is outside a turn, and nothing else"
    );
}

/// A model must not get what is left of a history for the whole of it.
#[test]
fn messages_and_surface_print_nothing_and_name_the_holes() {
    let tool = damaged(&LOST);
    for command in ["messages", "surface"] {
        for json in [&["--json"][..], &[]] {
            let ran = tool.run([&[command, "s"][..], json].concat()).exits(1);
            assert_eq!(ran.out, "", "{command}");
            names_the_holes(&ran);
        }
        tool.run([command, "whole"]).exits(0);
    }
}

/// The last events may be gone without a later one to show that they were there.
#[test]
fn a_hole_at_the_end_is_named_too() {
    let tool = damaged(&[39]);
    for command in ["events", "show", "check", "messages", "surface"] {
        let ran = tool.run([command, "s"]).exits(1);
        assert!(ran.err.contains("s: events from 39 on may be lost"), "{command}: {}", ran.err);
        tool.run([command, "whole"]).exits(i32::from(command == "check"));
    }
}
