//! Frames: reading one at its place, what its records decode to, and looking ahead for headers.

use super::forge::{self, BINDING, Mend};
use super::input::Input;
use super::record::look_at;
use crate::format::{FIRST_FRAME, FrameStep, Lsn, ScanContext, find_candidate, read_frame};

/// A frame: checksums to mend u8, what the frame before it had u8 (bit 0: its chain value is known; bit 1: its epoch is
/// the segment's), the bytes.
pub fn frame_decode(input: &[u8]) {
    let mut input = Input::new(input);
    let (mend, context) = (Mend(input.u8()), input.u8());
    let mut bytes = input.rest().to_vec();
    let at = Lsn::new(forge::SEGMENT, FIRST_FRAME);
    let _ = forge::frame(&mut bytes, at, &BINDING, (7, BINDING.epoch), mend);
    let context = ScanContext {
        binding: BINDING,
        min_epoch: if context & 2 != 0 { BINDING.epoch } else { 1 },
        max_epoch: u64::MAX,
        chain: (context & 1 != 0).then_some(7),
        end_limit: u32::MAX,
    };
    match read_frame(&bytes, at, &context) {
        FrameStep::Frame(view) => {
            assert!(view.bytes().len() <= bytes.len(), "a frame is not longer than the file");
            assert_eq!(view.end.offset() as usize, FIRST_FRAME as usize + view.bytes().len());
            let mut counted = 0;
            for record in view.records() {
                match record {
                    Ok(record) => {
                        counted += 1;
                        look_at(&record);
                    }
                    Err(damage) => counted += damage.count,
                }
            }
            if view.header.is_known_kind() && view.is_intact() {
                assert_eq!(counted, view.header.record_count, "an intact frame has all its records");
                // A record may be whole and yet have metadata that no writer makes.
                let _ = (view.bad_ranges(), view.damaged_batches(), view.has_zero_sector());
            }
            let _ = view.damaged_batches();
            for (from, to) in view.bad_ranges() {
                assert!(from <= to && to <= view.end.offset(), "damage lies inside the frame");
            }
        }
        FrameStep::NeedMore(need) => assert!(need > bytes.len(), "more is needed than there is"),
        FrameStep::Bad(fault) => assert!(!fault.to_string().is_empty(), "a fault says what it is"),
        FrameStep::Zero | FrameStep::End => {}
    }
    if let Some(found) = find_candidate(&bytes, at, &context) {
        assert!(found.lsn >= at && (found.lsn.offset() as usize) < FIRST_FRAME as usize + bytes.len());
    }
}
