//! The header of a segment file: as it stands, with a flipped bit put right, or as CONTROL, the index and the first
//! frame that is whole tell it together when its sector is lost.
//!
//! Always: a header that is made up names the true binding, proven by a frame. Never: a foreign file taken
//! for the segment whose name it bears.

use std::sync::Arc;

use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::format::index::index_binding;
use crate::format::scan::LOOKAHEAD_OVERLAP;
use crate::format::{
    Binding, ControlSlot, FIRST_FRAME, FrameHeader, FrameStep, Lsn, SEGMENT_HEADER_LEN, ScanContext,
    SegmentHeader, StoreId, find_candidate, names, read_frame,
};

use super::rebuild::decode_header;
use super::shared::Shared;
use super::survey::read_whole;
use super::window::Window;

/// How far a piece of the look for a later frame reaches.
const AHEAD: usize = 1 << 20;

/// What is read to find the first frame's header.
const FRONT: usize = SEGMENT_HEADER_LEN + 1024;

/// A header, its CRC (the chain value of the first frame), and whether the sector is damaged.
pub(crate) type ReadHeader = (SegmentHeader, u32, bool);

/// Reads the header of segment `number`.
///
/// # Errors
/// The file is missing, of another version, or of another segment; or the sector is damaged and nothing else tells
/// what the segment's frames are bound to.
pub(crate) fn read(shared: &Shared, number: u32, control: &ControlSlot) -> Result<ReadHeader> {
    let file = shared.files.readable(number)?;
    let name = names::segment(number);
    let front = front(file.as_ref());
    let found = decode_header(front.get(..SEGMENT_HEADER_LEN).unwrap_or(&front), &name).and_then(|found| {
        if found.0.number == number {
            return Ok(found);
        }
        let text = format!("it says that it is segment {}; put the right file back", found.0.number);
        Err(Error::corrupt(&name, 32, text))
    });
    match found {
        Err(error) if error.is_corruption() => made_up(shared, number, control, &file, &front).ok_or(error),
        other => other,
    }
}

/// The first bytes; zeros where they cannot be read.
fn front(file: &dyn DiskFile) -> Vec<u8> {
    let mut bytes = vec![0; FRONT];
    if let Ok(read) = file.read_at(&mut bytes, 0) {
        bytes.truncate(read);
        return bytes;
    }
    let rest = bytes.get_mut(SEGMENT_HEADER_LEN..).unwrap_or_default();
    let read = file.read_at(rest, u64::from(FIRST_FRAME)).unwrap_or(0);
    bytes.truncate(SEGMENT_HEADER_LEN.saturating_add(read));
    bytes
}

fn made_up(
    shared: &Shared,
    number: u32,
    control: &ControlSlot,
    file: &Arc<dyn DiskFile>,
    front: &[u8],
) -> Option<ReadHeader> {
    let named = (control.active == number && control.active_salt > 0).then_some((
        control.store,
        control.active_salt,
        control.active_epoch,
    ));
    let indexed = || {
        let bytes = read_whole(shared.disk.as_ref(), &names::index(number)).ok()??;
        let (store, segment, salt) = index_binding(&bytes)?;
        (segment == number).then_some((store, salt, 0))
    };
    let frame = front.get(SEGMENT_HEADER_LEN..).unwrap_or_default();
    [named, indexed()].into_iter().flatten().find_map(|(store, salt, epoch)| {
        let (epoch, crc) = first_frame(frame, number, store, salt)
            .or_else(|| {
                // A frame that is bad as well: what CONTROL says has to do. Zeros are a segment without frames.
                (epoch > 0 && !frame.is_empty()).then_some((epoch, 0))
            })
            .or_else(|| Some((later_frame(file, number, store, salt)?, 0)))?;
        let length = u32::try_from(file.len().ok()?).unwrap_or(u32::MAX);
        let header = SegmentHeader {
            store,
            number,
            previous: 0,
            epoch,
            salt,
            previous_end: 0,
            previous_chain: 0,
            previous_why: crate::format::Ending::None,
            next_dense: 0,
            capacity: length.max(shared.options.segment_bytes),
            padded: shared.options.padded,
        };
        Some((header, crc, true))
    })
}

/// Epoch and chain value of the first frame, if it is one under this binding.
fn first_frame(bytes: &[u8], number: u32, store: StoreId, salt: u64) -> Option<(u64, u32)> {
    let binding = Binding { store, salt, epoch: 0 };
    let (frame, _) = FrameHeader::decode(bytes, &binding).ok()?;
    (frame.lsn == Lsn::new(number, FIRST_FRAME)).then_some((frame.epoch, frame.chain))
}

/// A frame that came later may be of this many epochs after the one that its segment was started in.
const EPOCHS: u64 = 64;

/// The epoch that the records of this segment are bound to, by the first of them that is whole: a bad page at its front
/// takes the header and the first frame, and must not take the rest.
fn later_frame(file: &Arc<dyn DiskFile>, number: u32, store: StoreId, salt: u64) -> Option<u64> {
    let mut window = Window::new(Arc::clone(file), u32::MAX).ok()?;
    let binding = |epoch| Binding { store, salt, epoch };
    let context = |epoch| ScanContext {
        binding: binding(epoch),
        min_epoch: 0,
        max_epoch: u64::MAX,
        chain: None,
        end_limit: u32::MAX,
    };
    let mut at = FIRST_FRAME;
    while at < window.len() {
        let bytes = window.at(at, AHEAD);
        let Some(found) = find_candidate(bytes, Lsn::new(number, at), &context(0)) else {
            // Candidates may straddle the pieces: the next one begins before the end of this one.
            let step = bytes.len().checked_sub(LOOKAHEAD_OVERLAP)? & !7;
            at = at.checked_add(u32::try_from(step).ok().filter(|step| *step > 0)?)?;
            continue;
        };
        let frame = found.header.ok()?;
        let length = usize::try_from(frame.frame_len()).ok()?;
        at = found.lsn.offset();
        let bytes = window.at(at, length);
        let oldest = frame.epoch.saturating_sub(EPOCHS);
        let fits = |epoch: &u64| match read_frame(bytes, found.lsn, &context(*epoch)) {
            FrameStep::Frame(view) => view.records().any(|record| record.is_ok()),
            _ => false,
        };
        if let Some(epoch) = (oldest..=frame.epoch).rev().find(fits) {
            return Some(epoch);
        }
        at = u32::try_from(frame.end()).ok()?.max(at.checked_add(8)?);
    }
    None
}
