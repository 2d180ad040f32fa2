//! The segment to go on in: behind a clean close mark, or a new one behind what was cut.

use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::format::index::{SegmentKey, SegmentTable};
use crate::format::{ControlSlot, Ending, FIRST_FRAME, Lsn, SegmentHeader, empty_frame, frame_kind, names};
use crate::mutation::{self, Mutation};

use crate::log::create::{begin_segment, replace_with};
use crate::log::keeper::write_zeros;
use crate::log::report::Cut;
use crate::log::scan::Reason;
use crate::log::segments::{EndOf, SegmentFacts};
use crate::log::space::MARKS_RESERVE;

use super::damage::{lost_ids, number_behind};
use super::{Active, FIRST_PREPARED, LEAST_PREPARED, Newest, Opening};

impl Opening<'_> {
    /// Goes on behind a clean close mark, or in a new segment.
    pub(super) fn choose_active(
        &mut self,
        newest: Option<Newest>,
        control: ControlSlot,
        epoch: u64,
        missing: &[u32],
    ) -> Result<(Active, Option<(SegmentFacts, SegmentTable)>)> {
        let Some(mut newest) = newest else {
            let header = self.first_header(epoch, control, missing)?;
            let (prepared, crc) = self.begin(&header, FIRST_PREPARED)?;
            return Ok((self.fresh(header, prepared, crc, epoch), None));
        };
        let clean = newest.end.closed
            && (newest.end.residue_end == newest.end.end || mutation::is_on(Mutation::ContinueOverResidue))
            && newest.bad.is_empty()
            && missing.is_empty();
        if clean && let Some(end) = self.continue_in(&newest, epoch)? {
            let (chain, tail, prepared) = end;
            let Newest { header, table, index_at, index_from, .. } = newest;
            return Ok((Active { header, chain, tail, prepared, epoch, table, index_at, index_from }, None));
        }
        self.report.clean &= clean;
        let why = if newest.end.damaged || !missing.is_empty() {
            Ending::Damaged
        } else if newest.end.sealed || clean {
            Ending::Sealed
        } else {
            Ending::Torn
        };
        let kept = self.cut(&newest)?;
        let previous = newest.header.number;
        let number = number_behind(previous.max(control.active), missing);
        let header = SegmentHeader {
            store: newest.header.store,
            number,
            previous,
            epoch,
            salt: self.salt(),
            previous_end: if mutation::is_on(Mutation::EndNotRecorded) {
                newest.header.capacity
            } else {
                newest.end.end
            },
            previous_chain: newest.end.chain,
            previous_why: why,
            next_dense: self.next_dense(&newest, control),
            capacity: self.capacity(),
            padded: self.shared.options.padded,
        };
        let end = EndOf { end: newest.end.end, chain: newest.end.chain, why };
        if newest.bad.iter().any(|spot| spot.reason == Reason::Header) {
            // Once the new segment is there, nothing looks at this one as the newest any more.
            self.keep_binding(&mut newest, end)?;
        }
        let (prepared, crc) = self.begin_or_shrink(&header, &newest)?;
        if kept {
            let file = self.shared.files.writable(previous)?;
            if file.len()? > u64::from(newest.end.end) {
                file.set_len(u64::from(newest.end.end))?;
            }
        }
        self.shared.files.ended(previous);
        let facts = SegmentFacts { header: newest.header, header_crc: newest.header_crc, end };
        Ok((self.fresh(header, prepared, crc, epoch), Some((facts, newest.table))))
    }

    /// CONTROL is about to name another segment, and the header of this one is lost: its index keeps the binding.
    pub(super) fn keep_binding(&self, newest: &mut Newest, end: EndOf) -> Result<()> {
        // An upper bound, as for any rebuilt index; replaying sets the links that are known.
        newest.table.set_all_prev(newest.header.number.saturating_sub(1));
        match self.put_index(newest, end) {
            Err(error) if error.is_full() => {}
            other => return other,
        }
        self.shrink(newest)?;
        self.put_index(newest, end)
    }

    fn put_index(&self, newest: &Newest, end: EndOf) -> Result<()> {
        let (temp, name) = (names::index_temp(newest.header.number), names::index(newest.header.number));
        replace_with(self.shared.disk.as_ref(), &temp, &name, names::SEGMENTS, &mut |sink| {
            newest.table.write_index(end.end, end.chain, end.why, sink)
        })
    }

    /// Writes the continue mark behind a clean close, if the segment has room to go on in.
    pub(super) fn continue_in(&self, newest: &Newest, epoch: u64) -> Result<Option<(u32, Lsn, u32)>> {
        let at = Lsn::new(newest.header.number, newest.end.end);
        let capacity = newest.header.capacity;
        let end = newest.end.end;
        // The continue mark, and a close mark behind it.
        let least = end.saturating_add(if newest.header.padded { 2 * 4096 } else { MARKS_RESERVE / 4 });
        if least > capacity {
            return Ok(None);
        }
        let file = self.shared.files.writable(newest.header.number)?;
        let length = u32::try_from(file.len()?).unwrap_or(u32::MAX);
        let mut prepared = length.min(capacity) & !4095;
        if prepared < end.saturating_add(4 * MARKS_RESERVE).min(capacity) {
            let wanted = end.saturating_add(FIRST_PREPARED / 4).min(capacity);
            match write_zeros(file.as_ref(), length.max(end), wanted) {
                Ok(()) => prepared = wanted,
                // A full disk: what was prepared before has to do.
                Err(error) if error.is_full() && prepared >= least => {}
                Err(error) if error.is_full() => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let binding = newest.header.binding();
        let (bytes, crc) = empty_frame(
            frame_kind::CONTINUE,
            at,
            epoch,
            at,
            newest.end.chain,
            &binding,
            newest.header.padded,
        );
        file.write_at(&[&bytes], u64::from(at.offset()))?;
        if !mutation::is_on(Mutation::NoSyncOfContinue) {
            file.sync_data()?;
        }
        Ok(at.advance(bytes.len()).map(|tail| (crc, tail, prepared)))
    }

    /// Keeps the torn bytes aside. False where they have to stay in place: no space is left, or they cannot be read.
    pub(super) fn cut(&mut self, newest: &Newest) -> Result<bool> {
        let (from, to) = (newest.end.end, newest.end.residue_end);
        if to <= from {
            return Ok(true);
        }
        let file = self.shared.files.writable(newest.header.number)?;
        let length = usize::try_from(to - from).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        let name = names::quarantine(newest.header.number, from, newest.end.last_epoch);
        let kept = file.read_at(&mut bytes, u64::from(from)).map(|read| bytes.truncate(read));
        let is_readable = kept.is_ok();
        let kept = kept.and_then(|()| keep(self.shared.disk.as_ref(), &name, &bytes));
        let mut cut = Cut {
            file: names::segment(newest.header.number).into(),
            offset: u64::from(from),
            length: length as u64,
            kept_in: Some(name.into()),
            may_have_been_acknowledged: newest.end.doubtful,
        };
        let done = match kept {
            Ok(()) => true,
            // A sector among them that cannot be read must not keep the store from being opened.
            Err(error) if error.is_full() || !is_readable => {
                cut.kept_in = None;
                false
            }
            Err(error) => return Err(error),
        };
        tracing::warn!(segment = newest.header.number, offset = from, bytes = length, "cut a torn tail");
        self.report.cut.push(cut);
        Ok(done)
    }

    pub(super) fn next_dense(&self, newest: &Newest, control: ControlSlot) -> u64 {
        let seen =
            newest.table.sessions().map(|session| session.part().dense).max().unwrap_or(0).saturating_add(1);
        if mutation::is_on(Mutation::DenseReused) {
            return newest.header.next_dense.max(seen);
        }
        // As many ids as the lost bytes could have handed out: none is ever used twice (F12).
        let lost: u64 =
            newest.bad.iter().map(|spot| u64::from(spot.to.saturating_sub(spot.from)) / 16 + 1).sum();
        let controls = newest.table.controls().len() as u64;
        newest
            .header
            .next_dense
            .max(control.next_dense)
            .max(seen)
            .saturating_add(lost)
            .saturating_add(controls)
    }

    pub(super) fn salt(&self) -> u64 {
        let mut salt = [0; 8];
        self.shared.rt.fill_random(&mut salt);
        u64::from_le_bytes(salt).max(1)
    }

    pub(super) fn capacity(&self) -> u32 {
        self.shared.options.segment_bytes
    }

    pub(super) fn first_header(
        &self,
        epoch: u64,
        control: ControlSlot,
        missing: &[u32],
    ) -> Result<SegmentHeader> {
        Ok(SegmentHeader {
            store: self.survey.store().ok_or_else(|| {
                let text = "no segment header, CONTROL or LIVE can be read, so nothing tells which store this is; \
                            restore one of them or open a backup";
                Error::corrupt(names::SEGMENTS, 0, text)
            })?,
            number: number_behind(control.active, missing),
            previous: 0,
            epoch,
            salt: self.salt(),
            previous_end: 0,
            previous_chain: 0,
            previous_why: Ending::None,
            next_dense: control.next_dense.max(1).saturating_add(lost_ids(missing)),
            capacity: self.capacity(),
            padded: self.shared.options.padded,
        })
    }

    pub(super) fn begin(&self, header: &SegmentHeader, prepared: u32) -> Result<(u32, u32)> {
        let prepared = prepared.min(header.capacity);
        let (file, crc) = begin_segment(self.shared.disk.as_ref(), header, prepared)?;
        self.shared.files.started(header.number, file);
        Ok((prepared, crc))
    }

    /// On a full disk the old segment's prepared zeros make room for the new one's first bytes (G6).
    pub(super) fn begin_or_shrink(&self, header: &SegmentHeader, newest: &Newest) -> Result<(u32, u32)> {
        match self.begin(header, FIRST_PREPARED) {
            Err(error) if error.is_full() => {}
            other => return other,
        }
        self.shrink(newest)?;
        match self.begin(header, FIRST_PREPARED / 16) {
            Err(error) if error.is_full() => self.begin(header, LEAST_PREPARED),
            other => other,
        }
    }

    /// Gives back the zeros behind everything that the old segment holds.
    fn shrink(&self, newest: &Newest) -> Result<()> {
        let file = self.shared.files.writable(newest.header.number)?;
        let keep = newest.end.residue_end.max(newest.end.end);
        if file.len()? > u64::from(keep) {
            file.set_len(u64::from(keep))?;
        }
        Ok(())
    }

    pub(super) fn fresh(&self, header: SegmentHeader, prepared: u32, crc: u32, epoch: u64) -> Active {
        let key = SegmentKey { store: header.store, segment: header.number, salt: header.salt };
        Active {
            chain: crc,
            tail: Lsn::new(header.number, FIRST_FRAME),
            prepared,
            epoch,
            table: SegmentTable::new(key),
            index_at: 0,
            index_from: FIRST_FRAME,
            header,
        }
    }
}

fn keep(disk: &dyn Disk, name: &str, bytes: &[u8]) -> Result<()> {
    if mutation::is_on(Mutation::TornTailNotKept) {
        return Ok(());
    }
    if disk.exists(name)? {
        disk.unlink(name)?;
    }
    let file = disk.create_excl(name)?;
    let written = file.write_at(&[bytes], 0).and_then(|()| file.sync_file());
    if let Err(error) = written {
        let _ = disk.unlink(name);
        return Err(error);
    }
    if mutation::is_on(Mutation::NoDirSyncAtQuarantine) { Ok(()) } else { disk.sync_dir(names::QUARANTINE) }
}
