//! Parses the tables of the pages and compares them with the constants.

use super::page;
use crate::format::constants::{self, frame_kind, record_flag, record_kind};
use crate::format::layout::Field;
use crate::format::meta::{EventMeta, Meta};
use crate::format::{blocks, control, directory, frame, index, live, segment_header};
use std::collections::BTreeMap;

/// Names of all pages.
fn pages() -> Vec<String> {
    let all = std::fs::read_dir(super::spec_path("")).unwrap();
    let mut names: Vec<_> = all.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".md"));
    names.sort();
    names
}

/// Every layout that a page may show, by the name in its marker.
fn layouts() -> BTreeMap<&'static str, &'static [Field]> {
    BTreeMap::from([
        ("segment_header", segment_header::fields::FIELDS),
        ("frame_header", frame::fields::FIELDS),
        ("control_slot", control::fields::FIELDS),
        ("live_header", live::fields::FIELDS),
        ("live_entry", live::entry_fields::FIELDS),
        ("live_damage", live::damage_fields::FIELDS),
        ("index_header", index::layout::header::FIELDS),
        ("index_session", index::layout::session::FIELDS),
        ("index_structure", index::layout::structure::FIELDS),
        ("run_header", directory::layout::header::FIELDS),
        ("run_hash", directory::layout::by_hash::FIELDS),
        ("run_entry", directory::layout::by_dense::FIELDS),
        ("run_child", directory::layout::child::FIELDS),
    ])
}

/// The cells of the table behind the line `marker`, without its head.
pub(super) fn table(text: &str, marker: &str) -> Vec<Vec<String>> {
    let mut lines = text.lines().skip_while(|line| *line != marker).skip(1);
    assert!(lines.next().is_some_and(|head| head.starts_with('|')), "no table behind {marker}");
    assert!(lines.next().is_some_and(|rule| rule.starts_with("|---")), "no table behind {marker}");
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    lines.take_while(|line| line.starts_with('|')).map(cells).collect()
}

pub(super) fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

#[test]
fn every_layout_table_is_the_layout_of_the_code() {
    let mut open = layouts();
    for name in pages() {
        let text = page(&name);
        for marker in text.lines().filter(|line| line.starts_with("<!-- layout: ")) {
            let layout = marker.trim_start_matches("<!-- layout: ").trim_end_matches(" -->");
            let fields =
                open.remove(layout).unwrap_or_else(|| panic!("{name}: {layout} is unknown or shown twice"));
            let rows = table(&text, marker);
            let written: Vec<(usize, usize, &str)> =
                rows.iter().map(|row| (number(&row[0]), number(&row[1]), row[2].as_str())).collect();
            let coded: Vec<_> = fields.iter().map(|field| (field.at, field.len, field.name)).collect();
            assert_eq!(written, coded, "{name}: {layout}");
        }
    }
    assert!(open.is_empty(), "not in the specification: {:?}", open.keys());
}

#[test]
fn the_limits_are_those_of_the_code() {
    let expected: Vec<(&str, usize)> = vec![
        ("sector", constants::SECTOR),
        ("page", constants::PAGE),
        ("frame alignment", constants::ALIGN),
        ("segment header", constants::SEGMENT_HEADER_LEN),
        ("first frame", constants::FIRST_FRAME as usize),
        ("frame header", constants::FRAME_HEADER_LEN),
        ("longest frame header", constants::MAX_FRAME_HEADER_LEN),
        ("body of a frame", constants::MAX_BODY_LEN as usize),
        ("payload of an event", constants::MAX_PAYLOAD_LEN),
        ("batch", constants::MAX_BATCH_LEN),
        ("session id", constants::MAX_ID_LEN),
        ("event type", constants::MAX_TYPE_LEN),
        ("shortest record", constants::MIN_RECORD_LEN),
        ("longest metadata", constants::MAX_META_LEN),
    ];
    let rows = table(&page("README.md"), "<!-- constants -->");
    let written: Vec<(&str, usize)> = rows.iter().map(|row| (row[0].as_str(), number(&row[1]))).collect();
    assert_eq!(written, expected);
}

#[test]
fn the_versions_are_those_of_the_code() {
    let rows = table(&page("README.md"), "<!-- versions -->");
    let written: BTreeMap<&str, u16> = rows.iter().map(|row| (row[0].as_str(), number(&row[1]))).collect();
    assert_eq!(written.get("segment header"), Some(&constants::SEGMENT_VERSION));
    assert_eq!(written.get("frame"), Some(&u16::from(constants::FRAME_VERSION)));
    assert_eq!(written.get("CONTROL"), Some(&constants::CONTROL_VERSION));
    assert_eq!(written.get("LIVE"), Some(&constants::LIVE_VERSION));
    assert_eq!(written.get("index file"), Some(&blocks::VERSION));
    assert_eq!(written.get("directory run"), Some(&blocks::VERSION));
}

#[test]
fn the_magics_are_those_of_the_code() {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02X}")).collect::<Vec<_>>().join(" ");
    let magic = |file: &str, layout: &str| {
        let rows = table(&page(file), &format!("<!-- layout: {layout} -->"));
        rows[0][3].trim_matches('`').to_owned()
    };
    assert_eq!(magic("segment.md", "segment_header"), hex(&constants::SEGMENT_MAGIC));
    assert_eq!(magic("frame.md", "frame_header"), hex(&constants::FRAME_MAGIC));
    assert_eq!(magic("control.md", "control_slot"), hex(&constants::CONTROL_MAGIC));
    assert_eq!(magic("control.md", "live_header"), hex(&constants::LIVE_MAGIC));
    assert_eq!(magic("index.md", "index_header"), hex(&index::INDEX_MAGIC));
    assert_eq!(magic("directory.md", "run_header"), hex(&directory::RUN_MAGIC));
}

#[test]
fn the_kinds_of_frames_are_those_of_the_code() {
    let rows = table(&page("frame.md"), "<!-- frame kinds -->");
    let written: Vec<u8> = rows.iter().map(|row| number(&row[0])).collect();
    assert_eq!(written, frame_kind::ALL);
    let names: Vec<&str> = rows.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(names, ["data", "index", "seal", "close", "continue", "witness"]);
}

#[test]
fn the_kinds_and_flags_of_records_are_those_of_the_code() {
    let rows = table(&page("record.md"), "<!-- record kinds -->");
    let written: Vec<(u8, &str)> = rows.iter().map(|row| (number(&row[0]), row[1].as_str())).collect();
    let coded = [
        (record_kind::EVENT, "Event"),
        (record_kind::CREATE, "Create"),
        (record_kind::FORK, "Fork"),
        (record_kind::DELETE, "Delete"),
        (record_kind::PUBLISH, "Publish"),
        (record_kind::DAMAGE, "Damage"),
        (record_kind::ACCEPT_LOSS, "AcceptLoss"),
        (record_kind::RETIRE, "Retire"),
        (record_kind::REPLACE, "Replace"),
        (record_kind::INDEX_PART, "IndexPart"),
    ];
    assert_eq!(written, coded);
    let rows = table(&page("record.md"), "<!-- record flags -->");
    let written: Vec<(u8, &str)> =
        rows.iter().map(|row| (1 << number::<u8>(&row[0]), row[1].as_str())).collect();
    let coded = [
        (record_flag::MORE, "MORE"),
        (record_flag::STAGED, "STAGED"),
        (record_flag::REPLACE, "REPLACE"),
        (record_flag::TIME_TEXT, "TIME_TEXT"),
        (record_flag::TURN_OPEN, "TURN_OPEN"),
    ];
    assert_eq!(written, coded);
}

#[test]
fn the_example_of_metadata_is_what_the_code_writes() {
    let meta = Meta::Event(EventMeta {
        more: true,
        coding: constants::coding::CHUNK,
        class: 0,
        dense: 250,
        seq: 251,
        time_ms: Some(0x0605_0403_0201),
        replace: Some((65_536, 1 << 32)),
    });
    let hex: Vec<_> = meta.encode().as_slice().iter().map(|b| format!("{b:02X}")).collect();
    assert!(page("record.md").contains(&format!("`{}`", hex.join(" "))), "{}", hex.join(" "));
}

#[test]
fn links_between_the_pages_lead_somewhere() {
    for name in pages() {
        let text = page(&name);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(super::spec_path(target).exists(), "{name} links to {target}");
        }
    }
}
