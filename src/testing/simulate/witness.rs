//! The witness is there: what CONTROL and frame headers promise to be durable (E1).
//!
//! In one engine a setting switched it off, and acknowledged data behind a flipped bit was dropped. So it is looked at
//! under every configuration.

use crate::disk::Disk;
use crate::format::names;
use crate::format::scan::{ScanContext, find_candidate};
use crate::format::{Binding, Control, FIRST_FRAME, FrameHeader, Lsn, SegmentHeader};
use crate::testing::SimDisk;

/// What is wrong with the witness of a store that was just closed, or was idle after an acknowledgement.
pub(super) fn missing(disk: &SimDisk) -> Option<String> {
    let control = Control::decode(&disk.contents(names::CONTROL)?);
    let Some(slot) = control.newest() else { return Some("CONTROL has no valid slot".to_owned()) };
    if slot.durable == Lsn::NONE {
        return Some("CONTROL promises nothing to be durable".to_owned());
    }
    let names = disk.list(names::SEGMENTS).ok()?;
    let segments = names.iter().filter(|name| name.ends_with(".seg"));
    let promised =
        segments.filter_map(|name| highest(&disk.contents(&format!("{}/{name}", names::SEGMENTS))?));
    match promised.max() {
        None => Some("there is no frame".to_owned()),
        Some(Lsn::NONE) => Some("no frame promises anything to be durable".to_owned()),
        Some(_) => None,
    }
}

/// What no frame promises to be durable of a store that was left alone for long after everything was acknowledged: the
/// place of a frame with records.
pub(super) fn unpromised(disk: &SimDisk, segment: u64) -> Option<Lsn> {
    let room = segment / 4 * 3;
    // What is in an older segment, the header of the next one vouches for.
    let newest = disk.files().into_iter().rfind(|name| name.ends_with(".seg"))?;
    let frames = frames(&disk.contents(&newest)?);
    let promised = frames.iter().map(|frame| frame.durable).max()?;
    let last = frames.iter().filter(|frame| frame.record_count > 0).max_by_key(|frame| frame.lsn)?;
    // At the end of a segment what is left is held for other marks: the next segment's header is the witness there.
    let has_room = last.end() < room;
    (has_room && promised <= last.lsn).then_some(last.lsn)
}

/// The highest promise of the frames of a segment.
fn highest(bytes: &[u8]) -> Option<Lsn> {
    frames(bytes).iter().map(|frame| frame.durable).max()
}

/// The frames of a segment.
fn frames(bytes: &[u8]) -> Vec<FrameHeader> {
    all_frames(bytes).unwrap_or_default()
}

fn all_frames(bytes: &[u8]) -> Option<Vec<FrameHeader>> {
    let (header, _) = SegmentHeader::decode(bytes).ok()?;
    let binding = Binding { store: header.store, salt: header.salt, epoch: header.epoch };
    let end_limit = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let context = ScanContext { binding, min_epoch: 0, max_epoch: u64::MAX, chain: None, end_limit };
    let mut at = FIRST_FRAME;
    let mut all = Vec::new();
    while let Some(window) = bytes.get(usize::try_from(at).ok()?..) {
        let Some(found) = find_candidate(window, Lsn::new(header.number, at), &context) else { break };
        at = found.lsn.offset().saturating_add(8);
        if let Ok(frame) = found.header {
            // Nothing inside a frame is one.
            at = u32::try_from(frame.end()).ok()?.max(at);
            all.push(frame);
        }
    }
    Some(all)
}
