//! SQLite databases in and out through the tool.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::cli::LINES;
use crate::tool::{Tool, lines_of, shared};

/// What the `sqlite3` program prints of a database as SQL, its lines sorted; none where there is no such program.
fn dump(path: &Path) -> Option<Vec<String>> {
    let output = Command::new("sqlite3").arg(path).arg(".dump").output().ok()?;
    assert!(output.status.success());
    let mut lines: Vec<String> =
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    Some(lines)
}

fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for bucket in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        for path in fs::read_dir(bucket).unwrap().map(|entry| entry.unwrap().path()) {
            found.insert(
                path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(),
                fs::read(path).unwrap(),
            );
        }
    }
    found
}

fn results(lines: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    lines.iter().map(|line| (text(&line["session"]), text(&line["result"]))).collect()
}

#[test]
fn sessions_go_through_a_database_and_come_back_byte_for_byte() {
    let tool = Tool::new();
    tool.import("s.jsonl", &LINES).exits(0);
    tool.run(["fork", "s", "--at", "2", "--id", "child", "--close-open-turn"]).exits(0);
    tool.run(["export", "jsonl", "--out", "before"]).exits(0);
    let exported = tool.run(["export", "sqlite", "--out", "s.db", "--json"]).exits(0).json();
    assert_eq!(results(&exported), [("s".into(), "written".into()), ("child".into(), "written".into())]);
    // The header's time has a fraction, and one event a field of its own.
    let kept = &exported[0]["kept"];
    assert!(kept.as_array().unwrap().iter().any(|kept| kept["reason"] == "unknown-field"), "{kept}");
    let strict = tool.run(["export", "sqlite", "--out", "strict.db", "--strict", "s"]).exits(1);
    assert!(strict.err.contains("\"s\"") && !tool.path("strict.db").exists(), "{}", strict.err);
    let other = ["--store", "other"];
    let imported = tool.run(other.iter().chain(&["import", "s.db", "--json"])).exits(0).json();
    // The child's parent comes first, so that the child refers to it.
    assert_eq!(results(&imported), [("s".into(), "stored".into()), ("child".into(), "forked".into())]);
    tool.run(other.iter().chain(&["export", "jsonl", "--out", "after"])).exits(0);
    assert!(files(&tool.path("before")) == files(&tool.path("after")));
    // The same in its other shape is known.
    let again = tool.run(["import", "s.db", "--json"]).exits(0).json();
    assert!(again.iter().all(|line| line["result"] == "unchanged"), "{again:?}");
}

#[test]
fn a_database_is_never_overwritten_unasked_and_grows_by_what_is_new() {
    let tool = Tool::new();
    tool.import("s.jsonl", &LINES[..4]).exits(0);
    let export = |flags: &[&str], code: i32| {
        tool.run(["export", "sqlite", "--out", "s.db", "--json"].iter().chain(flags)).exits(code).json()
    };
    assert_eq!(results(&export(&["--dry-run"], 0)), [("s".into(), "written".into())]);
    assert!(!tool.path("s.db").exists());
    export(&[], 0);
    let before = fs::read(tool.path("s.db")).unwrap();
    assert!(export(&[], 1).is_empty());
    tool.import("s.jsonl", &LINES).exits(0);
    let dry = export(&["--append", "--dry-run"], 0);
    assert_eq!((results(&dry), &dry[0]["from"]), (vec![("s".into(), "extended".into())], &json!(3)));
    assert!(fs::read(tool.path("s.db")).unwrap() == before);
    assert_eq!(export(&["--append"], 0)[0]["from"], 3);
    assert_eq!(results(&export(&["--append"], 0)), [("s".into(), "unchanged".into())]);
    assert_eq!(
        fs::read_dir(tool.path("s.db").parent().unwrap())
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().file_name().to_str().unwrap().contains(".tmp") })
            .count(),
        0
    );
    // Another session of that id is not added to.
    let other = ["--store", "other"];
    let changed = LINES.map(|line| line.replace("\"time\":1", "\"time\":2"));
    tool.file("changed.jsonl", lines_of(&changed));
    tool.run(other.iter().chain(&["import", "changed.jsonl"])).exits(0);
    let before = fs::read(tool.path("s.db")).unwrap();
    let refused = tool.run(other.iter().chain(&["export", "sqlite", "--out", "s.db", "--append"])).exits(1);
    assert!(refused.err.contains("not exported: s"), "{}", refused.err);
    assert!(fs::read(tool.path("s.db")).unwrap() == before);
    tool.run(other.iter().chain(&["export", "sqlite", "--out", "s.db", "--force"])).exits(0);
    assert!(fs::read(tool.path("s.db")).unwrap() != before);
}

#[test]
fn databases_of_the_vectors_go_through_the_store_row_by_row() {
    let Some(folder) = shared("conformance/sqlite") else { return };
    let mut checked = 0;
    for name in ["valid.db", "batches.db", "open-turns.db"] {
        let tool = Tool::new();
        let source = tool.path(name);
        fs::copy(folder.join(name), &source).unwrap();
        let imported = tool.run(["import", name, "--json"]).exits(0).json();
        assert!(!imported.is_empty(), "{name}");
        tool.run(["export", "sqlite", "--out", "out.db"]).exits(0);
        assert!(fs::read(&source).unwrap() == fs::read(folder.join(name)).unwrap(), "{name} was written to");
        let (Some(before), Some(after)) = (dump(&source), dump(&tool.path("out.db"))) else {
            println!("skipped: there is no sqlite3 program");
            return;
        };
        let rows = |lines: &[String]| -> Vec<String> {
            lines.iter().filter(|line| line.starts_with("INSERT")).cloned().collect()
        };
        assert!(rows(&before).len() > imported.len(), "{name}");
        assert_eq!(rows(&before), rows(&after), "{name}");
        checked += imported.len();
        for (pragma, expected) in [
            ("integrity_check", "ok\n"),
            ("foreign_key_check", ""),
            ("user_version", "4\n"),
            ("journal_mode", "delete\n"),
        ] {
            let sql = format!("PRAGMA {pragma}");
            let output = Command::new("sqlite3").arg(tool.path("out.db")).arg(sql).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{name} {pragma}");
        }
    }
    println!("{checked} sessions");
    assert!(checked > 0);
}

#[test]
fn the_corpus_goes_through_a_database_and_comes_back() {
    let Some(folder) = shared("corpus/dsh") else { return };
    let tool = Tool::new();
    let folder = folder.to_str().unwrap();
    let stored = tool.run(["import", folder, "--json"]).exits(0).json();
    tool.run(["export", "jsonl", "--out", "before"]).exits(0);
    tool.run(["export", "sqlite", "--out", "all.db"]).exits(0);
    let other = ["--store", "other"];
    let imported = tool.run(other.iter().chain(&["import", "all.db", "--json"])).exits(0).json();
    assert_eq!(imported.len(), stored.len());
    tool.run(other.iter().chain(&["export", "jsonl", "--out", "after"])).exits(0);
    let (before, after) = (files(&tool.path("before")), files(&tool.path("after")));
    assert!(before == after && before.len() == stored.len());
}

#[test]
fn a_database_that_is_refused_is_named_and_stops_nothing() {
    let Some(folder) = shared("conformance/sqlite") else { return };
    let tool = Tool::new();
    tool.file("s.jsonl", lines_of(&LINES));
    let mut args = vec!["import".to_owned(), "--json".to_owned()];
    let names = ["reject-v1.db", "reject-v3-seed.db", "reject-v99.db", "bad-magic.db", "truncated-half.db"];
    for name in names {
        fs::copy(folder.join(name), tool.path(name)).unwrap();
        args.push(name.to_owned());
    }
    args.push("s.jsonl".to_owned());
    let ran = tool.run(&args).exits(1);
    let lines = ran.json();
    for name in names {
        let line =
            lines.iter().find(|line| line["file"] == name).unwrap_or_else(|| panic!("{name}: {}", ran.out));
        let kind = if name.starts_with("reject") { "version" } else { "corrupt" };
        assert!(line["error"]["kind"] == kind || name == "bad-magic.db", "{line}");
        assert!(fs::read(tool.path(name)).unwrap() == fs::read(folder.join(name)).unwrap(), "{name}");
    }
    assert_eq!(lines.iter().filter(|line| line["session"] == "s").count(), 1);
    let damaged = tool.path("damaged-rows.db");
    fs::copy(folder.join("damaged-rows.db"), &damaged).unwrap();
    let ran = tool.run(["import", "damaged-rows.db", "--json"]).exits(1);
    let (bad, good): (Vec<Value>, Vec<Value>) =
        ran.json().into_iter().partition(|line| line.get("error").is_some());
    assert!(!bad.is_empty() && !good.is_empty(), "{}", ran.out);
    let before = good.len();
    let salvaged = tool.run(["import", "damaged-rows.db", "--json", "--salvage"]);
    let stored = salvaged.json().into_iter().filter(|line| line.get("damage").is_some()).count();
    assert!(stored > 0 && before > 0, "{}", salvaged.out);
    assert!(salvaged.err.contains("missing is everything from event"), "{}", salvaged.err);
}
