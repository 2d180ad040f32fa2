//! The records that bring a session in, take it out, or say something about it.

use std::sync::Arc;

use crate::event::Header;
use crate::format::meta::{AcceptLossMeta, CreateMeta, ForkMeta, SessionMeta};
use crate::format::payload::encode_session;
use crate::format::{Meta, RecordDraft};
use crate::log::{Entry, Fork, Note};

/// A new session; `staged`: invisible until published.
pub(super) fn create(dense: u64, header: &Header, staged: bool, more: bool) -> Entry {
    let (id, text, draft) = opening(header);
    let meta = Meta::Create(CreateMeta { more, staged, dense });
    Entry { record: draft.seal(&meta), note: Note::Create { dense, id, header: text, staged } }
}

/// A new session that begins with another one's events; `turn_open`: inside a turn. `staged` as for [`create`].
pub(super) fn fork(
    dense: u64,
    header: &Header,
    fork: Fork,
    turn_open: bool,
    staged: bool,
    more: bool,
) -> Entry {
    let (id, text, draft) = opening(header);
    let Fork { parent, ancestor, cut } = fork;
    let meta = Meta::Fork(ForkMeta { more, staged, dense, parent, ancestor, cut, turn_open });
    let note = Note::Fork { dense, id, header: text, fork, staged, turn_open };
    Entry { record: draft.seal(&meta), note }
}

/// The end of a session.
pub(super) fn delete(dense: u64, more: bool) -> Entry {
    let meta = Meta::Delete(SessionMeta { more, dense });
    Entry { record: RecordDraft::new(Vec::new()).seal(&meta), note: Note::Delete { dense } }
}

/// A staged session is whole; always the last record of its batch.
pub(super) fn publish(dense: u64) -> Entry {
    let meta = Meta::Publish(SessionMeta { more: false, dense });
    Entry { record: RecordDraft::new(Vec::new()).seal(&meta), note: Note::Publish { dense } }
}

/// The user takes the session as damage left it.
pub(super) fn accept_loss(dense: u64, next_seq: u64, more: bool) -> Entry {
    let meta = Meta::AcceptLoss(AcceptLossMeta { more, dense, next_seq });
    Entry { record: RecordDraft::new(Vec::new()).seal(&meta), note: Note::AcceptLoss { dense, next_seq } }
}

fn opening(header: &Header) -> (Arc<str>, Arc<str>, RecordDraft) {
    let id: Arc<str> = Arc::from(header.id());
    let text: Arc<str> = Arc::from(header.to_line());
    let mut payload = Vec::new();
    encode_session(&id, &text, &mut payload);
    (id, text, RecordDraft::new(payload))
}
