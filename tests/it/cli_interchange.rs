//! `import` and `export` again and again: dry runs, longer versions, children before parents, a kill in the middle.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::LINES;
use crate::tool::{Ran, Tool, lines_of};

/// Every file below a folder, with its bytes.
fn tree(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((path.clone(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn results(lines: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    lines.iter().map(|line| (text(&line["session"]), text(&line["result"]))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(id, result)| ((*id).to_owned(), (*result).to_owned())).collect()
}

fn message(seq: u64, text: &str) -> String {
    format!(
        r#"{{"type":"user/message","seq":{seq},"time":{seq},"data":{{"content":[{{"type":"text","text":"{text}"}}],"source":{{"kind":"user"}}}},"surfaceOp":"append"}}"#
    )
}

fn header(id: &str, rest: &str) -> String {
    format!(r#"{{"type":"session","version":0,"id":"{id}","createdAt":1{rest}}}"#)
}

fn session(id: &str, rest: &str, events: u64) -> String {
    let lines = (0..events).map(|seq| message(seq, "x"));
    lines_of(&std::iter::once(header(id, rest)).chain(lines).collect::<Vec<_>>())
}

#[test]
fn a_dry_run_says_what_then_happens_and_writes_nothing() {
    let tool = Tool::new();
    let child = r#","parentSession":"p","seedLength":2"#;
    tool.file("in/a-child.jsonl", session("child", child, 3));
    tool.file("in/b-parent.jsonl", session("p", "", 4));
    tool.file("in/c-bad.jsonl", "{}\n");
    let dry = tool.run(["import", "--dry-run", "--json", "in"]).exits(1);
    assert!(!tool.store().exists(), "a dry run makes no store");
    assert_eq!(results(&dry.json()), pairs(&[("p", "stored"), ("child", "forked"), ("-", "-")]));
    assert!(dry.err.contains("nothing was written"), "{}", dry.err);
    let done = tool.run(["import", "--json", "in"]).exits(1);
    assert_eq!(results(&done.json()), pairs(&[("p", "stored"), ("child", "forked"), ("-", "-")]));
    tool.file("in/b-parent.jsonl", session("p", "", 6));
    fs::remove_file(tool.path("in/c-bad.jsonl")).unwrap();
    let before = tree(&tool.store());
    let dry = tool.run(["import", "--dry-run", "--json", "in"]).exits(0);
    let expected = pairs(&[("p", "extended"), ("child", "unchanged")]);
    assert_eq!(results(&dry.json()), expected);
    assert!(tree(&tool.store()) == before, "a dry run leaves the store as it is");
    let done = tool.run(["import", "--json", "in"]).exits(0).json();
    assert_eq!((results(&done), &done[0]["from"]), (expected, &json!(4)));
    assert_eq!(tool.run(["events", "p", "--json"]).exits(0).json().len(), 6);
    // A shorter version of what is stored changes nothing, and the store has more.
    tool.file("in/b-parent.jsonl", session("p", "", 5));
    let shorter = tool.run(["import", "--json", "in/b-parent.jsonl"]).exits(0).one();
    assert_eq!((&shorter["result"], &shorter["stored"]), (&json!("unchanged"), &json!(6)));
    // Another session of that id.
    tool.file("other.jsonl", session("p", "", 3).replace("\"time\":2", "\"time\":3"));
    let other = tool.run(["import", "other.jsonl"]).exits(1);
    assert!(other.err.contains("event 2 of session \"p\" is another one"), "{}", other.err);
}

#[test]
fn an_export_adds_what_is_new_and_keeps_what_is_another_ones() {
    let tool = Tool::new();
    tool.file("in/a.jsonl", session("a", "", 2));
    tool.file("in/b.jsonl", session("b", "", 2));
    tool.run(["import", "in/a.jsonl"]).exits(0);
    let export = |flags: &[&str], code: i32| {
        tool.run(["export", "jsonl", "--out", "out", "--json"].iter().chain(flags)).exits(code).json()
    };
    let out = tool.path("out");
    assert_eq!(results(&export(&["--dry-run"], 0)), pairs(&[("a", "written")]));
    assert!(!out.exists());
    export(&[], 0);
    tool.file("in/a.jsonl", session("a", "", 5));
    tool.run(["import", "in"]).exits(0);
    let before = tree(&out);
    // Without a flag nothing that is there is touched; the rest is written.
    assert_eq!(results(&export(&["--dry-run"], 1)), pairs(&[("b", "written")]));
    assert_eq!(
        results(&export(&["--append", "--dry-run"], 0)),
        pairs(&[("a", "extended"), ("b", "written")])
    );
    assert!(tree(&out) == before);
    let done = export(&["--append"], 0);
    assert_eq!(results(&done), pairs(&[("a", "extended"), ("b", "written")]));
    assert_eq!(done[0]["from"], 2);
    let files = tree(&out);
    assert_eq!(files.len(), 2);
    for (path, content) in &files {
        let name = path.file_name().unwrap();
        assert!(*content == fs::read(tool.path("in").join(name)).unwrap(), "{name:?}");
    }
    assert_eq!(results(&export(&["--append"], 0)), pairs(&[("a", "unchanged"), ("b", "unchanged")]));
    fs::write(&files[0].0, session("a", "", 5).replace("\"time\":3", "\"time\":4")).unwrap();
    assert_eq!(results(&export(&["--append"], 1)), pairs(&[("b", "unchanged")]));
    assert_eq!(results(&export(&["--force"], 0)), pairs(&[("a", "replaced"), ("b", "replaced")]));
    assert!(tree(&out) == files);
    tool.run(["export", "jsonl", "--out", "out", "--append", "--force"]).exits(2);
}

#[test]
fn a_dry_run_knows_what_came_before_in_the_same_run() {
    let tool = Tool::new();
    let child = r#","parentSession":"p","seedLength":2"#;
    let other = |text: String| text.replace("\"time\":1,", "\"time\":7,");
    tool.file("1", session("p", "", 3));
    tool.file("3", session("p", "", 5));
    tool.file("4", other(session("p", "", 9)));
    tool.file("5", session("p", r#","cwd":"/x""#, 9));
    tool.file("6", session("child", child, 4));
    tool.file("7", other(session("copy", child, 4)));
    tool.file("8", session("short", child, 1));
    tool.file("9", session("child", child, 3));
    tool.file("source", session("p", "", 4));
    tool.run(["import", "source"]).exits(0);
    tool.run(["export", "sqlite", "--out", "2"]).exits(0);
    tool.run(["delete", "p"]).exits(0);
    let expected = [
        ("p", "stored"),
        ("p", "extended"),
        ("p", "extended"),
        ("-", "-"),
        ("-", "-"),
        ("p", "unchanged"),
        ("child", "forked"),
        ("child", "unchanged"),
        ("copy", "stored"),
        ("short", "stored"),
    ];
    let run = |flag: &str| {
        let files = ["import", "--json", flag, "1", "2", "3", "4", "5", "6", "9", "7", "8", "2"];
        let ran = tool.run(files.into_iter().filter(|word| !word.is_empty())).exits(1);
        // What is reported on standard error, but for the line of figures.
        let mut words: Vec<_> = ran.err.lines().map(str::to_owned).collect();
        words.pop();
        (ran.json(), words)
    };
    let dry = run("--dry-run");
    assert_eq!(results(&dry.0), pairs(&expected));
    assert_eq!(dry, run(""), "the dry run said what then happened");
    assert_eq!(results(&run("--dry-run").0)[0], ("p".to_owned(), "unchanged".to_owned()));
}

#[test]
fn a_header_that_says_more_than_the_stored_one_is_told() {
    let tool = Tool::new();
    tool.file("1", session("s", "", 2));
    tool.file("2", session("s", r#","origin":"x""#, 3));
    let run = |flag: &str, files: &[&str]| {
        let words = ["import", "--json", flag].into_iter().filter(|word| !word.is_empty());
        tool.run(words.chain(files.iter().copied())).exits(0)
    };
    let both = run("--dry-run", &["1", "2"]).json();
    assert_eq!(
        (&both[1]["result"], both[1]["remarks"].as_array().map(Vec::len)),
        (&json!("extended"), Some(1))
    );
    assert_eq!(run("", &["1"]).one()["remarks"], Value::Null);
    for (flag, result) in [("--dry-run", "extended"), ("", "extended"), ("", "unchanged")] {
        let ran = run(flag, &["2"]);
        assert!(ran.err.contains("the stored header stays"), "{}", ran.err);
        let done = ran.one();
        assert_eq!((&done["result"], done["remarks"].as_array().map(Vec::len)), (&json!(result), Some(1)));
    }
    assert_eq!(run("", &["1"]).one()["remarks"], Value::Null);
}

/// So much new does not fit into one batch, and is seen when all of it is there.
#[test]
fn a_long_version_that_is_refused_at_its_end_leaves_the_known_session_alone() {
    let tool = Tool::new();
    tool.file("s.jsonl", session("s", "", 3));
    tool.run(["import", "s.jsonl"]).exits(0);
    let long = "y".repeat(1 << 20);
    let lines = (3..40).map(|seq| message(seq, &long));
    let whole = session("s", "", 3) + &lines_of(&lines.collect::<Vec<_>>());
    tool.file(
        "damaged.jsonl",
        format!("{whole}{{\n{}\n", r#"{"type":"turn/end","seq":41,"time":1,"data":{}}"#),
    );
    tool.file(
        "broken.jsonl",
        whole.clone() + &message(40, "x").replace(r#","surfaceOp":"append""#, "") + "\n",
    );
    let before = tool.run(["show", "s", "--json"]).exits(0).out;
    for (file, words) in [("damaged.jsonl", "nothing was stored"), ("broken.jsonl", "I2")] {
        for ran in [tool.run(["import", file]), through_a_pipe(&tool, file)] {
            let ran = ran.exits(1);
            assert!((ran.out + &ran.err).contains(words), "{words}");
            assert_eq!(tool.run(["show", "s", "--json"]).exits(0).out, before, "{file}");
        }
    }
    tool.file("whole.jsonl", &whole);
    let told = tool.run(["import", "--json", "--dry-run", "whole.jsonl"]).exits(0).one();
    let done = through_a_pipe(&tool, "whole.jsonl").exits(0).one();
    assert_eq!((&done["result"], &done["from"]), (&json!("extended"), &json!(3)));
    assert_eq!((&told["result"], &told["from"]), (&done["result"], &done["from"]));
    assert_eq!(tool.run(["import", "--json", "whole.jsonl"]).exits(0).one()["result"], "unchanged");
    tool.run(["export", "jsonl", "--out", "out"]).exits(0);
    assert!(fs::read_to_string(tool.path("out/_no-cwd/s.jsonl")).unwrap() == whole);
    assert_eq!(tool.run(["ls", "--json"]).exits(0).json().len(), 1);
}

/// Imports what comes out of a pipe, which can be read only once.
fn through_a_pipe(tool: &Tool, file: &str) -> Ran {
    let mut command = tool.command(["import", "--json", "/dev/stdin"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let content = fs::read(tool.path(file)).unwrap();
    // It may have heard enough before the end.
    let _ = child.stdin.take().unwrap().write_all(&content);
    Ran::of(child.wait_with_output().unwrap())
}

/// What hangs is killed, so that it fails.
fn within_a_minute(tool: &Tool, args: &[&str]) -> (i32, String) {
    let mut command = tool.command(args);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..600 {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = child.kill();
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_is_no_file_is_never_waited_for() {
    let tool = Tool::new();
    tool.file("in/z.jsonl", session("z", "", 2));
    let pipe = |path: PathBuf| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    pipe(tool.path("in/a.jsonl"));
    let (code, words) = within_a_minute(&tool, &["import", "in"]);
    assert_eq!(code, 1, "{words}");
    assert!(words.contains("a.jsonl: no regular file"), "{words}");
    assert!(words.contains("1 sessions stored") && words.contains("1 refused"), "{words}");
    fs::create_dir_all(tool.path("out/_no-cwd")).unwrap();
    pipe(tool.path("out/_no-cwd/z.jsonl"));
    let (code, words) = within_a_minute(&tool, &["export", "jsonl", "--out", "out", "--append"]);
    assert_eq!(code, 1, "{words}");
    assert!(words.contains("no regular file"), "{words}");
}

#[test]
fn a_path_of_any_bytes_is_reported_and_stops_nothing() {
    let tool = Tool::new();
    tool.file("in/b.jsonl", session("b", "", 2));
    fs::write(tool.path("in").join(OsStr::from_bytes(b"a\xff.jsonl")), session("a", "", 2)).unwrap();
    let done = tool.run(["import", "--json", "in"]).exits(0).json();
    assert_eq!(results(&done), pairs(&[("a", "stored"), ("b", "stored")]));
    assert_eq!(done[0]["file"], "in/a\u{FFFD}.jsonl");
    let out = OsStr::from_bytes(b"--out=o\xff");
    let flags = ["export", "jsonl", "--json"].map(OsStr::new);
    let done = tool.run(flags.iter().copied().chain([out])).exits(0).json();
    assert_eq!(results(&done), pairs(&[("a", "written"), ("b", "written")]));
}

#[test]
fn a_session_that_is_named_twice_is_exported_once() {
    let tool = Tool::new();
    tool.file("in/a.jsonl", session("a", "", 2));
    tool.run(["import", "in"]).exits(0);
    let done = tool.run(["export", "jsonl", "--out", "out", "--json", "a", "a"]).exits(0).json();
    assert_eq!(results(&done), pairs(&[("a", "written")]));
}

/// Sessions of a few megabytes, so that some are staged, are imported and killed at ever later moments until it comes
/// to its end undisturbed: every session is whole or not there, and what comes out is what a single import gives.
#[test]
fn an_import_that_is_killed_goes_on_where_it_was() {
    let tool = Tool::new();
    let long = "y".repeat(3000);
    for id in 0..6 {
        let lines = (0..700).map(|seq| message(seq, &long));
        let head = header(&format!("s{id}"), "");
        tool.file(
            &format!("in/s{id}.jsonl"),
            lines_of(&std::iter::once(head).chain(lines).collect::<Vec<_>>()),
        );
    }
    // One that is stored already gets so much that it is staged too.
    let more: Vec<String> = (8..900).map(|seq| message(seq, &long)).collect();
    let known = lines_of(&LINES) + &lines_of(&more);
    tool.file("in/known.jsonl", &known);
    tool.import("head.jsonl", &LINES[..4]).exits(0);
    let mut kills = 0;
    for wait in 1.. {
        let mut command = tool.command(["import", "in"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait * wait * 16));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        for stat in tool.run(["ls", "--json"]).exits(0).json() {
            let events = stat["events"].as_u64().unwrap();
            let whole = if stat["id"] == "s" { [3, 900] } else { [700, 700] };
            assert!(whole.contains(&events), "{stat}");
        }
        if status.signal().is_none() {
            break;
        }
        kills += 1;
    }
    println!("killed {kills} times");
    assert!(kills > 0, "the first wait must be short enough to kill");
    tool.run(["import", "in"]).exits(0);
    tool.run(["export", "jsonl", "--out", "out"]).exits(0);
    let out = tree(&tool.path("out"));
    assert_eq!(out.len(), 7);
    for (path, content) in out {
        let name = path.file_name().unwrap().to_str().unwrap();
        let source = if name == "s.jsonl" {
            known.clone().into_bytes()
        } else {
            fs::read(tool.path("in").join(name)).unwrap()
        };
        assert!(content == source, "{name}");
    }
    assert!(tool.run(["verify"]).exits(0).out.is_empty());
}

/// A file that is large enough to be read ahead of what takes its events.
#[test]
fn a_refused_event_far_down_a_large_file_is_named_with_its_line() {
    let tool = Tool::new();
    let text = "y".repeat(1000);
    let mut lines = vec![header("far", "")];
    lines.extend((0..2000).map(|seq| message(seq, &text)));
    lines[1501] = lines[1501].replace(r#","surfaceOp":"append""#, "");
    tool.file("far.jsonl", lines_of(&lines));
    let refused = tool.run(["import", "far.jsonl"]).exits(1);
    assert!(refused.err.contains("far.jsonl line 1502 breaks I2"), "{}", refused.err);
    assert_eq!(tool.run(["ls", "--json"]).exits(0).out, "", "a staged session that was given up");
}
