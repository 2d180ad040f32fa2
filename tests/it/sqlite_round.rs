//! Events → database → events, and database → events → database: nothing is lost, and nothing is added.

use std::collections::BTreeMap;
use std::process::Command;

use proptest::prelude::*;
use sessionlog::event::{Event, Header};
use sessionlog::interop::Ending;
use sessionlog::interop::import::find_files;
use sessionlog::interop::jsonl::Reader;
use sessionlog::interop::sqlite::{Database, Misfit, SqliteOptions, Writer};

use crate::event_lines::odd_line_at;
use crate::sqlite_files::{
    Folder, assert_finished, event_rows, events, header, put, read, read_all, rows, session_rows, write,
};
use crate::vectors;

/// What `sqlite3 FILE .dump` says: the rows, and the schema without its white space.
fn dump(folder: &Folder) -> Option<Vec<String>> {
    let output = match Command::new("sqlite3").arg(&folder.path).arg(".dump").output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: the comparison of dumps, as sqlite3 cannot be run: {error}");
            return None;
        }
    };
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let statements =
        text.split(";\n").map(|statement| statement.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut statements: Vec<String> =
        statements.map(|text| text.replace("( ", "(").replace(" )", ")")).collect();
    // The order of rows is that of their insertion.
    statements.sort();
    Some(statements)
}

#[test]
fn databases_of_the_reference_come_back_row_by_row() {
    let mut compared = 0;
    for file in ["valid.db", "open-turns.db", "batches.db", "wal.db", "empty.db"] {
        let Some(source) = vectors::shared_path(&format!("sqlite/{file}")) else { return };
        let (original, ours) = (Folder::new(), Folder::new());
        std::fs::write(&original.path, std::fs::read(&source).unwrap()).unwrap();
        if file == "wal.db" {
            let log = std::fs::read(source.with_extension("db-wal")).unwrap();
            std::fs::write(original.path.with_extension("db-wal"), log).unwrap();
        }
        let sessions: Vec<(Header, Vec<Event>)> =
            original.look(|_| read_all(&original.path)).into_iter().map(|s| (s.header, s.events)).collect();
        for put in write(&ours.path, &sessions, SqliteOptions { strict: true, ..SqliteOptions::default() }) {
            assert_eq!(put.kept, [], "{file}");
        }
        assert_finished(&ours.path);
        assert_eq!(ours.content().len(), 1, "{file}: one file, alone");
        assert_eq!(session_rows(&ours.path), session_rows(&original.path), "{file}");
        let (found, wanted) = (event_rows(&ours.path), event_rows(&original.path));
        assert_eq!(found, wanted, "{file}");
        compared += wanted.len();
        if let (Some(found), Some(wanted)) = (dump(&ours), dump(&original)) {
            assert_eq!(found, wanted, "{file}");
        }
    }
    println!("sqlite: {compared} rows of 5 databases come back the same");
    assert!(compared > 900);
}

/// Sessions of the harness itself, as its files have them.
#[test]
fn logs_of_the_harness_come_back_line_by_line() {
    let Some(root) = vectors::shared_path("../corpus/dsh") else { return };
    let folder = Folder::new();
    let mut writer = Writer::create(&folder.path, SqliteOptions::default()).unwrap();
    let mut sessions = BTreeMap::new();
    let mut kept: BTreeMap<&str, u64> = BTreeMap::new();
    for path in find_files(&root).files {
        let Ok(mut reader) = Reader::open(&path) else { continue };
        let header = reader.header().clone();
        let events: Vec<Event> = std::iter::from_fn(|| reader.next_event().unwrap()).collect();
        if sessions.contains_key(header.id()) {
            continue;
        }
        for line in put(&mut writer, &header, &events).unwrap().kept {
            *kept.entry(line.misfit.code()).or_default() += line.count;
        }
        let lines: Vec<String> = events.iter().map(Event::to_line).collect();
        sessions.insert(header.id().to_owned(), (header.to_line(), lines));
    }
    writer.finish().unwrap();
    assert_finished(&folder.path);
    let found = folder.look(|_| read_all(&folder.path));
    assert_eq!(found.len(), sessions.len());
    let mut count = 0;
    for session in found {
        let (header, lines) = &sessions[session.header.id()];
        assert_eq!(session.header.to_line(), *header);
        assert_eq!(session.verdict.ending, Ending::Whole);
        assert_eq!(session.lines(), *lines, "{header}");
        count += lines.len();
    }
    println!(
        "sqlite: {} sessions of the harness, {count} events; lines kept beside rows: {kept:?}",
        sessions.len()
    );
    assert!(count > 1000);
}

/// The same events again, and the same rows when they are written once more.
fn assert_round(sessions: &[(Header, Vec<Event>)]) {
    let (first, second) = (Folder::new(), Folder::new());
    write(&first.path, sessions, SqliteOptions::default());
    assert_finished(&first.path);
    let again: Vec<(Header, Vec<Event>)> = first.look(|database| {
        let database = database.unwrap();
        let ids: Vec<String> = database.sessions().map(|id| id.unwrap()).collect();
        assert_eq!(ids.len(), sessions.len());
        ids.iter().map(|id| read(&database, id).unwrap()).map(|s| (s.header, s.events)).collect()
    });
    for (header, events) in sessions {
        let (found, found_events) = again.iter().find(|(found, _)| found.id() == header.id()).unwrap();
        assert_eq!(found, header);
        assert_eq!(found_events, events);
        let lines = |events: &[Event]| events.iter().map(Event::to_line).collect::<Vec<_>>();
        assert_eq!(lines(found_events), lines(events));
    }
    write(&second.path, &again, SqliteOptions::default());
    assert_eq!(session_rows(&second.path), session_rows(&first.path));
    assert_eq!(event_rows(&second.path), event_rows(&first.path));
}

fn header_line(id: usize) -> impl Strategy<Value = String> {
    let time =
        prop::sample::select(vec!["5", "-1", "1.5", "1e3", "9007199254740993", "99999999999999999999", "-0"]);
    let fields = prop::sample::subsequence(
        vec![
            r#","cwd":"/a/b ü""#,
            r#","cwd":"rel/ative""#,
            r#","cwd":7"#,
            r#","parentSession":"p\u0000q""#,
            r#","parentSession":"p'q\"""#,
            r#","parentSession":"\ud800""#,
            r#","seedLength":3"#,
            r#","seedLength":-3"#,
            r#","seedLength":18446744073709551615"#,
            r#","origin":{"a":[1.0]}"#,
            r#","cwd":null"#,
        ],
        0..4,
    );
    let names = prop::sample::select(vec!["s", "nul\\u0000s", "quote'\\\"", "日本🙂", ".."]);
    (names, time, fields, any::<bool>()).prop_map(move |(name, time, fields, odd)| {
        let space = if odd { " " } else { "" };
        let fields = fields.concat();
        format!(
            "{{\"type\":\"session\",{space}\"version\":0,\"id\":\"{name}{id}\",\"createdAt\":{time}{fields}}}"
        )
    })
}

fn session(id: usize) -> impl Strategy<Value = (Header, Vec<Event>)> {
    let lines = (0_u64..10).prop_flat_map(|count| (0..count).map(odd_line_at).collect::<Vec<_>>());
    (header_line(id), lines).prop_map(|(line, lines)| {
        let event = |(seq, line): (usize, &String)| {
            let seq = u64::try_from(seq).unwrap();
            // A later duplicate may have made it no event, or another place's.
            Event::parse_line(line).ok().filter(|event| event.seq() == seq).unwrap_or_else(|| {
                Event::parse_line(&format!(
                    "{{\"type\":\"a\\u0000b\",\"seq\":{seq},\"time\":1.0,\"data\":[ ]}}"
                ))
                .unwrap()
            })
        };
        (header(&line), lines.iter().enumerate().map(event).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn any_session_comes_back_byte_for_byte(sessions in (0_usize..4).prop_flat_map(|count| (0..count).map(session).collect::<Vec<_>>())) {
        assert_round(&sessions);
    }
}

const PLAIN: &str = r#"{"type":"session","version":0,"id":"s","createdAt":5}"#;
const EVENT: &str = r#"{"type":"x","seq":0,"time":1,"data":{}}"#;

/// A header and an event of which one does not fit, why, in which field, and in which event.
type Odd = (&'static str, &'static str, Misfit, &'static str, Option<u64>);

const ODD: [Odd; 13] = [
    (
        PLAIN,
        r#"{"type":"x","seq":0,"time":1,"data":{},"ignorable":true}"#,
        Misfit::UnknownField,
        "ignorable",
        Some(0),
    ),
    (PLAIN, r#"{"type":"x","seq":0,"time":1.5,"data":{}}"#, Misfit::Time, "time", Some(0)),
    (PLAIN, r#"{"type":"x","seq":0,"time":1.0,"data":{}}"#, Misfit::Time, "time", Some(0)),
    (PLAIN, r#"{"type":"x","seq":0,"time":9007199254740992,"data":{}}"#, Misfit::Time, "time", Some(0)),
    (PLAIN, r#"{"type":"x\u0000y","seq":0,"time":1,"data":{}}"#, Misfit::Text, "type", Some(0)),
    (PLAIN, r#"{"type":"\udc00","seq":0,"time":1,"data":{}}"#, Misfit::Text, "type", Some(0)),
    (PLAIN, r#"{"seq":0,"type":"x","time":1,"data":{}}"#, Misfit::Spelling, "the line", Some(0)),
    (PLAIN, r#"{"type":"x","seq":0,"time":1,"data":{},"data":{}}"#, Misfit::Spelling, "the line", Some(0)),
    (
        r#"{"type":"session","version":0,"id":"s","createdAt":5,"origin":1}"#,
        EVENT,
        Misfit::UnknownField,
        "origin",
        None,
    ),
    (r#"{"type":"session","version":0,"id":"s","createdAt":5.5}"#, EVENT, Misfit::Time, "createdAt", None),
    (r#"{"type":"session","version":0,"id":"s\u0000","createdAt":5}"#, EVENT, Misfit::Text, "id", None),
    (
        r#"{"type":"session","version":0,"id":"s","createdAt":5,"cwd":4}"#,
        EVENT,
        Misfit::HeaderField,
        "cwd",
        None,
    ),
    (r#"{"version":0,"type":"session","id":"s","createdAt":5}"#, EVENT, Misfit::Spelling, "the line", None),
];

#[test]
fn what_schema_4_has_no_place_for_is_kept_told_and_refused_when_strict() {
    for (header_text, line, misfit, field, first) in ODD {
        let folder = Folder::new();
        let session = (header(header_text), events(&[line]));
        let puts = write(&folder.path, std::slice::from_ref(&session), SqliteOptions::default());
        let [kept] = &puts[0].kept[..] else { panic!("{line}: {puts:?}") };
        assert_eq!(
            (kept.misfit, kept.count, kept.first, kept.field.as_str()),
            (misfit, 1, first, field),
            "{line}"
        );
        assert_eq!(rows(&folder.path, "sessionlog_lines", &["seq"], "seq").len(), 1);
        let found = folder.look(|_| read_all(&folder.path));
        assert_eq!(found[0].header.to_line(), header_text);
        assert_eq!(found[0].lines(), [line]);

        let strict = Folder::new();
        let options = SqliteOptions { strict: true, ..SqliteOptions::default() };
        let mut writer = Writer::create(&strict.path, options).unwrap();
        let error = put(&mut writer, &session.0, &session.1).unwrap_err().to_string();
        let place = first.map_or("header".to_owned(), |seq| format!("event {seq}"));
        assert!(error.contains(&format!("{place}, {field}: schema 4 has no place for")), "{error}");
        writer.finish().unwrap();
        assert_eq!(session_rows(&strict.path), [""; 0], "nothing of it is there");
        assert_eq!(Database::open(&strict.path).unwrap().sessions().count(), 0);
    }
}

/// A row whose columns say all of it needs no line, odd as its spelling may be.
#[test]
fn a_row_keeps_the_spelling_of_sources_and_marker() {
    let lines = [
        r#"{"type":"x","seq":0,"time":1,"data":{ "a" : 1.50 },"sourceEventSeqs":[ 0.0e1 ],"surfaceOp":null}"#,
        r#"{"type":"user/message","seq":1,"time":-7,"data":"\ud800","surfaceOp":{"end":0,"op":"replace","start":0}}"#,
        r#"{"type":"x","seq":2,"time":9007199254740991,"data":null,"sourceEventSeqs":[]}"#,
    ];
    let folder = Folder::new();
    let relative = r#"{"type":"session","version":0,"id":"s","createdAt":5,"cwd":"rel","seedLength":-1}"#;
    let session = (header(relative), events(&lines));
    let puts = write(&folder.path, &[session], SqliteOptions { strict: true, ..SqliteOptions::default() });
    assert_eq!(puts[0].kept, []);
    let found = folder.look(|_| read_all(&folder.path));
    assert_eq!(
        (found[0].lines(), found[0].header.to_line()),
        (lines.map(str::to_owned).to_vec(), relative.to_owned())
    );
    let columns = ["source_event_seqs", "surface_op", "time"];
    let wanted = [
        "'[ 0.0e1 ]','null',1",
        r#"NULL,'{"end":0,"op":"replace","start":0}',-7"#,
        "'[]',NULL,9007199254740991",
    ];
    assert_eq!(rows(&folder.path, "events", &columns, "seq"), wanted);
}
