//! CHUNK: the packed form of the five token deltas that make up most events of a log.
//!
//! What [`recognise`](crate::event::chunk_text::recognise) accepts, [`Chunk::render`] gives back byte for byte. Strings are the
//! bytes between the quotes as they were spelled, so no escape is ever decoded, and no byte of them is NUL (F8).

use crate::event::chunk_text::{Chunk, ChunkBody};
use crate::event::is_string_content;
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

impl<'a> Chunk<'a> {
    /// Appends the packed form.
    pub(crate) fn pack(&self, out: &mut Vec<u8>) {
        let shape = match self.body {
            ChunkBody::Text(_) => SHAPE_TEXT,
            ChunkBody::Reasoning(_) => SHAPE_REASONING,
            ChunkBody::Call { name: None, .. } => SHAPE_CALL,
            ChunkBody::Call { name: Some(_), .. } => SHAPE_NAMED_CALL,
            ChunkBody::BlockStart(_) => SHAPE_BLOCK_START,
        };
        out.push(shape);
        varint::put(out, self.turn);
        varint::put(out, self.step);
        varint::put(out, self.index);
        let last = match self.body {
            ChunkBody::Text(text) | ChunkBody::Reasoning(text) | ChunkBody::BlockStart(text) => text,
            ChunkBody::Call { id, name, arguments } => {
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
            SHAPE_TEXT => ChunkBody::Text(last),
            SHAPE_REASONING => ChunkBody::Reasoning(last),
            SHAPE_BLOCK_START => ChunkBody::BlockStart(last),
            _ => ChunkBody::Call { id, name, arguments: last },
        };
        Ok(Self { turn, step, index, body })
    }
}

/// `bytes` as the text between two quotes.
fn inner(bytes: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| format!("chunk: a string is not UTF-8: {e}"))?;
    if is_string_content(text) { Ok(text) } else { Err("chunk: a string that JSON cannot quote".to_owned()) }
}
