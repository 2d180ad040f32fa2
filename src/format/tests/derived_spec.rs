//! The tables of payload.md, index.md and directory.md that are no layouts, against the constants.

use super::page;
use super::spec::{number, table};
use crate::event::{Class, Event, NewEvent, Time};
use crate::format::constants::coding;
use crate::format::directory::entry_flag;
use crate::format::index::{op_code, session_flag};
use crate::format::payload::{self, MAX_SOURCES, Parts, chunk, plain};

fn numbered(text: &str, marker: &str) -> Vec<(u8, String)> {
    table(text, marker).into_iter().map(|row| (number(&row[0]), row[1].clone())).collect()
}

fn named(rows: &[(u8, String)]) -> Vec<(u8, &str)> {
    rows.iter().map(|(n, name)| (*n, name.as_str())).collect()
}

#[test]
fn codings_and_classes_are_those_of_the_code() {
    let text = page("payload.md");
    let rows = numbered(&text, "<!-- codings -->");
    let coded = [(coding::VERBATIM, "VERBATIM"), (coding::PLAIN, "PLAIN"), (coding::CHUNK, "CHUNK")];
    assert_eq!(named(&rows), coded);
    let rows = numbered(&text, "<!-- classes -->");
    let coded: Vec<_> = Class::ALL.iter().map(|c| (*c as u8, c.name().unwrap_or("any other"))).collect();
    assert_eq!(named(&rows), coded);
}

#[test]
fn flags_are_those_of_the_code() {
    let bits = |rows: &[(u8, String)]| -> Vec<(u32, String)> {
        rows.iter().map(|(bit, name)| (1 << bit, name.clone())).collect()
    };
    let check = |file: &str, marker: &str, coded: &[(u32, &str)]| {
        let rows = bits(&numbered(&page(file), marker));
        let written: Vec<_> = rows.iter().map(|(bit, name)| (*bit, name.as_str())).collect();
        assert_eq!(written, coded, "{file} {marker}");
    };
    let fields = [
        (plain::field::APPEND.into(), "append"),
        (plain::field::SOURCES.into(), "sources"),
        (plain::field::EXTRA.into(), "extra"),
    ];
    check("payload.md", "<!-- plain fields -->", &fields);
    let flags = [
        (session_flag::OPEN_TURN, "open turn"),
        (session_flag::TURN_BOUNDARY, "turn boundary"),
        (session_flag::HOLES, "holes"),
    ];
    check("index.md", "<!-- session flags -->", &flags);
    let flags = [
        (entry_flag::DELETED, "deleted"),
        (entry_flag::STAGED, "staged"),
        (entry_flag::OPEN_TURN, "open turn"),
        (entry_flag::DAMAGED, "damaged"),
        (entry_flag::FORK, "fork"),
        (entry_flag::TIMES, "times"),
    ];
    check("directory.md", "<!-- entry flags -->", &flags);
}

#[test]
fn operations_are_those_of_the_code() {
    let rows = numbered(&page("index.md"), "<!-- surface operations -->");
    let numbers: Vec<u8> = rows.iter().map(|(n, _)| *n).collect();
    assert_eq!(numbers, [op_code::NONE, op_code::APPEND, op_code::REPLACE]);
}

/// Each row's template, filled in, packs to the row's shape and strings.
#[test]
fn chunk_shapes_are_those_of_the_code() {
    let rows = table(&page("payload.md"), "<!-- chunk shapes -->");
    let shapes: Vec<u8> = rows.iter().map(|row| number(&row[0])).collect();
    let coded = [
        chunk::SHAPE_TEXT,
        chunk::SHAPE_REASONING,
        chunk::SHAPE_CALL,
        chunk::SHAPE_NAMED_CALL,
        chunk::SHAPE_BLOCK_START,
    ];
    assert_eq!(shapes, coded);
    for row in &rows {
        let mut data =
            row[2].trim_matches('`').replace(":T,", ":3,").replace(":S,", ":4,").replace(":I,", ":5,");
        let mut packed = vec![number(&row[0]), 3, 4, 5];
        let strings: Vec<&str> = row[1].split(", ").collect();
        for (i, name) in strings.iter().enumerate() {
            data = data.replacen('…', name, 1);
            if i + 1 < strings.len() {
                packed.push(u8::try_from(name.len()).unwrap());
            }
            packed.extend(name.bytes());
        }
        let recognised = crate::event::chunk_text::recognise(&data).unwrap_or_else(|| panic!("{data}"));
        let mut out = Vec::new();
        recognised.pack(&mut out);
        assert_eq!(out, packed, "{data}");
    }
}

#[test]
fn limits_stand_in_the_text() {
    assert_eq!(MAX_SOURCES, 1_048_576);
    assert!(page("payload.md").contains("1,048,576") && page("README.md").contains("1,048,576 sources"));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn examples_are_what_the_code_writes() {
    let text = page("payload.md");
    let lines: Vec<&str> =
        text.split('`').filter(|part| part.starts_with("{\"type\":\"") && part.contains("seq")).collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        let event = Event::parse_line(line).unwrap();
        let mut out = Vec::new();
        let encoded = payload::encode(&Parts::of_event(&event), &mut out);
        let shape = encoded.coding | encoded.class << 4;
        let at = text.find(line).unwrap();
        let behind = text[at..].lines().take(2).collect::<String>();
        assert!(behind.contains(&format!("shape byte {shape:02X}")), "{behind}");
        assert!(behind.contains(&format!("`{}`", hex(&out))), "{} {behind}", hex(&out));
    }
    let new = NewEvent::raw("tool/result", "1").unwrap().with_sources(vec![4, 5, 6, 7, 2, 9, 10]);
    let mut out = Vec::new();
    payload::encode(&Parts::of_new(&new, 11, &Time::from_millis(1)), &mut out);
    assert!(text.contains(&format!("`{}`", hex(&out[1..out.len() - 1]))), "{}", hex(&out));
}
