//! Texts as agents write them, and as they should not: JSON values and event lines that an input's bytes choose.
//!
//! Always: a byte chooses one step, so that a mutation of the input is a small change of the text. Never: more than
//! eight levels deep, and no more text than some hundred times the input.

use super::input::Input;

const STRINGS: [&str; 16] = [
    "",
    "a",
    "text",
    "call_1",
    "call_2",
    "\\n",
    "\\u0000",
    "\\ud800",
    "\\ud83d\\ude00",
    "\\\"",
    "\\\\",
    "\\/",
    "é",
    "😀",
    "\u{2028}",
    "two words",
];
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "2",
    "7",
    "-1",
    "-0",
    "1.0",
    "1.5",
    "0.1",
    "1e3",
    "1E+2",
    "9007199254740993",
    "999999999999999",
    "18446744073709551616",
    "1788255000040",
    "-1.50e2",
];
const DEEPEST: u8 = 8;

/// One of `from`, by the next byte.
pub(super) fn pick<T: Copy>(input: &mut Input<'_>, from: &[T]) -> Option<T> {
    let at = usize::from(input.u8()).checked_rem(from.len())?;
    from.get(at).copied()
}

/// A string with its quotes: one of the usual ones, or a piece of the input as far as it is UTF-8.
pub(super) fn string(input: &mut Input<'_>, out: &mut String) {
    out.push('"');
    match input.u8() {
        len @ 0..32 => {
            let text = String::from_utf8_lossy(input.take(usize::from(len))).into_owned();
            out.extend(text.chars().filter(|c| !matches!(c, '"' | '\\') && !c.is_control()));
        }
        other => out.push_str(STRINGS.get(usize::from(other) % STRINGS.len()).copied().unwrap_or_default()),
    }
    out.push('"');
}

pub(super) fn number(input: &mut Input<'_>, out: &mut String) {
    out.push_str(pick(input, &NUMBERS).unwrap_or("0"));
}

/// Any value.
pub(super) fn value(input: &mut Input<'_>, out: &mut String) {
    value_at(input, out, 0);
}

fn value_at(input: &mut Input<'_>, out: &mut String, depth: u8) {
    let choice = input.u8();
    let count = usize::from(choice >> 3) % 4;
    match choice % 8 {
        0 if depth < DEEPEST => {
            list(input, out, ("[", "]"), count, |input, out| value_at(input, out, depth + 1))
        }
        1 | 2 if depth < DEEPEST => list(input, out, ("{", "}"), count, |input, out| {
            string(input, out);
            out.push(':');
            value_at(input, out, depth + 1);
        }),
        3 => out.push_str("null"),
        4 => out.push_str(if count == 0 { "true" } else { "false" }),
        5 => number(input, out),
        _ => string(input, out),
    }
}

fn list(
    input: &mut Input<'_>,
    out: &mut String,
    (open, close): (&str, &str),
    count: usize,
    mut item: impl FnMut(&mut Input<'_>, &mut String),
) {
    out.push_str(open);
    for at in 0..count {
        if at > 0 {
            out.push(',');
        }
        item(input, out);
    }
    out.push_str(close);
}

const TYPES: [&str; 14] = [
    "turn/start",
    "turn/end",
    "step/start",
    "step/end",
    "assistant/chunk",
    "assistant/message",
    "tool/call",
    "tool/result",
    "user/message",
    "context/message",
    "steering/message",
    "plugin/note",
    "tool\\/call",
    "a type",
];

/// What stands in the data of usual events; every value is JSON.
const MEMBERS: [(&str, &[&str]); 14] = [
    ("turn", &["1", "2", "1.0"]),
    ("step", &["1", "2"]),
    ("trigger", &[r#"{"kind":"message","source":{"kind":"user"}}"#]),
    ("reason", &[r#"{"kind":"completed"}"#, r#"{"kind":"aborted"}"#]),
    (
        "chunk",
        &[
            r#"{"type":"text-delta","index":0,"text":"Be"}"#,
            r#"{"type":"reasoning-delta","index":1,"text":"hm\n"}"#,
            r#"{"type":"tool-call-delta","index":2,"id":"call_1","name":"sh","argumentsDelta":"{\"a\":"}"#,
            r#"{"type":"tool-call-delta","index":2,"id":"call_1","argumentsDelta":"1}"}"#,
            r#"{"type":"block-start","index":3,"blockType":"text"}"#,
            r#"{"index":0,"type":"text-delta","text":"Be"}"#,
        ],
    ),
    (
        "content",
        &[
            r#"[{"type":"text","text":"Hello"}]"#,
            r#"[{"type":"tool-call","id":"call_1","name":"sh","arguments":{"a":1}}]"#,
            r#"[{"type":"tool-call","id":"call_2","name":"sh","arguments":{}},{"type":"tool-call","id":"call_1"}]"#,
            r#""plain text""#,
            "[]",
        ],
    ),
    ("message", &[r#"{"role":"assistant","content":[{"type":"text","text":"carried"}]}"#, "null"]),
    ("callId", &[r#""call_1""#, r#""call_2""#, r#""\u0063all_1""#]),
    ("id", &[r#""call_1""#, r#""call_2""#]),
    ("name", &[r#""sh""#]),
    ("finishReason", &[r#""stop""#, r#""tool-calls""#]),
    ("source", &[r#"{"kind":"user"}"#, r#"{"kind":"plugin","plugin":"p"}"#]),
    ("isError", &["true", "false"]),
    ("result", &[r#"{"ok":true}"#, r#""text""#]),
];

/// A line of an event at place `seq`: mostly what belongs there, now and then what does not.
pub(super) fn event_line(input: &mut Input<'_>, seq: u64) -> String {
    let mut out = String::new();
    let event_type = pick(input, &TYPES).unwrap_or("x");
    out.push_str("{\"type\":\"");
    out.push_str(event_type);
    out.push_str("\",\"seq\":");
    // What comes next decides how odd the envelope is; most bits say that it is not.
    let odd = input.u8();
    out.push_str(&if odd == 0xF0 { seq.wrapping_add(u64::from(input.u8())) } else { seq }.to_string());
    out.push_str(if odd & 0xC1 == 0xC1 { ", \"time\": " } else { ",\"time\":" });
    if odd & 0xA2 == 0xA2 {
        number(input, &mut out);
    } else {
        out.push_str(&(1_788_255_000_000 + seq).to_string());
    }
    out.push_str(",\"data\":");
    data(input, &mut out);
    let is_message = event_type.ends_with("/message") || event_type == "tool/result";
    if odd & 4 != 0 {
        sources(input, seq, &mut out);
    }
    if is_message != (odd & 0xA8 == 0xA8) {
        marker(input, seq, &mut out);
    }
    if odd & 0x91 == 0x91 {
        out.push(',');
        string(input, &mut out);
        out.push(':');
        value(input, &mut out);
    }
    out.push('}');
    out
}

fn data(input: &mut Input<'_>, out: &mut String) {
    let choice = input.u8();
    if choice == 0xFF {
        return value(input, out);
    }
    list(input, out, ("{", "}"), usize::from(choice) % 6, |input, out| {
        let (name, values) = pick(input, &MEMBERS).unwrap_or(("x", &["1"]));
        out.push('"');
        out.push_str(name);
        out.push_str("\":");
        match input.u8() {
            255 => value(input, out),
            other => {
                out.push_str(values.get(usize::from(other) % values.len().max(1)).copied().unwrap_or("null"))
            }
        }
    });
}

/// Some seq that is near `seq`.
fn near(input: &mut Input<'_>, seq: u64) -> u64 {
    seq.saturating_sub(u64::from(input.u8() % 16))
}

fn sources(input: &mut Input<'_>, seq: u64, out: &mut String) {
    out.push_str(",\"sourceEventSeqs\":");
    let count = usize::from(input.u8()) % 6;
    list(input, out, ("[", "]"), count, |input, out| out.push_str(&near(input, seq).to_string()));
}

fn marker(input: &mut Input<'_>, seq: u64, out: &mut String) {
    out.push_str(",\"surfaceOp\":");
    match input.u8() {
        0..160 => out.push_str("\"append\""),
        255 => value(input, out),
        _ => {
            let (start, end) = (near(input, seq), near(input, seq));
            out.push_str(&format!("{{\"op\":\"replace\",\"start\":{start},\"end\":{end}}}"));
        }
    }
}
