//! Index frames: reading the active segment's index from its own frames instead of all its records (D1).
//!
//! Only frames that CONTROL's watermark covers are used: everything before them was acknowledged, so a bad spot there is
//! damage, whoever finds it, and never a torn tail; the records skipped here keep their own checksums for readers and
//! verification. Whatever does not fit means that the segment is scanned from its beginning.

use crate::disk::DiskFile;
use crate::format::index::{SegmentKey, SegmentTable};
use crate::format::{
    ControlSlot, FIRST_FRAME, FRAME_HEADER_LEN, FrameHeader, FrameStep, Lsn, Meta, ScanContext,
    SegmentHeader, frame_kind, read_frame,
};
use crate::mutation::{self, Mutation};

/// What the index frames say, and where a scan goes on behind them.
pub(crate) struct Indexed {
    pub table: SegmentTable,
    /// Place of the newest index frame.
    pub at: u32,
    /// Behind it, with the chain value and the epoch there.
    pub from: u32,
    pub chain: u32,
    pub epoch: u64,
    /// Length of all of them.
    pub bytes: u64,
}

/// What [`load`] finds, or the segment's beginning.
pub(crate) fn load_or_begin(
    file: &dyn DiskFile,
    header: &SegmentHeader,
    header_crc: u32,
    control: &ControlSlot,
) -> Indexed {
    load(file, header, control).unwrap_or_else(|| Indexed {
        table: SegmentTable::new(key(header)),
        at: 0,
        from: FIRST_FRAME,
        chain: header_crc,
        epoch: header.epoch,
        bytes: 0,
    })
}

fn key(header: &SegmentHeader) -> SegmentKey {
    SegmentKey { store: header.store, segment: header.number, salt: header.salt }
}

struct Frame {
    previous: u32,
    end: u32,
    crc: u32,
    epoch: u64,
    part: Vec<u8>,
}

/// See the module. `None`: scan from the beginning.
fn load(file: &dyn DiskFile, header: &SegmentHeader, control: &ControlSlot) -> Option<Indexed> {
    let number = header.number;
    let newest = control.last_index;
    let ours = control.store == header.store
        && (control.active, control.active_salt) == (number, header.salt)
        && (newest.segment(), control.durable.segment()) == (number, number);
    if !ours {
        return None;
    }
    let first = read_index_frame(file, header, newest.offset())?;
    if first.end > control.durable.offset() {
        return None;
    }
    let (from, chain, epoch) = (first.end, first.crc, first.epoch);
    let mut bytes = u64::from(first.end.saturating_sub(newest.offset()));
    let mut at = newest.offset();
    let mut previous = first.previous;
    let mut parts = vec![(at, first.part)];
    while previous > 0 {
        let frame = read_index_frame(file, header, previous).filter(|frame| frame.end <= at);
        if frame.is_none() && mutation::is_on(Mutation::StopAtBadIndexFrame) {
            break;
        }
        let frame = frame?;
        bytes = bytes.saturating_add(u64::from(frame.end.saturating_sub(previous)));
        at = previous;
        previous = frame.previous;
        parts.push((at, frame.part));
    }
    let mut table = SegmentTable::new(key(header));
    for (at, part) in parts.iter().rev() {
        if let Err(fault) = table.apply_part(part, *at) {
            tracing::warn!(%fault, segment = number, "an index frame is not used; scanning the segment");
            return None;
        }
    }
    Some(Indexed { table, at: newest.offset(), from, chain, epoch, bytes })
}

fn read_index_frame(file: &dyn DiskFile, header: &SegmentHeader, at: u32) -> Option<Frame> {
    let place = Lsn::new(header.number, at);
    let binding = header.binding();
    let mut front = [0; FRAME_HEADER_LEN];
    file.read_at(&mut front, u64::from(at)).ok()?;
    let (frame, _) = FrameHeader::decode(&front, &binding).ok()?;
    let fits = frame.kind == frame_kind::INDEX && frame.lsn == place;
    let length = frame.frame_len();
    if !fits || u64::from(at).checked_add(length)? > file.len().ok()? {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    let read = file.read_at(&mut bytes, u64::from(at)).ok()?;
    bytes.truncate(read);
    let context = ScanContext {
        binding,
        min_epoch: header.epoch,
        max_epoch: u64::MAX,
        chain: None,
        end_limit: header.capacity,
    };
    let FrameStep::Frame(view) = read_frame(&bytes, place, &context) else { return None };
    if !view.is_intact() {
        return None;
    }
    let record = view.records().next()?.ok()?;
    let Meta::IndexPart(meta) = record.meta else { return None };
    Some(Frame {
        previous: meta.previous,
        end: view.end.offset(),
        crc: view.crc,
        epoch: view.header.epoch,
        part: record.payload.to_vec(),
    })
}
