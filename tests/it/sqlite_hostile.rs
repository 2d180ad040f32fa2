//! Databases that mean harm, or were harmed: refused by name or read safely, never a panic.

use std::fs;

use rusqlite::Connection;
use sessionlog::ErrorKind;
use sessionlog::interop::sqlite::Database;
use sessionlog::interop::{Ending, HoleReason};

use crate::sqlite_files::{Folder, SCHEMA, events, header, read, read_all, rows, write};

const SESSION: &str = "INSERT INTO sessions VALUES ('a', 0, 7, NULL, NULL, NULL);";
const SESSIONS: &str = "id TEXT PRIMARY KEY, version INTEGER NOT NULL, created_at INTEGER NOT NULL, cwd TEXT,
    parent_session TEXT, seed_length INTEGER";
const EVENTS: &str =
    "session_id TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, time INTEGER NOT NULL,
    data TEXT NOT NULL, source_event_seqs TEXT, surface_op TEXT, PRIMARY KEY (session_id, seq)";

/// Tables that are not strict take any value.
fn loose(rest: &str) -> Folder {
    Folder::with(&format!(
        "CREATE TABLE sessions ({SESSIONS}); CREATE TABLE events ({EVENTS}); PRAGMA user_version = 4; {rest}"
    ))
}

#[test]
fn tables_that_are_none_or_others_are_refused_by_name() {
    let sessions = format!("CREATE TABLE sessions ({SESSIONS});");
    let events = format!("CREATE TABLE events ({EVENTS});");
    let edit = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from));
        text.replace(from, to)
    };
    let endless = "CREATE VIEW sessions AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)
        SELECT CAST(id AS TEXT) AS id, 0 AS version, 0 AS created_at, NULL AS cwd, NULL AS parent_session, NULL AS seed_length FROM n;";
    let full_text = "CREATE VIRTUAL TABLE sessions USING fts5(id, version, created_at, cwd, parent_session, seed_length);";
    let cases = [
        (format!("{endless} {events}"), "sessions is a view, not a table"),
        (format!("{full_text} {events}"), "sessions is a virtual, not a table"),
        (
            format!("{sessions} CREATE VIEW events AS SELECT id AS session_id FROM sessions;"),
            "events is a view, not a table",
        ),
        (sessions.clone(), "there is no table events"),
        (events.clone(), "there is no table sessions"),
        (
            format!("{} {events}", edit(&sessions, "cwd TEXT", "cwd TEXT AS (id || '/')")),
            "sessions.cwd is computed, not stored",
        ),
        (
            format!("{} {events}", edit(&sessions, "seed_length INTEGER", "seed_length INTEGER, more TEXT")),
            "sessions has a further column \"more\"",
        ),
        (
            format!("{sessions} {}", edit(&events, "data TEXT", "data BLOB")),
            "events.data is declared \"BLOB\"",
        ),
        (
            format!("{} {events}", edit(&sessions, "id TEXT PRIMARY KEY", "id TEXT")),
            "sessions.id is declared",
        ),
        (
            format!("{sessions} {}", edit(&events, "(session_id, seq)", "(seq, session_id)")),
            "events.session_id is declared \"TEXT\" (place 2 in the key)",
        ),
        (
            format!("{} {events}", edit(&sessions, "id TEXT", "id TEXT COLLATE NOCASE")),
            "sessions.id is not compared byte by byte",
        ),
    ];
    for (sql, text) in cases {
        let folder = Folder::with(&format!("{sql} PRAGMA user_version = 4;"));
        let error = folder.look(|database| database.unwrap_err());
        assert!(error.kind() == ErrorKind::Version && error.to_string().contains(text), "{sql}: {error}");
        assert!(error.to_string().contains("stamped as schema 4"), "{error}");
    }
}

#[test]
fn what_stands_beside_the_tables_does_not_matter_and_does_not_run() {
    let folder = Folder::with(&format!(
        "{SCHEMA} {SESSION} INSERT INTO events VALUES ('a', 0, 'x', 1, '{{}}', NULL, NULL);
         CREATE TABLE seen (n); CREATE TRIGGER spy AFTER INSERT ON events BEGIN INSERT INTO seen VALUES (1); END;
         CREATE VIEW endless AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n;
         CREATE INDEX odd ON events(time) WHERE data > ''; CREATE TABLE sessionlog_lines (mine);
         CREATE VIRTUAL TABLE words USING fts5(word);"
    ));
    folder.look(|database| {
        let database = database.unwrap();
        assert_eq!(read(&database, "a").unwrap().events.len(), 1);
        assert_eq!(database.orphans().count(), 0);
    });
}

#[test]
fn rows_of_wrong_types_harm_their_own_session_only() {
    let folder = loose(
        "INSERT INTO sessions VALUES ('good', 0, 7, NULL, NULL, NULL), (NULL, 0, 7, NULL, NULL, NULL),
           (x'6162', 0, 7, NULL, NULL, NULL), (CAST(x'ff61' AS TEXT), 0, 7, NULL, NULL, NULL), ('', 0, 7, NULL, NULL, NULL),
           ('real', 0, 7.5, NULL, NULL, NULL), ('word', 'x', 7, NULL, NULL, NULL), ('blob', 0, 7, x'00', NULL, NULL),
           ('huge', 0, 9223372036854775807, NULL, NULL, -9223372036854775808);
         INSERT INTO events VALUES ('good', 0, 'x', 1, '{}', NULL, NULL), ('nobody', 0, 'x', 1, '{}', NULL, NULL),
           ('nobody', 1, 'x', 1, '{}', NULL, NULL), (x'00', 1, 'x', 1, '{}', NULL, NULL);",
    );
    folder.look(|database| {
        let database = database.unwrap();
        let listed: Vec<_> = database.sessions().collect();
        let ids: Vec<&str> = listed.iter().filter_map(|id| id.as_deref().ok()).collect();
        assert_eq!(ids, ["", "blob", "good", "huge", "real", "word"]);
        let errors: Vec<String> =
            listed.iter().filter_map(|id| Some(id.as_ref().err()?.to_string())).collect();
        assert_eq!(errors.len(), 3);
        for (error, text) in errors.iter().zip(["NULL", "a text that is not UTF-8", "a BLOB"]) {
            assert!(error.ends_with(&format!("a row of sessions has {text} where an id belongs")), "{error}");
        }
        assert_eq!(read(&database, "good").unwrap().events.len(), 1);
        assert_eq!(read(&database, "huge").unwrap().header.created_at().as_millis(), Some(i64::MAX));
        for (id, text) in [
            ("", "the session id is empty"),
            ("real", "its column created_at holds a REAL"),
            ("word", "its column version holds a text"),
            ("blob", "its column cwd holds a BLOB"),
            ("none", "there is no session \"none\""),
        ] {
            let error = read(&database, id).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        let orphans: Vec<_> = database.orphans().map(|id| id.map_err(|error| error.kind())).collect();
        assert_eq!(orphans, [Ok("nobody".to_owned()), Err(ErrorKind::Corrupt)]);
    });
}

/// The row at seq 1, and what its session is then; a turn ends behind it.
#[test]
fn a_row_that_is_no_event_is_a_hole_with_its_reason() {
    let cases = [
        ("1, x'00', 1, '{}', NULL, NULL", "row 1: its column type holds a BLOB"),
        (
            "1, CAST(x'80' AS TEXT), 1, '{}', NULL, NULL",
            "row 1: its column type holds a text that is not UTF-8",
        ),
        ("1, 'x', 1.5, '{}', NULL, NULL", "row 1: its column time holds a REAL"),
        ("1, 'x', 'soon', '{}', NULL, NULL", "row 1: its column time holds a text"),
        ("1, 'x', 1, x'7b7d', NULL, NULL", "row 1: its column data holds a BLOB"),
        (
            "1, 'x', 1, CAST(x'22ff22' AS TEXT), NULL, NULL",
            "row 1: its column data holds a text that is not UTF-8",
        ),
        ("1, 'x', 1, '', NULL, NULL", "row 1: not one JSON value: data: "),
        ("1, 'x', 1, '{} {}', NULL, NULL", "row 1: not one JSON value: data: "),
        ("1, 'x', 1, '1,\"surfaceOp\":\"append\"', NULL, NULL", "row 1: not one JSON value: data: "),
        ("1, 'x', 1, '1,\"data\":1', NULL, NULL", "row 1: not one JSON value: data: "),
        ("1, 'x', 1, '{}', '[0],\"x\":1', NULL", "row 1: not one JSON value: source_event_seqs: "),
        ("1, 'x', 1, '{}', x'5b5d', NULL", "row 1: its column source_event_seqs holds a BLOB"),
        ("1, 'x', 1, '{}', NULL, 'append'", "row 1: not one JSON value: surface_op: "),
        ("1.5, 'x', 1, '{}', NULL, NULL", "no seq that is a whole number; its place is 1"),
        ("'one', 'x', 1, '{}', NULL, NULL", "row 2: its seq is 2, its place is 1"),
        ("-1, 'x', 1, '{}', NULL, NULL", "row -1: its seq is -1, its place is 0"),
        ("-9223372036854775808, 'x', 1, '{}', NULL, NULL", "its place is 0"),
        ("9223372036854775807, 'x', 1, '{}', NULL, NULL", "row 2: its seq is 2, its place is 1"),
    ];
    for (values, text) in cases {
        for (last, torn) in [("y", true), ("turn/end", false)] {
            let folder = loose(&format!(
                "{SESSION} INSERT INTO events VALUES ('a', 0, 'turn/start', 1, '{{}}', NULL, NULL), ('a', {values}),
                 ('a', 2, '{last}', 1, '{{}}', NULL, NULL);"
            ));
            let session = folder.look(|database| read(&database.unwrap(), "a").unwrap());
            let hole = if torn { session.tear() } else { session.damage() };
            assert!(hole.to_string().contains(text), "{values}: {hole}");
            assert_eq!(session.verdict.events + session.verdict.lost_entries, 3, "{values}");
        }
    }
}

#[test]
fn values_that_break_a_rule_refuse_their_session_and_are_no_holes() {
    for (values, text) in [
        ("'{}', '{}', NULL", "sourceEventSeqs must be an array"),
        ("'{}', NULL, '\"prepend\"'", "surfaceOp must be"),
        ("'1e999', NULL, NULL", "overflows"),
    ] {
        let folder = loose(&format!("{SESSION} INSERT INTO events VALUES ('a', 0, 'x', 1, {values});"));
        let error = folder.look(|database| read(&database.unwrap(), "a").unwrap_err()).to_string();
        assert!(error.contains(text) && error.contains("session \"a\" row 0"), "{values}: {error}");
    }
}

#[test]
fn line_breaks_between_tokens_become_spaces() {
    let folder = loose(&format!(
        "{SESSION} INSERT INTO events VALUES ('a', 0, 'x', 1, '{{\"a\":' || char(13, 10) || '1}}' || char(10), '[' || char(10) || ']', NULL);"
    ));
    let session = folder.look(|database| read(&database.unwrap(), "a").unwrap());
    assert_eq!(session.verdict.ending, Ending::Whole);
    assert_eq!(session.events[0].data().as_str(), "{\"a\":  1}");
}

#[test]
fn other_encodings_and_tables_without_rowids_are_read() {
    for (first, tables) in [
        ("PRAGMA encoding = 'UTF-16be';", SCHEMA.to_owned()),
        ("PRAGMA auto_vacuum = FULL;", SCHEMA.replace("STRICT", "STRICT, WITHOUT ROWID")),
    ] {
        let folder = Folder::with(&format!(
            "{first} {tables} INSERT INTO sessions VALUES ('ü🙂', 0, 7, NULL, NULL, NULL);
             INSERT INTO events VALUES ('ü🙂', 0, 'x', 1, '\"🙂\"', NULL, NULL), ('ü🙂', 1, 'x', 1, '{{', NULL, NULL);"
        ));
        folder.look(|database| {
            let database = database.unwrap();
            assert_eq!(database.sessions().map(|id| id.unwrap()).collect::<Vec<_>>(), ["ü🙂"]);
            let session = read(&database, "ü🙂").unwrap();
            assert_eq!(session.lines(), ["{\"type\":\"x\",\"seq\":0,\"time\":1,\"data\":\"🙂\"}"]);
            assert_eq!(session.tear().seq, 1);
        });
    }
}

#[test]
fn huge_values_are_told_and_never_loaded() {
    // Made by SQLite, so that the test itself holds none of it.
    let megabytes = |count: u32| format!("'\"' || hex(zeroblob({}))  || '\"'", count << 19);
    let too_much = "hex(zeroblob(40000000))";
    let folder = loose(&format!(
        "{SESSION} INSERT INTO sessions VALUES ('b', 0, 7, NULL, NULL, NULL), ('c', 0, 7, {too_much}, NULL, NULL);
         INSERT INTO events VALUES ('a', 0, 'x', 1, {}, NULL, NULL), ('a', 1, 'x', 1, {}, NULL, NULL),
           ('a', 2, 'turn/end', 1, '{{}}', NULL, NULL), ('b', 0, {too_much}, 1, '{{}}', {too_much}, {too_much});",
        megabytes(1),
        megabytes(64),
    ));
    folder.look(|database| {
        let database = database.unwrap();
        assert_eq!(database.sessions().count(), 3);
        let session = read(&database, "a").unwrap();
        assert_eq!(session.events.len(), 1);
        let found = "67108866 bytes, more than are read".to_owned();
        assert_eq!(session.damage().reason, HoleReason::Column { column: "data", found });
        let session = read(&database, "b").unwrap();
        assert!(matches!(session.tear().reason, HoleReason::Column { column: "type", .. }));
        let error = read(&database, "c").unwrap_err();
        assert!(
            error.is_corruption() && error.to_string().contains("cwd holds a value that is too long"),
            "{error}"
        );
    });
    let folder = loose(&format!("INSERT INTO sessions VALUES ({too_much}, 0, 7, NULL, NULL, NULL);"));
    folder.look(|database| {
        let database = database.unwrap();
        let listed: Vec<_> = database.sessions().collect();
        assert!(listed.len() == 1 && listed[0].is_err(), "{listed:?}");
    });
}

#[test]
fn a_line_counts_only_where_it_says_what_its_row_says() {
    let head = r#"{"type":"session","version":0,"id":"a","createdAt":5,"origin":1}"#;
    let lines = [
        r#"{"type":"x","seq":0,"time":1.5,"data":{"k":1}}"#,
        r#"{"type":"x","seq":1,"time":2,"data":{},"more":1}"#,
        r#"{"type":"x","seq":2,"time":2,"data":{}}"#,
    ];
    for (edit, first, ignored) in [
        ("", lines[0], (false, 0)),
        (
            "UPDATE events SET data = '{}' WHERE seq = 0",
            r#"{"type":"x","seq":0,"time":2,"data":{}}"#,
            (false, 1),
        ),
        (
            "UPDATE sessionlog_lines SET line = '{' WHERE seq = 0",
            r#"{"type":"x","seq":0,"time":2,"data":{"k":1}}"#,
            (false, 1),
        ),
        ("UPDATE sessions SET cwd = '/x'", lines[0], (true, 0)),
        ("DELETE FROM sessionlog_lines", r#"{"type":"x","seq":0,"time":2,"data":{"k":1}}"#, (false, 0)),
        // A line of its own does not make an event.
        (
            "INSERT INTO sessionlog_lines VALUES ('a', 3, '{\"type\":\"x\",\"seq\":3,\"time\":1,\"data\":1}')",
            lines[0],
            (false, 0),
        ),
    ] {
        let folder = Folder::new();
        write(&folder.path, &[(header(head), events(&lines))], Default::default());
        folder.run(edit);
        folder.look(|database| {
            let database = database.unwrap();
            let mut session = database.session("a").unwrap();
            let mut found = Vec::new();
            while let Some(event) = session.next_event().unwrap() {
                found.push(event.to_line());
            }
            assert_eq!((found.len(), found[0].as_str()), (3, first), "{edit}");
            let lines = session.ignored_lines();
            assert_eq!((lines.header, lines.events), ignored, "{edit}");
            assert_eq!(lines.first, Some(0).filter(|_| lines.events > 0), "{edit}");
        });
    }
    // Deleting a session takes its lines along.
    let folder = Folder::new();
    write(&folder.path, &[(header(head), events(&lines))], Default::default());
    folder.run("PRAGMA foreign_keys = ON; DELETE FROM sessions;");
    assert_eq!(rows(&folder.path, "sessionlog_lines", &["seq"], "seq"), [""; 0]);
}

/// The schema says one order, the index has the other.
#[test]
fn an_index_in_another_order_is_damage_and_no_way_round_in_circles() {
    let forged = |sessions: &str, events: &str| {
        Folder::with(&format!(
            "CREATE TABLE sessions ({sessions}); CREATE TABLE events ({events}); PRAGMA user_version = 4; {SESSION}
             INSERT INTO sessions VALUES ('b', 0, 7, NULL, NULL, NULL);
             INSERT INTO events VALUES ('a', 2, 'x', 1, '{{}}', NULL, NULL), ('a', 1, 'x', 1, '{{}}', NULL, NULL),
               ('a', 0, 'x', 1, '{{}}', NULL, NULL);
             PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, ' DESC', '');"
        ))
    };
    forged(&SESSIONS.replace("PRIMARY KEY", "PRIMARY KEY DESC"), EVENTS).look(|database| {
        let database = database.unwrap();
        let listed: Vec<_> = database.sessions().collect();
        assert_eq!(listed.len(), 2, "{listed:?}");
        assert!(
            listed[1].as_ref().unwrap_err().to_string().contains("the ids are not in order"),
            "{listed:?}"
        );
    });
    forged(SESSIONS, &EVENTS.replace("(session_id, seq)", "(session_id, seq DESC)")).look(|database| {
        let session = read(&database.unwrap(), "a").unwrap();
        assert_eq!((session.damage().seq, session.verdict.lost_entries), (0, 1));
    });
}

/// Every byte of a small database in turn, in one of its bits.
#[test]
fn no_flipped_byte_makes_a_panic_or_a_change() {
    let folder = Folder::with(&format!(
        "PRAGMA page_size = 512; {SCHEMA} CREATE TABLE sessionlog_lines (session_id TEXT NOT NULL REFERENCES sessions(id)
           ON DELETE CASCADE, seq INTEGER NOT NULL, line TEXT NOT NULL, PRIMARY KEY (session_id, seq)) STRICT;
         INSERT INTO sessions VALUES ('a', 0, 7, '/x', NULL, NULL), ('b', 0, 7, NULL, 'a', 1);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
           INSERT INTO events SELECT 'a', i, 'x', 1, '{{\"text\":\"some text that fills a page\"}}', NULL, NULL FROM n;
         INSERT INTO events SELECT 'b', seq, 'turn/end', 1, '\"' || hex(zeroblob(200)) || '\"', '[]', '\"append\"' FROM events WHERE seq < 4;"
    ));
    let bytes = fs::read(&folder.path).unwrap();
    let (mut refused, mut whole, mut holes) = (0, 0, 0);
    // 7 has no factor in common with pages and cells, so every kind of byte is met.
    let step = if std::env::var_os("SESSIONLOG_EVERY_BYTE").is_some() { 1 } else { 7 };
    for at in (0..bytes.len()).step_by(step) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&folder.path, &bytes).unwrap();
        let Ok(database) = Database::open(&folder.path) else {
            refused += 1;
            continue;
        };
        let ids: Vec<String> = database.sessions().take(50).filter_map(Result::ok).collect();
        let _ = database.orphans().take(50).count();
        for id in ids {
            match read(&database, &id) {
                Err(_) => refused += 1,
                Ok(session) if session.verdict.ending == Ending::Whole => whole += 1,
                Ok(_) => holes += 1,
            }
        }
        assert_eq!(folder.content().len(), 1, "byte {at}");
        assert!(fs::read(&folder.path).unwrap() == bytes, "byte {at}");
    }
    println!(
        "sqlite: of {} bytes: {refused} refusals, {whole} whole sessions, {holes} with holes",
        bytes.len()
    );
    assert!(refused > 100 && whole > 100 && holes > 100);
}

/// Pages of the rows are gone; another session's are not.
#[test]
fn damage_in_one_session_does_not_hide_the_others() {
    let folder = Folder::with(&format!(
        "{SCHEMA} INSERT INTO sessions VALUES ('a', 0, 7, NULL, NULL, NULL), ('b', 0, 7, NULL, NULL, NULL);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
           INSERT INTO events SELECT 'a', i, 'x', 1, '\"' || hex(zeroblob(300)) || '\"', NULL, NULL FROM n;
         INSERT INTO events SELECT 'b', seq, type, time, data, NULL, NULL FROM events;"
    ));
    let bytes = fs::read(&folder.path).unwrap();
    let connection = Connection::open(&folder.path).unwrap();
    let page: u32 = connection
        .query_row(
            "SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf' LIMIT 1 OFFSET 10",
            [],
            |row| row.get(0),
        )
        .unwrap();
    connection.close().unwrap();
    let page = usize::try_from(page).unwrap();
    let mut hurt = bytes.clone();
    hurt[(page - 1) * 4096..page * 4096].fill(0xA5);
    fs::write(&folder.path, &hurt).unwrap();
    folder.look(|database| {
        let database = database.unwrap();
        let session = read(&database, "a").unwrap();
        assert!(matches!(session.damage().reason, HoleReason::Database(_)), "{}", session.damage());
        assert!(session.events.len() > 10);
        assert_eq!(read(&database, "b").unwrap().events.len(), 201);
    });
    assert_eq!(read_all(&folder.path).len(), 2);
}
