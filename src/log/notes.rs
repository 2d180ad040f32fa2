//! From a stored record to what the index must know of it.

use std::sync::Arc;

use crate::event::{Class, SurfaceOp};
use crate::format::meta::{EventMeta, Meta};
use crate::format::payload;
use crate::format::record::RecordView;

use super::types::{Fork, Note};

/// The note of a record, `None` for records that only the log itself uses.
///
/// # Errors
/// The payload of a control record or the time of an event cannot be read, in words.
pub(crate) fn note_of(view: &RecordView<'_>) -> Result<Option<Note>, String> {
    Ok(Some(match &view.meta {
        Meta::Event(meta) => event_note(meta, view.payload)?,
        Meta::Create(meta) => {
            let (id, header) = identity(view.payload)?;
            Note::Create {
                dense: meta.dense,
                id: Arc::from(id),
                header: Arc::from(header),
                staged: meta.staged,
            }
        }
        Meta::Fork(meta) => {
            let (id, header) = identity(view.payload)?;
            let fork = Fork { parent: meta.parent, ancestor: meta.ancestor, cut: meta.cut };
            Note::Fork {
                dense: meta.dense,
                id: Arc::from(id),
                header: Arc::from(header),
                fork,
                staged: meta.staged,
                turn_open: meta.turn_open,
            }
        }
        Meta::Delete(meta) => Note::Delete { dense: meta.dense },
        Meta::Publish(meta) => Note::Publish { dense: meta.dense },
        Meta::AcceptLoss(meta) => Note::AcceptLoss { dense: meta.dense, next_seq: meta.next_seq },
        Meta::Damage(_) | Meta::IndexPart(_) | Meta::Skipped { .. } => return Ok(None),
    }))
}

/// The header `{"type":"session","version":0,"id":"x","createdAt":0}` takes as many bytes, and none fewer (H). So a
/// session costs a log more than it costs who opens it (G7).
const SHORTEST_HEADER: usize = 53;

/// Id and header of a session.
fn identity(payload: &[u8]) -> Result<(String, &str), String> {
    let (id, header) = payload::decode_session(payload)?;
    if header.len() < SHORTEST_HEADER {
        return Err(format!("header: {} bytes, {SHORTEST_HEADER} at least are possible", header.len()));
    }
    Ok((id, header))
}

fn event_note(meta: &EventMeta, bytes: &[u8]) -> Result<Note, String> {
    let class =
        Class::from_u8(meta.class).ok_or_else(|| format!("event class {} is not known", meta.class))?;
    let op = match meta.replace {
        Some((start, end)) => Some(SurfaceOp::Replace { start, end }),
        None => class.is_surface().then_some(SurfaceOp::Append),
    };
    let time_ms = match meta.time_ms {
        Some(ms) => i64::try_from(ms).unwrap_or(i64::MAX),
        // The time is spelled in the payload: rare, so the whole event may be decoded for it.
        None => payload::decode(meta, bytes)?.time().millis_rounded(),
    };
    Ok(Note::Event { dense: meta.dense, seq: meta.seq, class, op, time_ms })
}
