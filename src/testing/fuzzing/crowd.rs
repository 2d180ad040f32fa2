//! A store whose bytes stand for as many things in memory as bytes can: for what a forged store may cost (G7).

use std::sync::Arc;

use super::small_store::{open, open_read_only};
use crate::format::constants::coding;
use crate::format::meta::EventMeta;
use crate::format::{
    Binding, Control, ControlSlot, Ending, FIRST_FRAME, FrameBuilder, LiveSet, Lsn, Meta, RecordDraft,
    SegmentHeader, StoreId, frame_kind, names,
};
use crate::testing::SimDisk;

/// A store of one segment with `events` events, each of another session that nothing created; its bytes.
fn crowd(events: u64) -> (SimDisk, usize) {
    let store = StoreId([7; 16]);
    let header = SegmentHeader {
        store,
        number: 1,
        previous: 0,
        epoch: 1,
        salt: 1,
        previous_end: 0,
        previous_chain: 0,
        previous_why: Ending::None,
        next_dense: 1,
        capacity: 1 << 28,
        padded: false,
    };
    let (front, crc) = header.encode();
    let binding = Binding { store, salt: 1, epoch: 1 };
    let mut frame = FrameBuilder::new(Lsn::new(1, FIRST_FRAME), 1, binding, false);
    for dense in 1..=events {
        // It does not decode, and need not: opening reads no payload.
        let meta = EventMeta {
            more: false,
            coding: coding::CHUNK,
            class: 0,
            dense,
            seq: 0,
            time_ms: Some(0),
            replace: None,
        };
        frame.push(&RecordDraft::new(vec![1]).seal(&Meta::Event(meta)));
    }
    frame.finish(frame_kind::DATA, Lsn::NONE, crc);
    let segment = [front.as_slice(), frame.bytes()].concat();
    let slot = ControlSlot {
        store,
        epoch: 1,
        live_version: 1,
        active: 1,
        active_salt: 1,
        active_epoch: 1,
        next_dense: 1,
        ..ControlSlot::default()
    };
    let disk = SimDisk::new();
    disk.install(names::CONTROL, &Control::encode_new(&slot));
    disk.install(names::LIVE, &LiveSet { store, version: 1, ..LiveSet::default() }.encode());
    disk.install(&names::segment(1), &segment);
    (disk, segment.len())
}

/// Opens a store of `events` forged sessions, first for reading and then for writing; `measure` is to make each call
/// that it is given. The answer is the bytes of the store.
///
/// # Panics
/// When it does not open: what a checksum vouches for is opened, however odd.
pub fn crowded_store(events: u64, measure: &mut dyn FnMut(&mut dyn FnMut())) -> usize {
    let (disk, bytes) = crowd(events);
    let disk = Arc::new(disk);
    measure(&mut || drop(open_read_only(Arc::new(disk.other_process())).expect("a sound log opens")));
    measure(&mut || drop(open(Arc::clone(&disk)).expect("a sound log opens")));
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::forge::{self, Mend};
    use super::*;
    use crate::{ErrorKind, Result, SessionStore};

    /// The store of one event, whose record has the byte `value` at `at` of its metadata, under fresh checksums.
    fn patched(at: usize, value: u8) -> Result<SessionStore> {
        let (disk, _) = crowd(1);
        let mut bytes = disk.contents(&names::segment(1)).unwrap();
        // Behind segment header, frame header, the record's length, its checksum and its payload of one byte.
        bytes[512 + 64 + 1 + 4 + 1 + at] = value;
        forge::segment(&mut bytes, Mend(0xFF));
        disk.install(&names::segment(1), &bytes);
        open_read_only(Arc::new(disk))
    }

    #[test]
    fn a_record_of_a_later_version_refuses_the_store_by_name() {
        for (at, value, name) in [(0, 9, "record kind 9"), (1, 0x10, "flag"), (2, 5, "coding 5")] {
            let error = patched(at, value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Version, "{error}");
            assert!(
                error.to_string().contains(name) && error.to_string().contains("00000001.seg"),
                "{error}"
            );
        }
        assert!(patched(1, 0).unwrap().recovery().losses.is_empty());
    }

    #[test]
    fn a_whole_record_that_no_writer_makes_is_damage() {
        // No session has the number 0.
        let store = patched(3, 0).unwrap();
        let [loss] = store.recovery().losses.as_slice() else { panic!("{:?}", store.recovery()) };
        assert_eq!((loss.offset, loss.message.as_str()), (576, "bytes that no writer put there"));
    }
}
