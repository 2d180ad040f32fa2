//! The witness is there: what CONTROL and frame headers promise to be durable (E1).
//!
//! In one engine a setting switched it off, and acknowledged data behind a flipped bit was dropped. So it is looked at
//! under every configuration.

use crate::disk::Disk;
use crate::format::names;
use crate::format::scan::{ScanContext, find_candidate};
use crate::format::{Binding, Control, FIRST_FRAME, Lsn, SegmentHeader};
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

/// The highest promise of the frames of a segment.
fn highest(bytes: &[u8]) -> Option<Lsn> {
    let (header, _) = SegmentHeader::decode(bytes).ok()?;
    let binding = Binding { store: header.store, salt: header.salt, epoch: header.epoch };
    let end_limit = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let context = ScanContext { binding, min_epoch: 0, max_epoch: u64::MAX, chain: None, end_limit };
    let mut at = FIRST_FRAME;
    let mut best = None;
    while let Some(window) = bytes.get(usize::try_from(at).ok()?..) {
        let Some(found) = find_candidate(window, Lsn::new(header.number, at), &context) else { break };
        if let Ok(frame) = &found.header {
            best = best.max(Some(frame.durable));
        }
        at = found.lsn.offset().saturating_add(8);
    }
    best
}
