//! The worked example: its dump is the golden segment, field by field.

use super::samples::example_segment;
use super::{blessing, page, spec_path};
use crate::format::layout::Field;
use crate::format::scan::is_zero;
use crate::format::scan::{FrameStep, FrameView, ScanContext, read_frame};
use crate::format::segment_header::{self, SegmentHeader};
use crate::format::{Lsn, Meta, frame, varint};
use std::fmt::Write;

const BEGIN: &str = "<!-- dump: vectors/segment-example.bin -->\n";
const END: &str = "<!-- end of dump -->";
const WIDTH: usize = 16;

/// Bytes with a word on what they are, a line for every 16.
fn put(out: &mut String, file: &[u8], at: usize, len: usize, what: &str) {
    let bytes = &file[at..at + len];
    if len > 2 * WIDTH && is_zero(bytes) {
        writeln!(out, "{at:04x}  00 x {len:<42}  {what}").unwrap();
        return;
    }
    for (index, row) in bytes.chunks(WIDTH).enumerate() {
        let hex: Vec<_> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        let what = if index == 0 { what } else { "" };
        writeln!(out, "{:04x}  {:<47}  {what}", at + index * WIDTH, hex.join(" ")).unwrap();
    }
}

/// Whole lines without blanks at their ends.
fn trimmed(text: &str) -> String {
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn put_fields(out: &mut String, file: &[u8], base: usize, fields: &[Field]) {
    for field in fields {
        let number = match field.len {
            1 | 2 | 4 | 8 if !["magic", "zero"].contains(&field.name) => {
                let mut value = [0; 8];
                value[..field.len].copy_from_slice(field.get(&file[base..]));
                let value = u64::from_le_bytes(value);
                let hex = field.name.contains("CRC") || field.name.contains("chain") || field.name == "salt";
                match field.name {
                    "LSN" | "durable up to" => {
                        format!(": segment {}, offset {}", value >> 32, value & 0xFFFF_FFFF)
                    }
                    _ if hex => format!(": {value:#x}"),
                    _ => format!(": {value}"),
                }
            }
            _ => String::new(),
        };
        put(out, file, base + field.at, field.len, &format!("{}{number}", field.name));
    }
}

/// The metadata in words.
fn words(meta: &Meta) -> String {
    let more = if meta.more() { ", MORE" } else { "" };
    match meta {
        Meta::Create(m) => format!("Create, dense {}{more}", m.dense),
        Meta::Event(m) => format!(
            "Event, coding {}, class {}, dense {}, seq {}, time {} ms{more}",
            m.coding,
            m.class,
            m.dense,
            m.seq,
            m.time_ms.unwrap_or_default(),
        ),
        other => format!("{other:?}"),
    }
}

fn put_frame(out: &mut String, file: &[u8], view: &FrameView<'_>) {
    let start = view.header.lsn.offset() as usize;
    put_fields(out, file, start, frame::fields::FIELDS);
    let mut at = start + 64;
    let mut lens = Vec::new();
    for (index, record) in view.records().enumerate() {
        let record = record.unwrap();
        let len = record.stored_len;
        let (value, prefix) = varint::get(&file[at..]).unwrap();
        let payload = record.payload.len();
        let meta_at = at + prefix + 4 + payload;
        let meta_len = at + len - 1 - meta_at;
        let (place, what) = (record.lsn.offset(), words(&record.meta));
        writeln!(out, "      record {index} at {place}: {what}").unwrap();
        put(out, file, at, prefix, &format!("length: {value}"));
        put(out, file, at + prefix, 4, "CRC");
        put(out, file, at + prefix + 4, payload, "payload");
        put(out, file, meta_at, meta_len, "metadata");
        put(out, file, at + len - 1, 1, &format!("metadata length: {meta_len}"));
        lens.push(len.to_string());
        at += len;
    }
    let (table, pad) = (view.header.table_len as usize, usize::from(view.header.pad_len));
    put(out, file, at, table, &format!("table: {}", lens.join(", ")));
    put(out, file, at + table, pad, "pad");
}

fn dump(file: &[u8]) -> String {
    let (header, crc) = SegmentHeader::decode(file).unwrap();
    let mut out = String::from("      the segment header\n");
    put_fields(&mut out, file, 0, segment_header::fields::FIELDS);
    let (mut at, mut chain) = (SegmentHeader::LEN, crc);
    loop {
        let ctx = ScanContext {
            binding: header.binding(),
            min_epoch: 1,
            max_epoch: 1,
            chain: Some(chain),
            end_limit: u32::try_from(file.len()).unwrap(),
        };
        let FrameStep::Frame(view) = read_frame(&file[at as usize..], Lsn::new(1, at), &ctx) else { break };
        writeln!(out, "      a frame of kind {}", view.header.kind).unwrap();
        put_frame(&mut out, file, &view);
        (at, chain) = (view.end.offset(), view.crc);
    }
    out.push_str("      behind the last frame\n");
    put(&mut out, file, at as usize, file.len() - at as usize, "zero to the end of the file");
    trimmed(&out)
}

/// The bytes that the dump on the page shows, put together again by nothing but its offsets and hex digits.
fn bytes_of(dump: &str) -> Vec<u8> {
    let mut file = Vec::new();
    for line in dump.lines().filter(|line| !line.starts_with(' ')) {
        let (at, rest) = line.split_once("  ").unwrap();
        assert_eq!(usize::from_str_radix(at, 16).unwrap(), file.len(), "{line}");
        let words = rest.split("  ").next().unwrap();
        match words.split_once(" x ") {
            Some((_, count)) => file.resize(file.len() + count.trim().parse::<usize>().unwrap(), 0),
            None => file.extend(
                words.split(' ').filter(|w| !w.is_empty()).map(|w| u8::from_str_radix(w, 16).unwrap()),
            ),
        }
    }
    file
}

#[test]
fn the_dump_on_the_page_is_the_golden_segment() {
    let file = example_segment();
    let fresh = dump(&file);
    if blessing() {
        let text = page("example.md");
        let (front, rest) = text.split_once(BEGIN).unwrap();
        let (_, back) = rest.split_once(END).unwrap();
        std::fs::write(spec_path("example.md"), format!("{front}{BEGIN}```text\n{fresh}```\n{END}{back}"))
            .unwrap();
    }
    let text = page("example.md");
    let shown = text.split_once(BEGIN).unwrap().1.split_once(END).unwrap().0;
    let shown = shown.trim_start_matches("```text\n").trim_end_matches("```\n");
    assert_eq!(shown, fresh);
    assert!(bytes_of(shown) == std::fs::read(spec_path("vectors/segment-example.bin")).unwrap());
}
