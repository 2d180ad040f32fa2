//! Records and what their payloads decode to.

use super::forge::{self, BINDING};
use super::input::Input;
use crate::format::index::part;
use crate::format::payload::{self, Parts};
use crate::format::record::{self, RecordView};
use crate::format::{FIRST_FRAME, Lsn, Meta};

/// Longer lists of sources are compared and not rendered.
const LONGEST_SHOWN: usize = 1 << 12;

/// A record: whether to mend it u8, the bytes.
pub fn record_decode(input: &[u8]) {
    let mut input = Input::new(input);
    let mend = input.u8() & 1 != 0;
    let mut bytes = input.rest().to_vec();
    let at = Lsn::new(forge::SEGMENT, FIRST_FRAME + 64);
    if mend {
        let _ = forge::record(&mut bytes, at, &BINDING);
    }
    let _ = record::peek_len(&bytes);
    match record::decode(&bytes, at, BINDING.epoch, BINDING.salt) {
        Ok(view) => {
            assert!(view.stored_len <= bytes.len() && view.payload.len() < view.stored_len);
            look_at(&view);
        }
        Err(fault) => assert!(!fault.to_string().is_empty(), "a fault says what it is"),
    }
}

/// Decodes what a whole record carries. What decodes, encodes to the same again.
pub(super) fn look_at(view: &RecordView<'_>) {
    match view.meta {
        Meta::Event(meta) => {
            let Ok(event) = payload::decode(&meta, view.payload) else { return };
            assert_eq!(event.seq(), meta.seq, "an event stands where its metadata says");
            let mut out = Vec::new();
            let encoded =
                payload::encode(&Parts::of_event(&event), &mut out).meta(meta.dense, meta.seq, meta.more);
            let again = payload::decode(&encoded, &out).expect("what was encoded decodes");
            assert!(again == event, "an event comes back as it was: {meta:?}");
            // A list that is spelled as runs makes a line of megabytes from a few bytes.
            if event.sources().is_none_or(|list| list.len() <= LONGEST_SHOWN) {
                assert_eq!(again.to_line(), event.to_line(), "an event comes back as it was");
            }
        }
        Meta::Create(_) | Meta::Fork(_) => {
            let Ok((id, header)) = payload::decode_session(view.payload) else { return };
            let mut out = Vec::new();
            payload::encode_session(&id, header, &mut out);
            assert_eq!(out, view.payload, "a session's payload has one spelling");
        }
        Meta::IndexPart(_) => drop(part::decode(view.payload)),
        _ => {}
    }
}
