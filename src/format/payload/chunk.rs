//! CHUNK: the packed form of the five token deltas that make up most events of a log.
//!
//! [`recognise`] matches the exact canonical text and nothing near it: what it accepts, [`Chunk::render`] gives
//! back byte for byte. It never builds a JSON tree, because it runs once per append. Strings are the bytes between
//! the quotes as they were spelled, so no escape is ever decoded, and no byte of them is NUL (F8).

use crate::format::varint::{self, Cursor};

/// Shape 1: `text-delta {index, text}`.
pub(crate) const SHAPE_TEXT: u8 = 1;
/// Shape 2: `reasoning-delta {index, text}`.
pub(crate) const SHAPE_REASONING: u8 = 2;
/// Shape 3: `tool-call-delta {index, id, argumentsDelta}`.
pub(crate) const SHAPE_CALL: u8 = 3;
/// Shape 4: `tool-call-delta {index, id, name, argumentsDelta}`.
pub(crate) const SHAPE_NAMED_CALL: u8 = 4;
/// Shape 5: `block-start {index, blockType}`.
pub(crate) const SHAPE_BLOCK_START: u8 = 5;

/// A chunk's data, its strings as spelled between their quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk<'a> {
    turn: u64,
    step: u64,
    index: u64,
    body: Body<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body<'a> {
    Text(&'a str),
    Reasoning(&'a str),
    Call { id: &'a str, name: Option<&'a str>, arguments: &'a str },
    BlockStart(&'a str),
}

/// The chunk that `data`, a valid JSON text, spells in the canonical way; none for any other text.
pub(crate) fn recognise(data: &str) -> Option<Chunk<'_>> {
    let mut text = Text { rest: data };
    text.skip("{\"turn\":")?;
    let turn = text.number()?;
    text.skip(",\"step\":")?;
    let step = text.number()?;
    text.skip(",\"chunk\":{\"type\":\"")?;
    let kind = text.string()?;
    text.skip(",\"index\":")?;
    let index = text.number()?;
    let body = match kind {
        "text-delta" => Body::Text(text.member(",\"text\":\"")?),
        "reasoning-delta" => Body::Reasoning(text.member(",\"text\":\"")?),
        "tool-call-delta" => {
            let id = text.member(",\"id\":\"")?;
            let name = text.member(",\"name\":\"");
            Body::Call { id, name, arguments: text.member(",\"argumentsDelta\":\"")? }
        }
        "block-start" => Body::BlockStart(text.member(",\"blockType\":\"")?),
        _ => return None,
    };
    (text.rest == "}}").then_some(Chunk { turn, step, index, body })
}

impl<'a> Chunk<'a> {
    /// Appends the packed form.
    pub(crate) fn pack(&self, out: &mut Vec<u8>) {
        let shape = match self.body {
            Body::Text(_) => SHAPE_TEXT,
            Body::Reasoning(_) => SHAPE_REASONING,
            Body::Call { name: None, .. } => SHAPE_CALL,
            Body::Call { name: Some(_), .. } => SHAPE_NAMED_CALL,
            Body::BlockStart(_) => SHAPE_BLOCK_START,
        };
        out.push(shape);
        varint::put(out, self.turn);
        varint::put(out, self.step);
        varint::put(out, self.index);
        let last = match self.body {
            Body::Text(text) | Body::Reasoning(text) | Body::BlockStart(text) => text,
            Body::Call { id, name, arguments } => {
                super::put_sized(out, id);
                if let Some(name) = name {
                    super::put_sized(out, name);
                }
                arguments
            }
        };
        out.extend_from_slice(last.as_bytes());
    }

    /// Reads the packed form. Strings that no JSON text can hold between quotes are refused.
    pub(crate) fn unpack(payload: &'a [u8]) -> Result<Self, String> {
        let mut cursor = Cursor::new(payload);
        let shape = cursor.u8().map_err(|e| format!("chunk: {e}"))?;
        let mut number = || cursor.varint().map_err(|e| format!("chunk: {e}"));
        let (turn, step, index) = (number()?, number()?, number()?);
        let mut sized = || cursor.sized().map_err(|e| format!("chunk: {e}")).and_then(inner);
        let (id, name) = match shape {
            SHAPE_TEXT | SHAPE_REASONING | SHAPE_BLOCK_START => ("", None),
            SHAPE_CALL => (sized()?, None),
            SHAPE_NAMED_CALL => (sized()?, Some(sized()?)),
            other => return Err(format!("chunk: unknown shape {other}")),
        };
        let last = inner(cursor.rest())?;
        let body = match shape {
            SHAPE_TEXT => Body::Text(last),
            SHAPE_REASONING => Body::Reasoning(last),
            SHAPE_BLOCK_START => Body::BlockStart(last),
            _ => Body::Call { id, name, arguments: last },
        };
        Ok(Self { turn, step, index, body })
    }

    /// The JSON text that [`recognise`] took apart.
    pub(crate) fn render(&self) -> String {
        let mut out = String::with_capacity(self.rendered_bound());
        out.push_str("{\"turn\":");
        push_number(&mut out, self.turn);
        out.push_str(",\"step\":");
        push_number(&mut out, self.step);
        out.push_str(",\"chunk\":{\"type\":\"");
        out.push_str(match self.body {
            Body::Text(_) => "text-delta",
            Body::Reasoning(_) => "reasoning-delta",
            Body::Call { .. } => "tool-call-delta",
            Body::BlockStart(_) => "block-start",
        });
        out.push_str("\",\"index\":");
        push_number(&mut out, self.index);
        match self.body {
            Body::Text(text) | Body::Reasoning(text) => push_member(&mut out, ",\"text\":\"", text),
            Body::BlockStart(kind) => push_member(&mut out, ",\"blockType\":\"", kind),
            Body::Call { id, name, arguments } => {
                push_member(&mut out, ",\"id\":\"", id);
                if let Some(name) = name {
                    push_member(&mut out, ",\"name\":\"", name);
                }
                push_member(&mut out, ",\"argumentsDelta\":\"", arguments);
            }
        }
        out.push_str("}}");
        out
    }

    /// Room for the text with usual numbers, so that rendering allocates once.
    fn rendered_bound(&self) -> usize {
        let strings = match self.body {
            Body::Text(text) | Body::Reasoning(text) | Body::BlockStart(text) => text.len(),
            Body::Call { id, name, arguments } => {
                id.len() + name.map_or(0, |n| n.len() + 10) + arguments.len() + 28
            }
        };
        strings + 96
    }
}

fn push_member(out: &mut String, key: &str, value: &str) {
    out.push_str(key);
    out.push_str(value);
    out.push('"');
}

fn push_number(out: &mut String, mut value: u64) {
    if value < 10 {
        out.push(char::from(digit(value)));
        return;
    }
    let mut digits = [b'0'; 20];
    let mut used = 0;
    for slot in digits.iter_mut().rev() {
        *slot = digit(value % 10);
        value /= 10;
        used += 1;
        if value == 0 {
            break;
        }
    }
    out.extend(digits.iter().skip(digits.len() - used).map(|&d| char::from(d)));
}

fn digit(value: u64) -> u8 {
    let [low, ..] = value.to_le_bytes();
    b'0' + low
}

/// The part of a text that was not matched yet.
struct Text<'a> {
    rest: &'a str,
}

impl<'a> Text<'a> {
    fn skip(&mut self, expected: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    /// `key`, then a string's bytes up to its closing quote, which is taken too; nothing is taken without `key`.
    fn member(&mut self, key: &str) -> Option<&'a str> {
        self.skip(key)?;
        self.string()
    }

    fn string(&mut self) -> Option<&'a str> {
        let end = closing_quote(self.rest.as_bytes())?;
        let (inner, quoted) = self.rest.split_at_checked(end)?;
        self.rest = quoted.strip_prefix('"')?;
        Some(inner)
    }

    /// A whole number spelled as `push_number` spells it.
    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        let mut digits = 0usize;
        for byte in self.rest.bytes() {
            if !byte.is_ascii_digit() {
                break;
            }
            value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
            digits += 1;
        }
        let leading_zero = digits > 1 && self.rest.starts_with('0');
        if digits == 0 || leading_zero {
            return None;
        }
        self.rest = self.rest.get(digits..)?;
        Some(value)
    }
}

/// Where the first quote that no backslash escapes stands.
fn closing_quote(bytes: &[u8]) -> Option<usize> {
    let mut escaped = false;
    for (i, &byte) in bytes.iter().enumerate() {
        if escaped {
            escaped = false;
        } else if byte == b'"' {
            return Some(i);
        } else {
            escaped = byte == b'\\';
        }
    }
    None
}

/// `bytes` as the text between two quotes.
fn inner(bytes: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| format!("chunk: a string is not UTF-8: {e}"))?;
    if is_string_inner(bytes) { Ok(text) } else { Err("chunk: a string that JSON cannot quote".to_owned()) }
}

fn is_string_inner(mut rest: &[u8]) -> bool {
    while let [byte, tail @ ..] = rest {
        rest = match (byte, tail) {
            (b'"' | 0..=0x1F, _) => return false,
            (b'\\', [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', after @ ..]) => after,
            (b'\\', [b'u', a, b, c, d, after @ ..]) if [a, b, c, d].iter().all(|h| h.is_ascii_hexdigit()) => {
                after
            }
            (b'\\', _) => return false,
            _ => tail,
        };
    }
    true
}
