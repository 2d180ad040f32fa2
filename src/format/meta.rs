//! Metadata of records (F9): which session, which seq, which kind. Always: one spelling a value, which decoding proves by
//! encoding again; at most 255 bytes. Never: decoded before the record's CRC has passed.

use super::constants::{MAX_META_LEN, MAY_SKIP, coding, record_flag, record_kind};
use bincode::config::{self, Config};
use bincode::{Decode, Encode};
use std::fmt;

/// Times above this many milliseconds are kept as text.
pub(crate) const TIME_LIMIT: u64 = 1 << 48;

/// Session ids and seqs are below, so that counting on from one never overflows.
pub(crate) const NUMBER_LIMIT: u64 = 1 << 63;

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meta {
    Event(EventMeta),
    Create(CreateMeta),
    Fork(ForkMeta),
    Delete(SessionMeta),
    Publish(SessionMeta),
    Damage(DamageMeta),
    AcceptLoss(AcceptLossMeta),
    IndexPart(IndexPartMeta),
    /// A later kind that says it may be passed over.
    Skipped {
        kind: u8,
        flags: u8,
    },
}

/// An event of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventMeta {
    /// The next record of the frame belongs to the same batch.
    pub(crate) more: bool,
    /// One of [`coding`], below 16.
    pub(crate) coding: u8,
    /// The event's class, below 16.
    pub(crate) class: u8,
    pub(crate) dense: u64,
    pub(crate) seq: u64,
    /// Milliseconds below 2^48; `None` = the payload spells the time.
    pub(crate) time_ms: Option<u64>,
    /// First and last seq that the event replaces.
    pub(crate) replace: Option<(u64, u64)>,
}

/// A new session; its payload holds id and header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CreateMeta {
    pub(crate) more: bool,
    /// Invisible until published.
    pub(crate) staged: bool,
    pub(crate) dense: u64,
}

/// A new session that begins with another one's events; its payload holds id and header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForkMeta {
    pub(crate) more: bool,
    pub(crate) staged: bool,
    pub(crate) dense: u64,
    /// The session that the caller named.
    pub(crate) parent: u64,
    /// The session that physically holds the event before the cut (D6).
    pub(crate) ancestor: u64,
    /// Number of inherited events.
    pub(crate) cut: u64,
    /// A turn is open behind the last of them.
    pub(crate) turn_open: bool,
}

/// Delete and Publish: nothing but the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionMeta {
    pub(crate) more: bool,
    pub(crate) dense: u64,
}

/// A range of a segment that is damaged, and what it took as far as that is proven (P2); its payload is the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DamageMeta {
    pub(crate) more: bool,
    pub(crate) segment: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// 0 = unknown sessions.
    pub(crate) dense: u64,
    pub(crate) from_seq: u64,
    /// Behind the last seq.
    pub(crate) to_seq: u64,
}

/// The user takes a session as it is; it goes on at `next_seq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AcceptLossMeta {
    pub(crate) more: bool,
    pub(crate) dense: u64,
    pub(crate) next_seq: u64,
}

/// An index frame's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexPartMeta {
    /// Offset of the segment's previous index frame, 0 = none.
    pub(crate) previous: u32,
}

/// Why metadata is not of version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetaFault {
    /// Written by a later version: refuse by name.
    UnknownKind(u8),
    /// Written by a later version: refuse by name.
    UnknownFlags(u8),
    /// Written by a later version: refuse by name.
    UnknownCoding(u8),
    /// Not what an encoder gives.
    Malformed,
}

impl fmt::Display for MetaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind(kind) => write!(f, "record kind {kind} is not known to this build"),
            Self::UnknownFlags(bits) => write!(f, "record flag bits {bits:#04x} are not known to this build"),
            Self::UnknownCoding(coding) => write!(f, "payload coding {coding} is not known to this build"),
            Self::Malformed => write!(f, "record metadata is not what an encoder gives"),
        }
    }
}

/// Encoded metadata, kept without a heap allocation because it is made under a session's lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetaBytes {
    buf: [u8; MAX_META_LEN],
    len: u8,
}

impl MetaBytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        self.buf.get(..usize::from(self.len)).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> u8 {
        self.len
    }
}

/// Small numbers take one byte; nothing longer than the limit is read or written.
fn configuration() -> impl Config {
    config::standard().with_little_endian().with_variable_int_encoding().with_limit::<4096>()
}

/// What stands behind the flags, per kind. `Encode` and `Decode` take the fields in this order.
mod wire {
    use bincode::{Decode, Encode};

    #[derive(Encode, Decode)]
    pub(super) struct Head {
        pub(super) kind: u8,
        pub(super) flags: u8,
    }
    #[derive(Encode, Decode)]
    pub(super) struct Event {
        pub(super) shape: u8,
        pub(super) dense: u64,
        pub(super) seq: u64,
        pub(super) time: [u8; 6],
    }
    #[derive(Encode, Decode)]
    pub(super) struct Replace {
        pub(super) start: u64,
        pub(super) end: u64,
    }
    #[derive(Encode, Decode)]
    pub(super) struct Session {
        pub(super) dense: u64,
    }
    #[derive(Encode, Decode)]
    pub(super) struct Fork {
        pub(super) dense: u64,
        pub(super) parent: u64,
        pub(super) ancestor: u64,
        pub(super) cut: u64,
    }
    #[derive(Encode, Decode)]
    pub(super) struct Damage {
        pub(super) segment: u32,
        pub(super) from: u32,
        pub(super) to: u32,
        pub(super) dense: u64,
        pub(super) from_seq: u64,
        pub(super) to_seq: u64,
    }
    #[derive(Encode, Decode)]
    pub(super) struct AcceptLoss {
        pub(super) dense: u64,
        pub(super) next_seq: u64,
    }
    #[derive(Encode, Decode)]
    pub(super) struct IndexPart {
        pub(super) previous: u32,
    }
}

impl Meta {
    /// The bytes that stand in the record. A time of [`TIME_LIMIT`] or more, a coding or class above 15 is our mistake.
    pub(crate) fn encode(&self) -> MetaBytes {
        let mut out = MetaBytes { buf: [0; MAX_META_LEN], len: 0 };
        out.add(&wire::Head { kind: self.kind(), flags: self.flags() });
        match *self {
            Self::Event(m) => {
                assert!(m.coding < 16 && m.class < 16 && m.time_ms.unwrap_or(0) < TIME_LIMIT);
                let [a, b, c, d, e, f, ..] = m.time_ms.unwrap_or(0).to_le_bytes();
                let (shape, time) = (m.coding | m.class << 4, [a, b, c, d, e, f]);
                out.add(&wire::Event { shape, dense: m.dense, seq: m.seq, time });
                if let Some((start, end)) = m.replace {
                    out.add(&wire::Replace { start, end });
                }
            }
            Self::Create(m) => out.add(&wire::Session { dense: m.dense }),
            Self::Fork(m) => {
                out.add(&wire::Fork { dense: m.dense, parent: m.parent, ancestor: m.ancestor, cut: m.cut });
            }
            Self::Delete(m) | Self::Publish(m) => out.add(&wire::Session { dense: m.dense }),
            Self::Damage(DamageMeta { segment, from, to, dense, from_seq, to_seq, .. }) => {
                out.add(&wire::Damage { segment, from, to, dense, from_seq, to_seq });
            }
            Self::AcceptLoss(m) => out.add(&wire::AcceptLoss { dense: m.dense, next_seq: m.next_seq }),
            Self::IndexPart(m) => out.add(&wire::IndexPart { previous: m.previous }),
            Self::Skipped { .. } => {}
        }
        out
    }

    /// The metadata that is exactly `bytes`.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, MetaFault> {
        let mut rest = bytes;
        let head: wire::Head = take(&mut rest)?;
        let known_flags = head.flags & !record_flag::KNOWN == 0;
        if head.kind & MAY_SKIP != 0 && (head.kind != record_kind::INDEX_PART || !known_flags) {
            return Ok(Self::Skipped { kind: head.kind, flags: head.flags });
        }
        if !(record_kind::EVENT..=record_kind::ACCEPT_LOSS).contains(&head.kind)
            && head.kind != record_kind::INDEX_PART
        {
            return Err(MetaFault::UnknownKind(head.kind));
        }
        if !known_flags {
            return Err(MetaFault::UnknownFlags(head.flags & !record_flag::KNOWN));
        }
        let meta = Self::decode_rest(&head, &mut rest)?;
        // One spelling a value: whatever an encoder would not give is refused.
        let sound = meta.is_possible() && meta.encode().as_slice() == bytes;
        if sound { Ok(meta) } else { Err(MetaFault::Malformed) }
    }

    /// Whether a writer can have come to these numbers. Session ids begin at 1, and a fork's is above those of the
    /// sessions that it takes events from, so that no lineage is a circle.
    fn is_possible(&self) -> bool {
        let session = |dense: u64| dense > 0 && dense < NUMBER_LIMIT;
        match *self {
            Self::Event(m) => session(m.dense) && m.seq < NUMBER_LIMIT,
            Self::Create(m) => session(m.dense),
            Self::Fork(m) => {
                let below = |dense: u64| session(dense) && dense < m.dense;
                session(m.dense) && below(m.parent) && below(m.ancestor) && m.cut < NUMBER_LIMIT
            }
            Self::Delete(m) | Self::Publish(m) => session(m.dense),
            Self::Damage(m) => m.dense < NUMBER_LIMIT,
            Self::AcceptLoss(m) => session(m.dense) && m.next_seq < NUMBER_LIMIT,
            Self::IndexPart(_) | Self::Skipped { .. } => true,
        }
    }

    fn decode_rest(head: &wire::Head, rest: &mut &[u8]) -> Result<Self, MetaFault> {
        let more = head.flags & record_flag::MORE != 0;
        let staged = head.flags & record_flag::STAGED != 0;
        Ok(match head.kind {
            record_kind::EVENT => Self::Event(decode_event(head.flags, rest)?),
            record_kind::CREATE => {
                let wire::Session { dense } = take(rest)?;
                Self::Create(CreateMeta { more, staged, dense })
            }
            record_kind::FORK => {
                let wire::Fork { dense, parent, ancestor, cut } = take(rest)?;
                let turn_open = head.flags & record_flag::TURN_OPEN != 0;
                Self::Fork(ForkMeta { more, staged, dense, parent, ancestor, cut, turn_open })
            }
            record_kind::DELETE => {
                let wire::Session { dense } = take(rest)?;
                Self::Delete(SessionMeta { more, dense })
            }
            record_kind::PUBLISH => {
                let wire::Session { dense } = take(rest)?;
                Self::Publish(SessionMeta { more, dense })
            }
            record_kind::DAMAGE => {
                let wire::Damage { segment, from, to, dense, from_seq, to_seq } = take(rest)?;
                Self::Damage(DamageMeta { more, segment, from, to, dense, from_seq, to_seq })
            }
            record_kind::ACCEPT_LOSS => {
                let wire::AcceptLoss { dense, next_seq } = take(rest)?;
                Self::AcceptLoss(AcceptLossMeta { more, dense, next_seq })
            }
            record_kind::INDEX_PART => {
                let wire::IndexPart { previous } = take(rest)?;
                Self::IndexPart(IndexPartMeta { previous })
            }
            other => return Err(MetaFault::UnknownKind(other)),
        })
    }

    /// First byte of the encoding.
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Self::Event(_) => record_kind::EVENT,
            Self::Create(_) => record_kind::CREATE,
            Self::Fork(_) => record_kind::FORK,
            Self::Delete(_) => record_kind::DELETE,
            Self::Publish(_) => record_kind::PUBLISH,
            Self::Damage(_) => record_kind::DAMAGE,
            Self::AcceptLoss(_) => record_kind::ACCEPT_LOSS,
            Self::IndexPart(_) => record_kind::INDEX_PART,
            Self::Skipped { kind, .. } => *kind,
        }
    }

    /// The next record of the frame belongs to the same batch.
    pub(crate) fn more(&self) -> bool {
        self.flags() & record_flag::MORE != 0
    }

    /// Sets whether the next record of the frame belongs to the same batch; an index part is always alone.
    #[must_use]
    pub(crate) fn with_more(mut self, value: bool) -> Self {
        match &mut self {
            Self::Event(m) => m.more = value,
            Self::Create(m) => m.more = value,
            Self::Fork(m) => m.more = value,
            Self::Delete(m) | Self::Publish(m) => m.more = value,
            Self::Damage(m) => m.more = value,
            Self::AcceptLoss(m) => m.more = value,
            Self::IndexPart(_) | Self::Skipped { .. } => {}
        }
        self
    }

    fn flags(&self) -> u8 {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        match self {
            Self::Event(m) => {
                flag(m.more, record_flag::MORE)
                    | flag(m.replace.is_some(), record_flag::REPLACE)
                    | flag(m.time_ms.is_none(), record_flag::TIME_TEXT)
            }
            Self::Create(m) => flag(m.more, record_flag::MORE) | flag(m.staged, record_flag::STAGED),
            Self::Fork(m) => {
                flag(m.more, record_flag::MORE)
                    | flag(m.staged, record_flag::STAGED)
                    | flag(m.turn_open, record_flag::TURN_OPEN)
            }
            Self::Delete(m) | Self::Publish(m) => flag(m.more, record_flag::MORE),
            Self::Damage(m) => flag(m.more, record_flag::MORE),
            Self::AcceptLoss(m) => flag(m.more, record_flag::MORE),
            Self::IndexPart(_) => 0,
            Self::Skipped { flags, .. } => *flags,
        }
    }
}

fn decode_event(flags: u8, rest: &mut &[u8]) -> Result<EventMeta, MetaFault> {
    let wire::Event { shape, dense, seq, time: [a, b, c, d, e, f] } = take(rest)?;
    let (coding, class) = (shape & 0x0F, shape >> 4);
    if coding > coding::CHUNK {
        return Err(MetaFault::UnknownCoding(coding));
    }
    let time = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
    let replace = if flags & record_flag::REPLACE != 0 {
        let wire::Replace { start, end } = take(rest)?;
        Some((start, end))
    } else {
        None
    };
    Ok(EventMeta {
        more: flags & record_flag::MORE != 0,
        coding,
        class,
        dense,
        seq,
        time_ms: (flags & record_flag::TIME_TEXT == 0).then_some(time),
        replace,
    })
}

fn take<T: Decode<()>>(rest: &mut &[u8]) -> Result<T, MetaFault> {
    let (value, used) =
        bincode::decode_from_slice(rest, configuration()).map_err(|_| MetaFault::Malformed)?;
    *rest = rest.get(used..).unwrap_or_default();
    Ok(value)
}

impl MetaBytes {
    fn add(&mut self, part: &impl Encode) {
        let free = self.buf.get_mut(usize::from(self.len)..).unwrap_or_default();
        let used = bincode::encode_into_slice(part, free, configuration())
            .expect("MAX_META_LEN is the length of the longest kind with every number at its longest");
        self.len = u8::try_from(usize::from(self.len) + used).expect("MAX_META_LEN fits a byte");
    }
}

#[cfg(test)]
mod tests;
