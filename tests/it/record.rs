//! `record`: the protocol, line by line, with the real binary.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::tool::Tool;

fn append(session: &str, event_type: &str, data: &str) -> String {
    format!(r#"{{"op":"append","session":"{session}","type":"{event_type}","data":{data}}}"#)
}

const TURN: [&str; 7] = [
    r#"{"op":"append","session":"s","type":"turn/start","data":{"turn":1,"trigger":{"kind":"continuation"}},"time":5}"#,
    r#"{"op":"append","session":"s","type":"user/message","data":{"content":[{"type":"text","text":"hi"}],"source":{"kind":"user"}},"surfaceOp":"append","time":5}"#,
    r#"{"op":"append","session":"s","type":"step/start","data":{"turn":1,"step":1},"time":5}"#,
    r#"{"op":"append","session":"s","type":"assistant/message","data":{"turn":1,"step":1,"content":[{"type":"tool-call","id":"c","name":"n","arguments":"{}"}]},"surfaceOp":"append","sourceEventSeqs":[],"time":5}"#,
    r#"{"op":"append","session":"s","type":"tool/call","data":{"turn":1,"step":1,"callId":"c","name":"n","arguments":"{}"},"time":5}"#,
    r#"{"op":"append","session":"s","type":"context/message","data":{"content":[],"source":{"kind":"plugin","plugin":"p"}},"surfaceOp":{"op":"replace","start":1,"end":1},"sourceEventSeqs":[1],"time":6}"#,
    r#"{"op":"append","session":"s","type":"p/q","data":{ "a":1.50,"b":"\ud800"},"extra":{"origin":{"k":1}},"time":7.5}"#,
];

#[test]
fn a_session_from_create_to_stat() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    let created =
        recorder.ok(r#"{"op":"create","tag":[1.0],"id":"s","cwd":"/w","parentSession":"p","createdAt":3}"#);
    assert_eq!(created, json!({"ok": true, "tag": [1.0], "session": "s", "seq": 0}));
    for (seq, line) in TURN.iter().enumerate() {
        let answer = recorder.ok(line);
        assert_eq!((&answer["session"], &answer["seq"]), (&json!("s"), &json!(seq)));
        assert!(answer.get("tag").is_none());
    }
    let flushed = recorder.ok(r#"{"op":"flush","session":"s","tag":"f"}"#);
    assert_eq!(flushed, json!({"ok": true, "tag": "f", "session": "s", "seq": 6}));
    let nodes = recorder.ok(r#"{"op":"surface","session":"s"}"#);
    assert_eq!(nodes["nodes"], json!([[5, null, 3], [3, 5, null]]));
    let messages = recorder.ok(r#"{"op":"messages","session":"s"}"#);
    let roles: Vec<&Value> =
        messages["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, [&json!("user"), &json!("assistant")]);
    let events = recorder.ok(r#"{"op":"events","session":"s","from":4,"limit":2}"#);
    let seqs: Vec<&Value> = events["events"].as_array().unwrap().iter().map(|event| &event["seq"]).collect();
    assert_eq!(seqs, [&json!(4), &json!(5)]);
    let stat = recorder.ok(r#"{"op":"stat","session":"s"}"#);
    assert_eq!(stat["stat"]["events"], 7);
    assert_eq!((&stat["stat"]["cwd"], &stat["stat"]["open"]), (&json!("/w"), &json!(true)));
    assert_eq!(recorder.end(), (vec![], Some(0)));

    // The last event as it stands in the file: the payload's own bytes.
    let lines = tool.run(["events", "s", "--json", "--from", "6"]).exits(0);
    assert_eq!(
        lines.out,
        "{\"type\":\"p/q\",\"seq\":6,\"time\":7.5,\"data\":{ \"a\":1.50,\"b\":\"\\ud800\"},\"origin\":{\"k\":1}}\n"
    );
}

#[test]
fn resume_closes_what_is_open_and_says_so() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    recorder.ok(r#"{"op":"create","id":"s"}"#);
    for line in TURN {
        recorder.ok(line);
    }
    assert_eq!(recorder.refused(r#"{"op":"resume","session":"s"}"#), "exists");
    assert_eq!(recorder.end().1, Some(0));
    let mut recorder = tool.recorder();
    assert_eq!(recorder.refused(&append("s", "x", "1")), "not-found");
    let resumed = recorder.ok(r#"{"op":"resume","session":"s"}"#);
    let closers = resumed["closers"].as_array().unwrap();
    let types: Vec<&str> = closers.iter().map(|closer| closer["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["tool/result", "step/end", "turn/end"]);
    assert_eq!((&resumed["seq"], &closers[0]["seq"]), (&json!(10), &json!(7)));
    assert_eq!(recorder.ok(&append("s", "x", "1"))["seq"], 10);
    assert_eq!(recorder.refused(r#"{"op":"resume","session":"nobody"}"#), "not-found");
    assert_eq!(recorder.end().1, Some(0));
}

#[test]
fn what_is_refused_changes_nothing_and_has_its_kind() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    recorder.ok(r#"{"op":"create","id":"s"}"#);
    recorder.ok(TURN[0]);
    recorder.ok(TURN[1]);
    let surface = |more: &str| {
        format!(r#"{{"op":"append","session":"s","type":"context/message","data":{{"content":[]}}{more}}}"#)
    };
    let cases = [
        ("nonsense".to_owned(), "bad-line"),
        (r#"{"op":"sing"}"#.to_owned(), "bad-line"),
        (append("s", "x", "1e400"), "invalid-value"),
        (append("s", "user/message", "{}"), "marker"),
        (surface(""), "marker"),
        (surface(r#","surfaceOp":null"#), "marker"),
        (surface(r#","surfaceOp":{"op":"replace","start":0}"#), "marker"),
        (surface(r#","surfaceOp":"append","sourceEventSeqs":[]"#), "sources"),
        (surface(r#","surfaceOp":"append","sourceEventSeqs":[9]"#), "sources"),
        (surface(r#","surfaceOp":{"op":"replace","start":0,"end":1},"sourceEventSeqs":[0,1]"#), "replace"),
        (surface(r#","surfaceOp":{"op":"replace","start":1,"end":1},"sourceEventSeqs":[0]"#), "replace"),
        (append("s", "x", "1").replace("\"op\":\"append\"", "\"op\":\"append\",\"expect\":1"), "conflict"),
        (r#"{"op":"create","id":"s"}"#.to_owned(), "exists"),
        (r#"{"op":"create","id":""}"#.to_owned(), "invalid-value"),
        (r#"{"op":"create","cwd":"relative"}"#.to_owned(), "invalid-value"),
        (r#"{"op":"fork","session":"s"}"#.to_owned(), "open-turn"),
        (r#"{"op":"fork","session":"gone"}"#.to_owned(), "not-found"),
        (r#"{"op":"flush","session":"gone"}"#.to_owned(), "not-found"),
        (r#"{"op":"stat","session":"gone"}"#.to_owned(), "not-found"),
        (r#"{"op":"messages","session":"gone"}"#.to_owned(), "not-found"),
        (append("s", &"t".repeat(1025), "1"), "too-large"),
    ];
    for (line, kind) in cases {
        assert_eq!(recorder.refused(&line), kind, "{line}");
    }
    // A batch is all or nothing.
    let batch =
        r#"{"op":"batch","session":"s","events":[{"type":"x","data":1},{"type":"user/message","data":2}]}"#;
    assert_eq!(recorder.refused(batch), "marker");
    let batch = r#"{"op":"batch","session":"s","expect":2,"events":[{"type":"x","data":1},{"type":"y","data":2,"k":3}]}"#;
    let answer = recorder.ok(batch);
    assert_eq!((&answer["seq"], &answer["last"]), (&json!(2), &json!(3)));
    assert_eq!(recorder.refused(batch), "conflict");
    let empty = recorder.ok(r#"{"op":"batch","session":"s","events":[]}"#);
    assert_eq!((&empty["seq"], empty.get("last")), (&json!(4), None));
    assert_eq!(recorder.ok(r#"{"op":"stat","session":"s"}"#)["stat"]["events"], 4);
}

/// The whole store has no one seq, and a session without events has none yet: then there is none in the answer.
#[test]
fn a_flush_answers_with_a_seq_where_there_is_one() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    assert_eq!(recorder.ok(r#"{"op":"flush","tag":1}"#), json!({"ok": true, "tag": 1}));
    recorder.ok(r#"{"op":"create","id":"s"}"#);
    recorder.ok(r#"{"op":"create","id":"t"}"#);
    assert_eq!(recorder.ok(r#"{"op":"flush","session":"s"}"#), json!({"ok": true, "session": "s"}));
    recorder.ok(&append("s", "x", "1"));
    recorder.ok(&append("t", "x", "1"));
    assert_eq!(recorder.ok(r#"{"op":"flush","session":null}"#), json!({"ok": true}));
    // It covered both.
    recorder.kill();
    for session in ["s", "t"] {
        assert_eq!(tool.run(["events", session, "--json"]).exits(0).json().len(), 1);
    }
    let help = tool.run(["record", "--help"]).exits(0).out;
    assert!(help.contains("session and seq are left out"), "{help}");
}

#[test]
fn a_refused_batch_says_which_of_its_events_it_was() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    recorder.ok(r#"{"op":"create","id":"s"}"#);
    recorder.ok(TURN[0]);
    recorder.ok(TURN[1]);
    let message = |more: &str| format!(r#"{{"type":"context/message","data":{{"content":[]}}{more}}}"#);
    let good = r#"{"type":"x","data":1}"#;
    let cases = [
        (message(""), "marker"),
        (message(r#","surfaceOp":"prepend""#), "marker"),
        (message(r#","surfaceOp":"append","sourceEventSeqs":[99]"#), "sources"),
        (message(r#","surfaceOp":"append","sourceEventSeqs":[-1]"#), "sources"),
        (message(r#","surfaceOp":{"op":"replace","start":0,"end":1},"sourceEventSeqs":[0,1]"#), "replace"),
        (r#"{"type":"x","data":1,"time":"now"}"#.to_owned(), "invalid-value"),
        (format!(r#"{{"type":"{}","data":1}}"#, "t".repeat(1025)), "too-large"),
        (r#"{"type":"x"}"#.to_owned(), "bad-line"),
    ];
    for (bad, kind) in cases {
        for place in 0..3 {
            let mut events = vec![good.to_owned(); 2];
            events.insert(place, bad.clone());
            let line = format!(r#"{{"op":"batch","session":"s","events":[{}]}}"#, events.join(","));
            let answer = recorder.ask(&line);
            assert_eq!(answer["error"]["kind"], kind, "{bad}: {answer}");
            let told = answer["error"]["message"].as_str().unwrap();
            assert!(told.contains(&format!("events[{place}]")), "{bad}: {told}");
        }
    }
    assert_eq!(recorder.ok(r#"{"op":"stat","session":"s"}"#)["stat"]["events"], 2);
}

#[test]
fn answers_keep_the_order_and_lines_that_are_none_do_no_harm() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    let mut lines = b"{\"op\":\"create\",\"id\":\"s\",\"tag\":0}\n\n  \t\r\n".to_vec();
    lines.extend_from_slice(b"\xff\xfe\n{\"op\":\"flush\",\"session\":\"s\",\"tag\":2}\n");
    lines.extend_from_slice(append("s", "x", "3").replace("\"op\"", "\"tag\":3,\"op\"").as_bytes());
    lines.extend_from_slice(b"\r\nno\n{\"op\":\"flush\",\"tag\":5}\n");
    recorder.send(lines);
    let answers: Vec<Value> = (0..6).map(|_| recorder.answer()).collect();
    let tags: Vec<Option<u64>> = answers.iter().map(|answer| answer["tag"].as_u64()).collect();
    assert_eq!(tags, [Some(0), None, Some(2), Some(3), None, Some(5)]);
    let ok: Vec<bool> = answers.iter().map(|answer| answer["ok"].as_bool().unwrap()).collect();
    assert_eq!(ok, [true, false, true, true, false, true]);
    // The last line may lack its end.
    recorder.send(r#"{"op":"stat","session":"s"}"#);
    let (answers, code) = recorder.end();
    assert_eq!((answers.len(), &answers[0]["stat"]["events"], code), (1, &json!(1), Some(0)));
}

#[test]
fn a_line_over_the_limit_is_a_bad_line_and_the_next_one_counts() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    recorder.ok(r#"{"op":"create","id":"s"}"#);
    let window = vec![b'a'; 1 << 20];
    for _ in 0..66 {
        recorder.send(&window);
    }
    recorder.send("\n");
    let answer = recorder.answer();
    assert_eq!(answer["error"]["kind"], "bad-line");
    assert!(answer["error"]["message"].as_str().unwrap().contains("69206016 bytes"), "{answer}");
    assert_eq!(recorder.ok(&append("s", "x", "1"))["seq"], 0);
}

#[test]
fn backpressure_is_never_answered() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    recorder.ok(r#"{"op":"create","id":"s"}"#);
    // Three times the unflushed bound, and one event that is larger than it.
    let megabyte = format!("\"{}\"", "x".repeat(1 << 20));
    for seq in 0..24 {
        assert_eq!(recorder.ok(&append("s", "x", &megabyte))["seq"], seq);
    }
    let large = format!("\"{}\"", "y".repeat(10 << 20));
    assert_eq!(recorder.ok(&append("s", "x", &large))["seq"], 24);
    assert_eq!(recorder.ok(r#"{"op":"flush","session":"s"}"#)["seq"], 24);
    assert_eq!(recorder.end().1, Some(0));
}

#[test]
fn flushes_that_arrive_together_share_a_sync() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    for session in 0..64 {
        recorder.ok(&format!(r#"{{"op":"create","id":"s{session}"}}"#));
    }
    recorder.ok(r#"{"op":"flush"}"#);
    // What the engine says of itself after a flush comes within milliseconds.
    std::thread::sleep(Duration::from_millis(300));
    let syncs = || tool.run(["stats", "--json"]).exits(0).one()["syncs"].as_u64().unwrap();
    let before = syncs();
    let mut lines = String::new();
    for session in 0..64 {
        lines.push_str(&append(&format!("s{session}"), "x", "{}"));
        lines.push_str(&format!("\n{{\"op\":\"flush\",\"session\":\"s{session}\"}}\n"));
    }
    recorder.send(lines);
    for _ in 0..64 {
        assert_eq!(recorder.answer()["seq"], 0);
        assert_eq!(recorder.answer()["seq"], 0);
    }
    let after = syncs();
    assert!(after > before && after - before <= 4, "{before} -> {after}");
}

/// The flush is waited for only when all that has arrived is taken, but it was asked for while the session was there.
#[test]
fn a_flush_that_comes_with_the_end_of_its_session_is_answered() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    recorder.ok(r#"{"op":"create","id":"s"}"#);
    let [one, two] = ["1", "2"].map(|data| append("s", "x", data));
    let lines = [
        one.as_str(),
        r#"{"op":"flush","session":"s","tag":"first"}"#,
        r#"{"op":"delete","session":"s"}"#,
        r#"{"op":"create","id":"s"}"#,
        two.as_str(),
        r#"{"op":"flush","session":"s","tag":"second"}"#,
    ];
    recorder.send(lines.map(|line| format!("{line}\n")).concat());
    let answers = lines.map(|_| recorder.answer());
    assert!(answers.iter().all(|answer| answer["ok"] == true), "{answers:?}");
    assert_eq!((&answers[1]["tag"], &answers[1]["seq"]), (&json!("first"), &json!(0)));
    assert_eq!((&answers[5]["tag"], &answers[5]["seq"]), (&json!("second"), &json!(0)));
    assert_eq!(recorder.end(), (vec![], Some(0)));
}

#[test]
fn sigterm_flushes_closes_and_exits_0() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    recorder.ok(r#"{"op":"create","id":"s"}"#);
    recorder.ok(&append("s", "x", "1"));
    kill(Pid::from_raw(recorder.child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    assert_eq!(recorder.child.wait().unwrap().code(), Some(0));
    assert_eq!(tool.run(["events", "s", "--json"]).exits(0).json().len(), 1);
    // The store was closed: nothing had to be recovered.
    assert_eq!(tool.run(["verify", "--json"]).exits(0).out, "");
}

#[test]
fn create_fork_and_delete_survive_a_kill_once_they_are_answered() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    recorder.ok(r#"{"op":"create","id":"a"}"#);
    recorder.ok(&append("a", "x", "1"));
    recorder.ok(r#"{"op":"fork","session":"a","id":"b"}"#);
    recorder.ok(r#"{"op":"create","id":"c"}"#);
    recorder.ok(r#"{"op":"delete","session":"c"}"#);
    recorder.kill();
    let ids: Vec<Value> =
        tool.run(["ls", "--json"]).exits(0).json().into_iter().map(|stat| stat["id"].clone()).collect();
    assert_eq!(ids, ["a", "b"]);
    // Also alone, with nothing behind them that could have carried them to the disk.
    for (op, expected) in [
        (r#"{"op":"create","id":"d"}"#, vec!["a", "b", "d"]),
        (r#"{"op":"fork","session":"d","id":"e"}"#, vec!["a", "b", "d", "e"]),
        (r#"{"op":"delete","session":"a"}"#, vec!["b", "d", "e"]),
    ] {
        let mut recorder = tool.recorder();
        recorder.ok(op);
        recorder.kill();
        let ids: Vec<Value> =
            tool.run(["ls", "--json"]).exits(0).json().into_iter().map(|stat| stat["id"].clone()).collect();
        assert_eq!(ids, expected, "{op}");
    }
}

#[test]
fn a_second_recorder_is_told_who_holds_the_store() {
    let tool = Tool::new();
    let mut first = tool.recorder();
    first.ok(r#"{"op":"create","id":"s"}"#);
    let second = tool.recorder();
    let holder = first.child.id().to_string();
    let (answers, code) = second.end();
    assert_eq!((answers.len(), code), (1, Some(1)));
    assert_eq!(answers[0]["error"]["kind"], "locked");
    assert!(answers[0]["error"]["message"].as_str().unwrap().contains(&holder), "{}", answers[0]);
    first.ok(&append("s", "x", "1"));
}

#[test]
fn a_fork_is_live_and_complete() {
    let tool = Tool::new();
    let mut recorder = tool.recorder();
    recorder.ok(r#"{"op":"create","id":"s","cwd":"/w"}"#);
    // The last one holds a lone surrogate, which serde_json cannot read back.
    for line in &TURN[..6] {
        recorder.ok(line);
    }
    let fork = recorder.ok(r#"{"op":"fork","session":"s","id":"f","closeOpenTurn":true}"#);
    assert_eq!((&fork["session"], &fork["seq"]), (&json!("f"), &json!(9)));
    assert_eq!(recorder.ok(&append("f", "x", "1"))["seq"], 9);
    let early = recorder.ok(r#"{"op":"fork","session":"s","id":"g","at":0,"closeOpenTurn":true}"#);
    assert_eq!(early["seq"], 2);
    recorder.ok(r#"{"op":"delete","session":"s"}"#);
    assert_eq!(recorder.refused(&append("s", "x", "1")), "not-found");
    let events = recorder.ok(r#"{"op":"events","session":"f"}"#);
    assert_eq!(events["events"].as_array().unwrap().len(), 10);
    let stat = recorder.ok(r#"{"op":"stat","session":"f"}"#);
    assert_eq!((&stat["stat"]["parentSession"], &stat["stat"]["seedLength"]), (&json!("s"), &json!(6)));
    assert_eq!(recorder.end().1, Some(0));
}
