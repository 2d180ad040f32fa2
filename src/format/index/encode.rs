//! Writing an index file: the sections in their order, from sessions sorted by dense id.

use super::layout::{BLOCKS, encode_session, encode_structure, header};
use super::session::TableSession;
use super::table::Damaged;
use super::{SegmentKey, SessionPart};
use crate::error::Result;
use crate::format::blocks::{BlockWriter, Sink};
use crate::format::segment_header::Ending;

/// How the segment ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closing {
    pub(super) end: u32,
    pub(super) chain: u32,
    pub(super) why_ended: Ending,
}

/// Writes the file. `sessions` ascend by dense id.
pub(super) fn index_file(
    key: &SegmentKey,
    closing: &Closing,
    sessions: &[&TableSession],
    controls: &[u32],
    damage: &[Damaged],
    sink: Sink<'_>,
) -> Result<()> {
    let events: usize = sessions.iter().map(|s| s.offsets().len()).sum();
    let structure: usize = sessions.iter().map(|s| s.structure().len()).sum();
    let mut w = BlockWriter::new(&BLOCKS, key.store, sink);
    w.set(header::SEGMENT, &key.segment.to_le_bytes());
    w.set(header::END, &closing.end.to_le_bytes());
    w.set(header::SALT, &key.salt.to_le_bytes());
    w.set(header::CHAIN, &closing.chain.to_le_bytes());
    w.set(header::WHY_ENDED, &[closing.why_ended as u8]);
    w.set(header::SESSION_COUNT, &to_u32(sessions.len()).to_le_bytes());
    w.set(header::CONTROL_COUNT, &to_u32(controls.len()).to_le_bytes());
    w.set(header::DAMAGE_COUNT, &to_u32(damage.len()).to_le_bytes());
    w.set(header::EVENT_COUNT, &(events as u64).to_le_bytes());
    w.set(header::STRUCTURE_COUNT, &(structure as u64).to_le_bytes());

    w.begin(header::SESSIONS);
    put_sessions(&mut w, sessions);
    w.begin(header::EVENTS);
    for session in sessions {
        session.offsets().iter().for_each(|&offset| w.put_u32(offset));
    }
    w.begin(header::STRUCTURE);
    for session in sessions {
        session.structure().iter().for_each(|entry| w.put(&encode_structure(entry)));
    }
    w.begin(header::CONTROLS);
    controls.iter().for_each(|&offset| w.put_u32(offset));
    w.begin(header::DAMAGE);
    for range in damage {
        w.put_u32(range.from);
        w.put_u32(range.to);
    }
    w.finish(&BLOCKS)
}

fn put_sessions(w: &mut BlockWriter<'_>, sessions: &[&TableSession]) {
    let (mut events_at, mut structure_at) = (0u64, 0u64);
    for session in sessions {
        let head = session.part();
        w.put(&encode_session(&SessionPart { events_at, structure_at, ..head }));
        events_at += session.offsets().len() as u64;
        structure_at += session.structure().len() as u64;
    }
}

/// Counts of things that each take bytes of a segment, which is below 4 GiB.
fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
