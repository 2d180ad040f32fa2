//! Source lists as runs of consecutive seqs: an answer of 10,000 chunks names them in four bytes.
//!
//! Order and duplicates are kept as they were given. A decoder never makes more than [`MAX_SOURCES`] of them, however
//! few bytes claim more.

use crate::format::varint::{self, Cursor};

/// The most sources that one event can have. Checked before encoding; a longer list is damage to a reader.
pub(crate) const MAX_SOURCES: usize = 1 << 20;

/// Appends `sources`.
pub(crate) fn pack(sources: &[u64], out: &mut Vec<u8>) {
    varint::put(out, runs(sources).count() as u64);
    let mut last = 0u64;
    for run in runs(sources) {
        let (Some(&first), Some(&end)) = (run.first(), run.last()) else { continue };
        varint::put(out, varint::zigzag(first.wrapping_sub(last).cast_signed()));
        varint::put(out, run.len() as u64);
        last = end;
    }
}

fn runs(sources: &[u64]) -> impl Iterator<Item = &[u64]> {
    sources.chunk_by(|a, b| a.checked_add(1) == Some(*b))
}

/// Reads what [`pack`] wrote.
pub(crate) fn unpack(cursor: &mut Cursor<'_>) -> Result<Vec<u64>, String> {
    let runs = cursor.count(2).map_err(|e| format!("sources: {e}"))?;
    let mut out = Vec::new();
    let mut last = 0u64;
    for run in 0..runs {
        let step = cursor.zigzag().map_err(|e| format!("sources: {e}"))?;
        let length = cursor.varint().map_err(|e| format!("sources: {e}"))?;
        let first = last.wrapping_add(step.cast_unsigned());
        let room = (MAX_SOURCES - out.len()) as u64;
        if length == 0 || length > room {
            return Err(format!("sources: a run of {length} where 1 to {room} are possible"));
        }
        if run > 0 && last.checked_add(1) == Some(first) {
            return Err(format!("sources: two runs that are one, at {first}"));
        }
        last = first.checked_add(length - 1).ok_or("sources: a run beyond 64 bits")?;
        out.extend(first..=last);
    }
    Ok(out)
}
