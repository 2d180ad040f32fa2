//! Chunks: packing gives the same text back, or is not used (F9).

use super::grammar;
use super::input::Input;
use crate::event::chunk_text::recognise;
use crate::event::{Event, JsonRef, JsonText, NewEvent, Time};
use crate::format::constants::coding;
use crate::format::payload::{self, Parts};
use crate::interop::jsonl::PackedRow;

/// How to read it u8: 0: the data of a chunk as it is; 1: a row of packed chunks; else: the pieces of a chunk's data.
pub fn packed_chunk(input: &[u8]) {
    let mut input = Input::new(input);
    match input.u8() {
        0 => {
            let Ok(text) = std::str::from_utf8(input.rest()) else { return };
            data(text);
        }
        1 => {
            let Ok(text) = std::str::from_utf8(input.rest()) else { return };
            row(text);
        }
        _ => {
            let spelled = spell(&mut input);
            data(&spelled);
        }
    }
}

/// Kinds of chunks and what they hold.
const KINDS: [(&str, &[&str]); 7] = [
    ("text-delta", &["text"]),
    ("reasoning-delta", &["text"]),
    ("tool-call-delta", &["id", "argumentsDelta"]),
    ("tool-call-delta", &["id", "name", "argumentsDelta"]),
    ("block-start", &["blockType"]),
    ("other", &["text"]),
    ("text\\u002ddelta", &["text"]),
];
const KEYS: [&str; 6] = ["text", "id", "name", "argumentsDelta", "blockType", "more"];

/// A chunk's data, spelled as usual but for what the input says.
fn spell(input: &mut Input<'_>) -> String {
    let odd = input.u8();
    let mut out = String::from("{\"turn\":");
    let number = |input: &mut Input<'_>, out: &mut String| {
        if odd & 1 != 0 { grammar::number(input, out) } else { out.push_str(&input.u16().to_string()) }
    };
    number(input, &mut out);
    out.push_str(if odd & 0x42 == 0x42 { ", \"step\":" } else { ",\"step\":" });
    number(input, &mut out);
    let (kind, usual) = grammar::pick(input, &KINDS).unwrap_or(("x", &[]));
    out.push_str(&format!(",\"chunk\":{{\"type\":\"{kind}\",\"index\":"));
    number(input, &mut out);
    let drawn: Vec<&str> = (0..odd >> 6).filter_map(|_| grammar::pick(input, &KEYS)).collect();
    for key in if odd & 0x10 != 0 { &drawn } else { usual } {
        out.push_str(&format!(",\"{key}\":"));
        if odd & 0x2C == 0x2C { grammar::value(input, &mut out) } else { grammar::string(input, &mut out) }
    }
    out.push_str("}}");
    out
}

/// What was packed comes back byte for byte, by itself and in its line; all else is kept as it is.
fn data(text: &str) {
    let Ok(data) = JsonText::check(text) else { return };
    let time = Time::from_millis(1_788_255_000_040);
    let event = NewEvent::new("assistant/chunk", data.clone()).into_event(7, time);
    let mut packed = Vec::new();
    let meta = payload::encode(&Parts::of_event(&event), &mut packed).meta(3, 7, false);
    assert_eq!(
        meta.coding == coding::CHUNK,
        recognise(&data).is_some(),
        "packed exactly when it is recognised"
    );
    let again = payload::decode(&meta, &packed).expect("what was encoded decodes");
    assert_eq!(again.data().as_str(), data.as_str(), "the data comes back byte for byte");
    assert_eq!(again, event);
    let mut line = String::from("before ");
    payload::render_line(&meta, &packed, &mut line).expect("what was encoded renders");
    assert_eq!(line, format!("before {}", event.to_line()), "the line comes back byte for byte");
}

/// A row's members are chunks in their order; a second way of reading the row finds the same texts.
fn row(text: &str) {
    let Ok(checked) = JsonText::check(text) else { return };
    let row = JsonRef::new_validated(&checked);
    let Some(event_type) = row.get("type").and_then(|value| value.as_str()) else { return };
    let event_type = event_type.to_utf8_lossy().into_owned();
    let Ok(mut packed) = PackedRow::parse(row, &event_type) else { return };
    let lists = ["texts", "args"].map(|key| row.get("data").and_then(|data| data.get(key)));
    let texts: Vec<&str> =
        lists.into_iter().flatten().flat_map(|list| list.elements()).map(|t| t.raw()).collect();
    let first = packed.first_seq();
    let mut members: Vec<Event> = Vec::new();
    while let Some(member) = packed.next_member() {
        let member = member.expect("every member of a checked row is an event");
        data(member.data());
        members.push(member);
    }
    assert_eq!(members.len(), texts.len(), "one event for each text");
    for (place, (member, text)) in (first..).zip(members.iter().zip(texts)) {
        assert_eq!(member.seq(), place);
        assert!(member.data().contains(text), "{member} has not {text}");
    }
}
