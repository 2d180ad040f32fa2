//! The payload of Create and Fork: the session's id and its header as one JSON object.
//!
//! [`put_text`] and [`take_text`] also carry event types: text that may hold NUL characters, which must not become zero
//! bytes (F8).

use super::check_json;
use crate::event::MAX_ID_BYTES;
use crate::format::varint::{self, Cursor};

/// How a NUL is stored: two bytes that UTF-8 never has side by side, or at all.
const NUL: [u8; 2] = [0xC0, 0x80];

/// Appends the payload. `header` is the JSON object of the header line.
pub(crate) fn encode_session(id: &str, header: &str, out: &mut Vec<u8>) {
    out.reserve(id.len() + header.len() + 4);
    put_text(out, id);
    out.extend_from_slice(header.as_bytes());
}

/// Reads the payload: id and header.
///
/// # Errors
/// What no encoder makes.
pub(crate) fn decode_session(payload: &[u8]) -> Result<(String, &str), String> {
    let mut cursor = Cursor::new(payload);
    let id = take_text("session id", &mut cursor)?;
    if id.is_empty() || id.len() > MAX_ID_BYTES {
        return Err(format!("session id: {} bytes, 1 to {MAX_ID_BYTES} are possible", id.len()));
    }
    let header = std::str::from_utf8(cursor.rest()).map_err(|e| format!("header: {e}"))?;
    check_json("header", header)?;
    // A header line that was imported may have white space around the object; it is kept (X2).
    let object = header.trim_matches([' ', '\t', '\r']);
    if !(object.starts_with('{') && object.ends_with('}')) || header.contains('\n') || object.contains('\r') {
        return Err("header: not one JSON object on one line".to_owned());
    }
    Ok((id, header))
}

/// A length, and `text` with each NUL as `C0 80`.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    let nuls = text.bytes().filter(|&b| b == 0).count();
    varint::put(out, (text.len() + nuls) as u64);
    if nuls == 0 {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    for byte in text.bytes() {
        if byte == 0 { out.extend_from_slice(&NUL) } else { out.push(byte) }
    }
}

/// Reads what [`put_text`] wrote.
pub(super) fn take_text(what: &str, cursor: &mut Cursor<'_>) -> Result<String, String> {
    let bytes = cursor.sized().map_err(|e| format!("{what}: {e}"))?;
    if bytes.contains(&0) {
        return Err(format!("{what}: a zero byte"));
    }
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = if let Some(after) = rest.strip_prefix(&NUL) {
            text.push(0);
            after
        } else {
            text.push(byte);
            tail
        };
    }
    String::from_utf8(text).map_err(|e| format!("{what}: {e}"))
}
