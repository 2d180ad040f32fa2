//! `import` and `export`: what is stored, what is refused, and that files come back.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use serde_json::json;

use crate::cli::{HEADER, LINES, with_session};
use crate::tool::{Tool, lines_of, shared};

#[test]
fn import_and_export_give_the_file_back() {
    let tool = with_session();
    let out = tool.path("out");
    let args = ["export", "jsonl", "--json", "--out"].map(AsRef::<OsStr>::as_ref);
    let exported = tool.run(args.into_iter().chain([out.as_os_str()])).exits(0).one();
    let path = Path::new(exported["file"].as_str().unwrap());
    assert_eq!(fs::read_to_string(path).unwrap(), lines_of(&LINES));
    assert_eq!((&exported["session"], &exported["events"]), (&json!("s"), &json!(8)));
    // A file that is there is not touched.
    let again = tool.run(args.into_iter().chain([out.as_os_str()])).exits(1);
    assert!(again.err.contains("is there already"), "{}", again.err);
    let replace = [out.as_os_str(), "--force".as_ref(), "s".as_ref()];
    tool.run(args.into_iter().chain(replace)).exits(0);
    let unknown = [out.as_os_str(), "nobody".as_ref()];
    assert!(tool.run(args.into_iter().chain(unknown)).exits(1).err.contains("nobody"));
}

#[test]
fn one_bad_file_stops_no_other_one() {
    let tool = Tool::new();
    let id = |id: &str| HEADER.replace("\"s\"", &format!("\"{id}\""));
    let line = |text: &str| text.to_owned();
    let end = r#"{"type":"turn/end","seq":9,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}"#;
    tool.file("in/a/good.jsonl", lines_of(&[id("good"), line(LINES[1])]));
    tool.file("in/a/hole.jsonl", lines_of(&[id("hole"), line(LINES[1]), line("null"), line(end)]));
    tool.file(
        "in/b/marker.jsonl",
        lines_of(&[
            id("marker"),
            LINES[2].replace(r#","surfaceOp":"append""#, "").replace("\"seq\":1", "\"seq\":0"),
        ]),
    );
    // What it replaces is there, but is no message.
    let replace = LINES[8].replace("\"seq\":7", "\"seq\":1").replace("[1,2]", "[0]");
    let replace = replace.replace("\"start\":1,\"end\":2", "\"start\":0,\"end\":0");
    tool.file("in/b/replace.jsonl", lines_of(&[id("replace"), line(LINES[1]), replace]));
    let number = r#"{"type":"x","seq":0,"time":1,"data":1e400}"#;
    tool.file("in/b/number.jsonl", lines_of(&[id("number"), line(number)]));
    tool.file("in/b/torn.jsonl", format!("{}\n{}\n{{\"type\"", id("torn"), LINES[1]));
    tool.file("in/b/version.jsonl", lines_of(&[id("v").replace("\"version\":0", "\"version\":3")]));
    tool.file("in/b/empty.jsonl", "");
    tool.file("in/b/notes.txt", "not a session");
    tool.file(
        "in/b/outside.jsonl",
        lines_of(&[id("outside"), line(r#"{"type":"x","seq":0,"time":1,"data":1}"#)]),
    );
    let ran = tool.run(["import", "in", "--json"]).exits(1);
    let lines = ran.json();
    assert_eq!(lines.len(), 9, "{}", ran.out);
    let stored: BTreeSet<&str> = lines.iter().filter_map(|line| line["session"].as_str()).collect();
    assert_eq!(stored, BTreeSet::from(["good", "torn", "outside"]));
    let of = |name: &str| {
        lines
            .iter()
            .find(|line| line["file"].as_str().unwrap().ends_with(name))
            .unwrap_or_else(|| panic!("{name}"))
    };
    assert_eq!(of("torn.jsonl")["torn"]["bytes"], 7);
    assert_eq!(of("torn.jsonl")["torn"]["reason"], "unterminated");
    assert_eq!(of("outside.jsonl")["notes"], 1);
    assert_eq!(of("hole.jsonl")["error"]["kind"], "corrupt");
    assert_eq!(of("version.jsonl")["error"]["kind"], "version");
    for (name, words) in [
        ("hole.jsonl", "line 3 (byte"),
        ("marker.jsonl", "I2"),
        ("replace.jsonl", "I4"),
        ("number.jsonl", "line 2"),
        ("version.jsonl", "version"),
        ("empty.jsonl", "no header line"),
    ] {
        let message = of(name)["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{name}: {message}");
    }
    assert_eq!(tool.run(["ls", "--json"]).exits(0).json().len(), 3);
    // What could be kept is kept when that is asked for, and what is missing is said.
    let salvaged = tool.run(["import", "in/a/hole.jsonl", "--salvage", "--json"]).exits(0);
    assert_eq!((&salvaged.one()["damage"]["line"], &salvaged.one()["events"]), (&json!(3), &json!(1)));
    assert!(salvaged.err.contains("missing is everything from event 1 on"), "{}", salvaged.err);
    // The same session a second time.
    assert_eq!(tool.run(["import", "in/a/good.jsonl", "--json"]).exits(0).one()["result"], "unchanged");
    tool.run(["import", "nowhere"]).exits(1);
}

#[test]
fn packed_rows_are_counted() {
    let tool = Tool::new();
    let row = r#"{"type":"text-chunks","seq0":0,"time0":5,"data":{"turn":1,"step":1,"index":0,"dt":[1,-1],"texts":["a","b","c"]}}"#;
    let ran = tool.import("p.jsonl", &[HEADER, row]).exits(0);
    assert!(ran.err.contains("1 packed rows became 3 events"), "{}", ran.err);
    assert_eq!(tool.run(["events", "s", "--json", "--from", "2"]).exits(0).one()["time"], 5);
}

#[test]
fn every_file_of_the_corpus_comes_back() {
    let Some(folder) = shared("corpus/dsh") else { return };
    let tool = Tool::new();
    let imported = tool.run(["import".as_ref(), "--json".as_ref(), folder.as_os_str()]).exits(0).json();
    let out = tool.path("out");
    let args = ["export", "jsonl", "--json", "--out"].map(AsRef::<OsStr>::as_ref);
    let exported = tool.run(args.into_iter().chain([out.as_os_str()])).exits(0).json();
    assert_eq!(exported.len(), imported.len());
    let (mut same, mut packed) = (0, 0);
    for file in &imported {
        let id = file["session"].as_str().unwrap();
        let ours = exported.iter().find(|line| line["session"] == file["session"]).unwrap();
        let ours = fs::read(ours["file"].as_str().unwrap()).unwrap();
        if file.get("packedRows").is_some() {
            packed += 1;
        } else {
            assert!(ours == fs::read(file["file"].as_str().unwrap()).unwrap(), "{id}");
            same += 1;
        }
        assert!(!tool.run(["messages", id, "--json"]).exits(0).out.is_empty(), "{id}");
        tool.run(["surface", id, "--json"]).exits(0);
    }
    tool.run(["verify"]).exits(0);
    println!("{same} files came back byte for byte, {packed} expanded");
    assert!(same >= 5 && packed >= 1);
}

#[test]
fn what_the_reference_wrote_comes_back_at_its_place() {
    let Some(root) = shared("conformance/jsonl/root-written") else { return };
    let tool = Tool::new();
    tool.run(["import".as_ref(), root.as_os_str()]).exits(0);
    let out = tool.path("out");
    tool.run(["export".as_ref(), "jsonl".as_ref(), "--out".as_ref(), out.as_os_str()]).exits(0);
    let files = |root: &Path| {
        let found = sessionlog::interop::import::find_files(root);
        let relative = found.files.into_iter().map(|path| {
            let bytes = fs::read(&path).unwrap();
            (path.strip_prefix(root).unwrap().to_path_buf(), bytes)
        });
        relative.collect::<Vec<_>>()
    };
    assert!(files(&out) == files(&root));
    assert_eq!(files(&root).len(), 18);
}
