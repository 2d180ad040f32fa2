//! The token deltas that make up most events of a log, taken apart without a JSON tree.
//!
//! [`recognise`] matches the exact canonical text and nothing near it, so that what it accepts can be rendered again
//! byte for byte, and has no member twice. Strings are the bytes between the quotes as they were spelled.

use super::exact::{ReadString, Text};
use super::json::{checked_quote, closing_quote};

/// A chunk's data, its strings as spelled between their quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk<'a> {
    pub(crate) turn: u64,
    pub(crate) step: u64,
    pub(crate) index: u64,
    pub(crate) body: ChunkBody<'a>,
}

/// What is streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkBody<'a> {
    Text(&'a str),
    Reasoning(&'a str),
    Call { id: &'a str, name: Option<&'a str>, arguments: &'a str },
    BlockStart(&'a str),
}

/// The chunk that `data`, a valid JSON text, spells in the canonical way; none for any other text.
pub(crate) fn recognise(data: &str) -> Option<Chunk<'_>> {
    let mut text = Text { rest: data };
    let chunk = front(&mut text, closing_quote)?;
    text.rest.is_empty().then_some(chunk)
}

/// Takes a chunk that is spelled in the canonical way from the front of a text that was not checked to be JSON; nothing
/// for what begins otherwise. It is checked by that.
pub(super) fn take<'a>(text: &mut Text<'a>) -> Option<&'a str> {
    let mut behind = Text { rest: text.rest };
    front(&mut behind, checked_quote)?;
    text.take(text.rest.len() - behind.rest.len())
}

#[inline]
fn front<'a>(text: &mut Text<'a>, read: impl ReadString) -> Option<Chunk<'a>> {
    text.skip(b"{\"turn\":")?;
    let turn = text.number()?;
    text.skip(b",\"step\":")?;
    let step = text.number()?;
    text.skip(b",\"chunk\":{\"type\":\"")?;
    let kind = text.string(read)?;
    text.skip(b",\"index\":")?;
    let index = text.number()?;
    let body = match kind {
        "text-delta" => ChunkBody::Text(text.member(b",\"text\":\"", read)?),
        "reasoning-delta" => ChunkBody::Reasoning(text.member(b",\"text\":\"", read)?),
        "tool-call-delta" => {
            let id = text.member(b",\"id\":\"", read)?;
            let name = text.member(b",\"name\":\"", read);
            ChunkBody::Call { id, name, arguments: text.member(b",\"argumentsDelta\":\"", read)? }
        }
        "block-start" => ChunkBody::BlockStart(text.member(b",\"blockType\":\"", read)?),
        _ => return None,
    };
    text.skip(b"}}")?;
    Some(Chunk { turn, step, index, body })
}

impl Chunk<'_> {
    /// The JSON text that [`recognise`] took apart.
    pub(crate) fn render(&self) -> String {
        let mut out = String::with_capacity(self.rendered_bound());
        self.render_to(&mut out);
        out
    }

    /// Appends what [`render`](Self::render) returns.
    pub(crate) fn render_to(&self, out: &mut String) {
        out.push_str("{\"turn\":");
        push_number(out, self.turn);
        out.push_str(",\"step\":");
        push_number(out, self.step);
        out.push_str(",\"chunk\":{\"type\":\"");
        out.push_str(match self.body {
            ChunkBody::Text(_) => "text-delta",
            ChunkBody::Reasoning(_) => "reasoning-delta",
            ChunkBody::Call { .. } => "tool-call-delta",
            ChunkBody::BlockStart(_) => "block-start",
        });
        out.push_str("\",\"index\":");
        push_number(out, self.index);
        match self.body {
            ChunkBody::Text(text) | ChunkBody::Reasoning(text) => push_member(out, ",\"text\":\"", text),
            ChunkBody::BlockStart(kind) => push_member(out, ",\"blockType\":\"", kind),
            ChunkBody::Call { id, name, arguments } => {
                push_member(out, ",\"id\":\"", id);
                if let Some(name) = name {
                    push_member(out, ",\"name\":\"", name);
                }
                push_member(out, ",\"argumentsDelta\":\"", arguments);
            }
        }
        out.push_str("}}");
    }

    /// Room for the text with usual numbers, so that rendering allocates once.
    fn rendered_bound(&self) -> usize {
        let strings = match self.body {
            ChunkBody::Text(text) | ChunkBody::Reasoning(text) | ChunkBody::BlockStart(text) => text.len(),
            ChunkBody::Call { id, name, arguments } => {
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

pub(crate) fn push_number(out: &mut String, mut value: u64) {
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
