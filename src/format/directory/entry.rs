//! A session as the directory knows it, without reading an event.

use std::sync::Arc;

use super::layout::{ENTRY_LEN, by_dense};

/// Flags of a stored entry.
pub(crate) mod entry_flag {
    /// A tombstone.
    pub(crate) const DELETED: u32 = 1;
    /// Not published yet.
    pub(crate) const STAGED: u32 = 2;
    /// A turn is open after its last event.
    pub(crate) const OPEN_TURN: u32 = 4;
    /// Damage took, or may have taken, events of it.
    pub(crate) const DAMAGED: u32 = 8;
    /// It begins with another session's events.
    pub(crate) const FORK: u32 = 16;
    /// It has events of its own: first and last time are theirs.
    pub(crate) const TIMES: u32 = 32;
    /// All of version 1.
    pub(crate) const KNOWN: u32 = DELETED | STAGED | OPEN_TURN | DAMAGED | FORK | TIMES;
}

/// Where a fork's inherited events are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForkRef {
    /// The session that the fork's caller named.
    pub(crate) parent: u64,
    /// The session that physically holds the event before the cut.
    pub(crate) ancestor: u64,
    /// Number of inherited events.
    pub(crate) cut: u64,
}

/// A session as the directory knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirEntry {
    pub(crate) dense: u64,
    pub(crate) id: Arc<str>,
    /// The header as the JSON object that was stored.
    pub(crate) header_json: Arc<str>,
    pub(crate) deleted: bool,
    pub(crate) staged: bool,
    pub(crate) open_turn: bool,
    pub(crate) damaged: bool,
    /// Newest segment that holds an event of it; 0 = none.
    pub(crate) last_segment: u32,
    /// First seq that it holds itself: the cut of a fork, else 0.
    pub(crate) own_first: u64,
    pub(crate) next_seq: u64,
    /// Of its own events.
    pub(crate) bytes: u64,
    /// None without own events.
    pub(crate) first_time: Option<i64>,
    pub(crate) last_time: Option<i64>,
    pub(crate) fork: Option<ForkRef>,
    /// First seq that may be lost, where it is damaged; 0 otherwise.
    pub(crate) damage_from: u64,
    /// Place of the newest record that accepted a loss, as a number; 0 = none.
    pub(crate) accepted: u64,
}

impl DirEntry {
    fn flags(&self) -> u32 {
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        flag(self.deleted, entry_flag::DELETED)
            | flag(self.staged, entry_flag::STAGED)
            | flag(self.open_turn, entry_flag::OPEN_TURN)
            | flag(self.damaged, entry_flag::DAMAGED)
            | flag(self.fork.is_some(), entry_flag::FORK)
            | flag(self.last_time.is_some(), entry_flag::TIMES)
    }
}

/// The fixed part of an entry; id and header are in the heap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fixed {
    pub(super) heap_at: u64,
    pub(super) id_len: u32,
    pub(super) header_len: u32,
}

pub(super) fn encode(entry: &DirEntry, fixed: Fixed) -> [u8; ENTRY_LEN] {
    let fork = entry.fork.unwrap_or(ForkRef { parent: 0, ancestor: 0, cut: 0 });
    let mut buf = [0; ENTRY_LEN];
    by_dense::DENSE.put(&mut buf, &entry.dense.to_le_bytes());
    by_dense::HEAP_AT.put(&mut buf, &fixed.heap_at.to_le_bytes());
    by_dense::ID_LEN.put(&mut buf, &fixed.id_len.to_le_bytes());
    by_dense::HEADER_LEN.put(&mut buf, &fixed.header_len.to_le_bytes());
    by_dense::FLAGS.put(&mut buf, &entry.flags().to_le_bytes());
    by_dense::LAST_SEGMENT.put(&mut buf, &entry.last_segment.to_le_bytes());
    by_dense::OWN_FIRST.put(&mut buf, &entry.own_first.to_le_bytes());
    by_dense::NEXT_SEQ.put(&mut buf, &entry.next_seq.to_le_bytes());
    by_dense::BYTES.put(&mut buf, &entry.bytes.to_le_bytes());
    by_dense::FIRST_TIME.put(&mut buf, &entry.first_time.unwrap_or(0).to_le_bytes());
    by_dense::LAST_TIME.put(&mut buf, &entry.last_time.unwrap_or(0).to_le_bytes());
    by_dense::PARENT.put(&mut buf, &fork.parent.to_le_bytes());
    by_dense::ANCESTOR.put(&mut buf, &fork.ancestor.to_le_bytes());
    by_dense::CUT.put(&mut buf, &fork.cut.to_le_bytes());
    by_dense::DAMAGE_FROM.put(&mut buf, &entry.damage_from.to_le_bytes());
    by_dense::ACCEPTED.put(&mut buf, &entry.accepted.to_le_bytes());
    buf
}

/// Where the heap part of an entry is; `buf` is [`ENTRY_LEN`] long.
pub(super) fn fixed(buf: &[u8]) -> Fixed {
    Fixed {
        heap_at: by_dense::HEAP_AT.u64(buf),
        id_len: by_dense::ID_LEN.u32(buf),
        header_len: by_dense::HEADER_LEN.u32(buf),
    }
}

/// The entry; none for what no writer of version 1 makes.
pub(super) fn decode(buf: &[u8], id: &str, header: &str) -> Option<DirEntry> {
    let flags = by_dense::FLAGS.u32(buf);
    if flags & !entry_flag::KNOWN != 0 || !by_dense::ZERO.is_zero(buf) {
        return None;
    }
    let has = |bit: u32| flags & bit != 0;
    let time = |ms: u64| has(entry_flag::TIMES).then_some(ms.cast_signed());
    let fork = ForkRef {
        parent: by_dense::PARENT.u64(buf),
        ancestor: by_dense::ANCESTOR.u64(buf),
        cut: by_dense::CUT.u64(buf),
    };
    Some(DirEntry {
        dense: by_dense::DENSE.u64(buf),
        id: id.into(),
        header_json: header.into(),
        deleted: has(entry_flag::DELETED),
        staged: has(entry_flag::STAGED),
        open_turn: has(entry_flag::OPEN_TURN),
        damaged: has(entry_flag::DAMAGED),
        last_segment: by_dense::LAST_SEGMENT.u32(buf),
        own_first: by_dense::OWN_FIRST.u64(buf),
        next_seq: by_dense::NEXT_SEQ.u64(buf),
        bytes: by_dense::BYTES.u64(buf),
        first_time: time(by_dense::FIRST_TIME.u64(buf)),
        last_time: time(by_dense::LAST_TIME.u64(buf)),
        fork: has(entry_flag::FORK).then_some(fork),
        damage_from: by_dense::DAMAGE_FROM.u64(buf),
        accepted: by_dense::ACCEPTED.u64(buf),
    })
}
