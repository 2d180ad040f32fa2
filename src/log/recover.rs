//! Opening a log: scan the newest segment, plan, apply (P1), and bring the index up to date.
//!
//! The apply is idempotent and may crash anywhere: what decides is the header of the next segment (or the
//! continue mark), which is durable before anything that relies on it. Acknowledged bytes are never cut, and
//! damage never moves the end of the log.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::disk::{Disk, FsKind};
use crate::error::{Error, ErrorKind, Result};
use crate::format::index::{SegmentKey, SegmentTable};
use crate::format::{
    ControlSlot, DamageReason, Ending, FIRST_FRAME, LiveDamage, LiveSet, LockInfo, Lsn, SegmentHeader, State,
    StoreId, empty_frame, frame_kind, names,
};
use crate::rt::Runtime;

use super::commit_state::CommitState;
use super::create::{begin_segment, complete_store, put_live, put_new_control, replace};
use super::directory::open_chain;
use super::fold::replay_behind_chain;
use super::index_frames;
use super::keeper::write_zeros;
use super::live::LiveIndex;
use super::rebuild::{damaged, feed, plan};
use super::report::{Cut, Loss, RecoveryReport};
use super::scan::{BadSpot, Found, Reason, ScanEnd, ScanPlan, scan};
use super::segments::{EndOf, SegmentFacts, Segments};
use super::shared::{Parts, Shared};
use super::space::{MARKS_RESERVE, Space};
use super::survey::Survey;
use super::types::LogOptions;
use super::work::Origin;

/// Prepared before an open returns, so that a small write needs no background.
const FIRST_PREPARED: u32 = 1 << 20;
/// Prepared at least, on a full disk: the header and room for marks.
const LEAST_PREPARED: u32 = 4096;

/// The newest segment after scanning.
pub(crate) struct Newest {
    pub header: SegmentHeader,
    pub header_crc: u32,
    pub table: SegmentTable,
    /// The newest index frame that was used, and where the scan began.
    pub index_at: u32,
    pub index_from: u32,
    pub end: ScanEnd,
    pub bad: Vec<BadSpot>,
}

/// Opens for writing.
///
/// # Errors
/// See [`super::Log::open_writer`].
pub(crate) fn open_writer(
    disk: Arc<dyn Disk>,
    rt: Arc<dyn Runtime>,
    options: LogOptions,
    create: bool,
) -> Result<(Arc<Shared>, RecoveryReport)> {
    check_file_system(disk.as_ref(), &options)?;
    let first = Survey::take(disk.as_ref())?;
    if first.is_empty() && !create {
        return Err(no_store(disk.as_ref()));
    }
    let info = LockInfo::new(rt.process_id(), &rt.host_name());
    let lock = disk.lock(names::LOCK, &info.to_text())?;
    let mut survey = Survey::take(disk.as_ref())?;
    let mut report = RecoveryReport { clean: true, ..RecoveryReport::default() };
    if survey.is_half_created() {
        report.created = survey.is_empty();
        let store = survey.store().unwrap_or_else(|| new_store_id(rt.as_ref()));
        complete_store(disk.as_ref(), &survey, store)?;
        survey = Survey::take(disk.as_ref())?;
    } else if survey.segments.is_empty() {
        return Err(lost_segments(&survey));
    }
    let shared = Arc::new(Shared::new(Parts { disk, rt, options, lock: Some(lock) }));
    Opening { shared: &shared, survey, report: &mut report }.write()?;
    Ok((shared, report))
}

fn new_store_id(rt: &dyn Runtime) -> StoreId {
    let mut id = [0; 16];
    rt.fill_random(&mut id);
    StoreId(id)
}

pub(crate) fn no_store(disk: &dyn Disk) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("there is no store in {}; create one by recording or importing", disk.path().display()),
    )
}

fn lost_segments(survey: &Survey) -> Error {
    let durable = survey.control.map_or(Lsn::NONE, |slot| slot.durable);
    Error::corrupt(
        names::SEGMENTS,
        0,
        format!(
            "no segment file is there, yet everything up to {durable} was acknowledged; restore them or open a backup"
        ),
    )
}

fn check_file_system(disk: &dyn Disk, options: &LogOptions) -> Result<()> {
    match disk.fs_kind()? {
        FsKind::Network(name) if !options.allow_network => Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "{} is on {name}, a network or user-space file system whose locks and syncs cannot be relied on; \
                 open it for reading, move it to a local disk, or allow it explicitly",
                disk.path().display()
            ),
        )),
        _ => Ok(()),
    }
}

struct Opening<'a> {
    shared: &'a Arc<Shared>,
    survey: Survey,
    report: &'a mut RecoveryReport,
}

/// The active segment to go on in.
struct Active {
    header: SegmentHeader,
    chain: u32,
    tail: Lsn,
    prepared: u32,
    epoch: u64,
    table: SegmentTable,
    index_at: u32,
    index_from: u32,
}

impl Opening<'_> {
    fn write(&mut self) -> Result<()> {
        let control = self.survey.control.unwrap_or_default();
        self.report.notes.append(&mut self.survey.notes);
        let mut ended = self.survey.segments.clone();
        let newest_number = ended.pop();
        *self.shared.segments.write() = Arc::new(Segments::new(ended.clone()));
        let live_set = self.live_set(control)?;
        let mut damage = live_set.damage.clone();
        let missing = missing_members(&self.survey, &live_set, control)?;
        damage.extend(missing.iter().map(|number| whole_file(*number, DamageReason::MissingFile)));
        let (newest, unreadable) = self.newest(&mut ended, newest_number, control)?;
        damage.extend(unreadable.iter().map(|number| whole_file(*number, DamageReason::BadBytes)));
        let missing: Vec<u32> = missing.into_iter().chain(unreadable).collect();
        let epoch = self.next_epoch(control, newest.as_ref());
        self.report.epoch = epoch;
        self.sync_and_rewrite(newest.as_ref())?;
        if let Some(newest) = &newest {
            self.report.scanned_bytes = newest.end.bytes_read;
            damage.extend(newest.bad.iter().map(live_damage));
        }
        self.remember_damage(live_set, damage)?;
        let (active, old) = self.choose_active(newest, control, epoch, &missing)?;
        self.publish_control(control, &active)?;
        self.start(active, old, ended, control)
    }

    /// The newest segment that can be read, and those above it that cannot.
    fn newest(
        &mut self,
        ended: &mut Vec<u32>,
        highest: Option<u32>,
        control: ControlSlot,
    ) -> Result<(Option<Newest>, Vec<u32>)> {
        let mut unreadable = Vec::new();
        let mut next = highest;
        while let Some(number) = next {
            match scan_newest(self.shared, number, control) {
                Ok(newest) => return Ok((Some(newest), unreadable)),
                Err(error) if error.is_corruption() => {
                    tracing::error!(%error, segment = number, "a segment cannot be read");
                    self.report.notes.push(error.to_string());
                    unreadable.push(number);
                    next = ended.pop();
                    *self.shared.segments.write() = Arc::new(Segments::new(ended.clone()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok((None, unreadable))
    }

    fn live_set(&mut self, control: ControlSlot) -> Result<LiveSet> {
        if let Some(live) = self.survey.live.take() {
            return Ok(live);
        }
        let store = self.survey.store().unwrap_or_default();
        self.report.notes.push(format!("{} was missing or damaged and was rebuilt", names::LIVE));
        let version = control.live_version.saturating_add(1);
        let mut live = LiveSet { store, version, ..LiveSet::default() };
        if control.live_version > 1 {
            // It named damage, which only reading everything finds again.
            live.damage = self.rescan()?;
        }
        put_live(self.shared.disk.as_ref(), &live)?;
        Ok(live)
    }

    /// The damage in all ended segments.
    fn rescan(&self) -> Result<Vec<LiveDamage>> {
        let mut damage = Vec::new();
        let segments = Arc::clone(&self.shared.segments.read());
        for number in segments.numbers() {
            let facts = match segments.facts(self.shared, number) {
                Ok(facts) => facts,
                Err(error) if error.is_corruption() => {
                    damage.push(whole_file(number, DamageReason::BadBytes));
                    continue;
                }
                Err(error) => return Err(error),
            };
            scan(self.shared.files.readable(number)?, &plan(&facts), &mut |found| {
                if let Found::Bad(spot) = found {
                    damage.push(live_damage(&spot));
                }
                Ok(())
            })?;
        }
        Ok(damage)
    }

    fn next_epoch(&self, control: ControlSlot, newest: Option<&Newest>) -> u64 {
        let seen = newest.map_or(0, |newest| newest.end.last_epoch.max(newest.header.epoch));
        self.survey.epoch.max(control.epoch).max(seen).saturating_add(1)
    }

    /// A sync alone proves nothing about bytes above the highest witness (after a failed fsync the kernel calls
    /// lost pages clean), so those are written again, in place, and synced before anything relies on them.
    fn sync_and_rewrite(&self, newest: Option<&Newest>) -> Result<()> {
        let Some(newest) = newest else { return Ok(()) };
        Shared::unlocked();
        let file = self.shared.files.writable(newest.header.number)?;
        file.sync_file()?;
        self.shared.disk.sync_dir(names::SEGMENTS)?;
        let mut at = newest.end.witnessed.max(FIRST_FRAME);
        if at >= newest.end.end {
            return Ok(());
        }
        let mut buffer = vec![0; 1 << 20];
        while at < newest.end.end {
            let left = usize::try_from(newest.end.end - at).unwrap_or(buffer.len()).min(buffer.len());
            let piece = buffer.get_mut(..left).unwrap_or_default();
            let read = file.read_at(piece, u64::from(at))?;
            file.write_at(&[piece.get(..read).unwrap_or_default()], u64::from(at))?;
            if read < left {
                break;
            }
            at = at.saturating_add(u32::try_from(read).unwrap_or(u32::MAX));
        }
        file.sync_data()
    }

    fn remember_damage(&mut self, mut live: LiveSet, mut damage: Vec<LiveDamage>) -> Result<()> {
        damage.sort_by_key(|damage| (damage.segment, damage.from, damage.to));
        damage.dedup_by_key(|damage| (damage.segment, damage.from));
        for damage in &damage {
            self.report.losses.push(loss(damage));
        }
        if damage != live.damage {
            self.report.clean = false;
            for damage in &damage {
                tracing::error!(
                    segment = damage.segment,
                    from = damage.from,
                    to = damage.to,
                    "acknowledged bytes are damaged"
                );
            }
            live.damage = damage;
            live.version = live.version.saturating_add(1);
            put_live(self.shared.disk.as_ref(), &live)?;
        }
        self.shared.set_live_set(live);
        Ok(())
    }

    /// Goes on behind a clean close mark, or in a new segment.
    fn choose_active(
        &mut self,
        newest: Option<Newest>,
        control: ControlSlot,
        epoch: u64,
        missing: &[u32],
    ) -> Result<(Active, Option<(SegmentFacts, SegmentTable)>)> {
        let Some(newest) = newest else {
            let header = self.first_header(epoch, control, missing)?;
            let (prepared, crc) = self.begin(&header, FIRST_PREPARED)?;
            return Ok((self.fresh(header, prepared, crc, epoch), None));
        };
        let clean = newest.end.closed
            && newest.end.residue_end == newest.end.end
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
            previous_end: newest.end.end,
            previous_chain: newest.end.chain,
            previous_why: why,
            next_dense: self.next_dense(&newest, control),
            capacity: self.capacity(),
            padded: self.shared.options.padded,
        };
        let (prepared, crc) = self.begin_or_shrink(&header, &newest)?;
        if kept {
            let file = self.shared.files.writable(previous)?;
            if file.len()? > u64::from(newest.end.end) {
                file.set_len(u64::from(newest.end.end))?;
            }
        }
        self.shared.files.ended(previous);
        let end = EndOf { end: newest.end.end, chain: newest.end.chain, why };
        if newest.bad.iter().any(|spot| spot.reason == Reason::Header) {
            self.keep_binding(&newest, end)?;
        }
        let facts = SegmentFacts { header: newest.header, header_crc: newest.header_crc, end };
        Ok((self.fresh(header, prepared, crc, epoch), Some((facts, newest.table))))
    }

    /// CONTROL is about to name another segment, and the header of this one is lost: its index keeps the binding.
    fn keep_binding(&self, newest: &Newest, end: EndOf) -> Result<()> {
        let mut table = newest.table.clone();
        let sessions: Vec<u64> = table.sessions().map(|session| session.part().dense).collect();
        for dense in sessions {
            // An upper bound, as for any rebuilt index.
            table.set_prev(dense, newest.header.number.saturating_sub(1));
        }
        let (temp, name) = (names::index_temp(newest.header.number), names::index(newest.header.number));
        let bytes = table.to_index(end.end, end.chain, end.why);
        replace(self.shared.disk.as_ref(), &temp, &name, names::SEGMENTS, &bytes)
    }

    /// Writes the continue mark behind a clean close, if the segment has room to go on in.
    fn continue_in(&self, newest: &Newest, epoch: u64) -> Result<Option<(u32, Lsn, u32)>> {
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
        file.sync_data()?;
        Ok(at.advance(bytes.len()).map(|tail| (crc, tail, prepared)))
    }

    /// Keeps the torn bytes aside. False where they have to stay in place for want of space.
    fn cut(&mut self, newest: &Newest) -> Result<bool> {
        let (from, to) = (newest.end.end, newest.end.residue_end);
        if to <= from {
            return Ok(true);
        }
        let file = self.shared.files.writable(newest.header.number)?;
        let length = usize::try_from(to - from).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        let read = file.read_at(&mut bytes, u64::from(from))?;
        bytes.truncate(read);
        let name = names::quarantine(newest.header.number, from, newest.end.last_epoch);
        let kept = keep(self.shared.disk.as_ref(), &name, &bytes);
        let mut cut = Cut {
            file: names::segment(newest.header.number).into(),
            offset: u64::from(from),
            length: length as u64,
            kept_in: Some(name.into()),
            may_have_been_acknowledged: newest.end.doubtful,
        };
        let done = match kept {
            Ok(()) => true,
            Err(error) if error.is_full() => {
                cut.kept_in = None;
                false
            }
            Err(error) => return Err(error),
        };
        tracing::warn!(segment = newest.header.number, offset = from, bytes = length, "cut a torn tail");
        self.report.cut.push(cut);
        Ok(done)
    }

    fn next_dense(&self, newest: &Newest, control: ControlSlot) -> u64 {
        let seen =
            newest.table.sessions().map(|session| session.part().dense).max().unwrap_or(0).saturating_add(1);
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

    fn salt(&self) -> u64 {
        let mut salt = [0; 8];
        self.shared.rt.fill_random(&mut salt);
        u64::from_le_bytes(salt).max(1)
    }

    fn capacity(&self) -> u32 {
        self.shared.options.segment_bytes
    }

    fn first_header(&self, epoch: u64, control: ControlSlot, missing: &[u32]) -> Result<SegmentHeader> {
        Ok(SegmentHeader {
            store: self
                .survey
                .store()
                .ok_or_else(|| Error::new(ErrorKind::Internal, "a new store without an identity"))?,
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

    fn begin(&self, header: &SegmentHeader, prepared: u32) -> Result<(u32, u32)> {
        let prepared = prepared.min(header.capacity);
        let (file, crc) = begin_segment(self.shared.disk.as_ref(), header, prepared)?;
        self.shared.files.started(header.number, file);
        Ok((prepared, crc))
    }

    /// On a full disk the old segment's prepared zeros make room for the new one's first bytes (G6).
    fn begin_or_shrink(&self, header: &SegmentHeader, newest: &Newest) -> Result<(u32, u32)> {
        match self.begin(header, FIRST_PREPARED) {
            Err(error) if error.is_full() => {}
            other => return other,
        }
        let file = self.shared.files.writable(newest.header.number)?;
        let keep = newest.end.residue_end.max(newest.end.end);
        if file.len()? > u64::from(keep) {
            file.set_len(u64::from(keep))?;
        }
        match self.begin(header, FIRST_PREPARED / 16) {
            Err(error) if error.is_full() => self.begin(header, LEAST_PREPARED),
            other => other,
        }
    }

    fn fresh(&self, header: SegmentHeader, prepared: u32, crc: u32, epoch: u64) -> Active {
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

    fn publish_control(&mut self, control: ControlSlot, active: &Active) -> Result<()> {
        let slot = ControlSlot {
            state: State::Open,
            store: active.header.store,
            epoch: active.epoch,
            counter: control.counter.saturating_add(1),
            durable: active.tail,
            written: active.tail,
            live_version: self.shared.live_set().version,
            next_dense: active.header.next_dense.max(control.next_dense),
            last_index: if active.index_at > 0 {
                Lsn::new(active.header.number, active.index_at)
            } else {
                Lsn::NONE
            },
            active: active.header.number,
            active_salt: active.header.salt,
            active_epoch: active.header.epoch,
            ..control
        };
        if !self.survey.has_control || self.survey.control.is_none() || self.survey.control_damaged {
            self.report.control_rebuilt = !self.report.created;
            let rebuilt = ControlSlot { counter: slot.counter.max(2), ..slot };
            put_new_control(self.shared.disk.as_ref(), &rebuilt)?;
            self.shared.set_control(rebuilt);
            return Ok(());
        }
        let file = self.shared.files.control()?;
        file.write_at(&[&slot.encode()], slot.offset())?;
        file.sync_data()?;
        self.shared.set_control(slot);
        Ok(())
    }

    fn start(
        &mut self,
        active: Active,
        old: Option<(SegmentFacts, SegmentTable)>,
        mut ended: Vec<u32>,
        control: ControlSlot,
    ) -> Result<()> {
        let shared = self.shared;
        if let Some((facts, _)) = &old {
            shared.segments.read().add_ended(facts.header.number, facts.clone());
            ended.push(facts.header.number);
        }
        let chain = open_chain(shared, active.header.number);
        let (directory_to, doomed) = (chain.to, super::checkpoint::leftovers(shared, &self.survey, &chain));
        let next_dense = chain.next_dense().max(active.header.next_dense).max(control.next_dense);
        let mut live = LiveIndex::new(chain, next_dense);
        let mut unindexed: Vec<u32> =
            ended.iter().copied().filter(|number| !self.survey.indexes.contains(number)).collect();
        unindexed.sort_unstable();
        // A segment that a run covers is not folded again, so its table would lack the links to earlier ones.
        let covered = live.directory.to.segment();
        if let Some((facts, table)) = old.filter(|(facts, _)| facts.header.number > covered) {
            live.add_table(table, facts.binding());
        }
        let number = active.header.number;
        live.add_table(active.table, active.header.binding());
        {
            let mut state = shared.state();
            state.live = live;
            state.unindexed = unindexed;
            state.doomed = doomed;
        }
        replay_behind_chain(shared, &ended, Some(number))?;
        let origin = Origin {
            store: active.header.store,
            epoch: active.epoch,
            padded: active.header.padded,
            unflushed_bytes: shared.options.unflushed_bytes,
            tail: active.tail,
            chain: active.chain,
            space: Space::new(&active.header, active.prepared, shared.options.segment_bytes),
            control: ControlSlot { directory_to, ..shared.control() },
            index_at: active.index_at,
            index_from: active.index_from,
        };
        shared.state().commit = Some(CommitState::new(origin));
        Ok(())
    }
}

fn keep(disk: &dyn Disk, name: &str, bytes: &[u8]) -> Result<()> {
    if disk.exists(name)? {
        disk.unlink(name)?;
    }
    let file = disk.create_excl(name)?;
    let written = file.write_at(&[bytes], 0).and_then(|()| file.sync_file());
    if let Err(error) = written {
        let _ = disk.unlink(name);
        return Err(error);
    }
    disk.sync_dir(names::QUARANTINE)
}

/// As many segments may be missing; more is a number that no store reached.
const MOST_MISSING: usize = 1 << 16;

/// Members of the live set whose file is not there.
///
/// # Errors
/// `Corrupt`: there are more of them than any store loses, so CONTROL or LIVE belongs to another one.
pub(crate) fn missing_members(survey: &Survey, live: &LiveSet, control: ControlSlot) -> Result<Vec<u32>> {
    let highest = survey.segments.last().copied().unwrap_or(0).max(control.active);
    let known: BTreeSet<u32> =
        live.damage.iter().filter(|d| d.reason == DamageReason::MissingFile).map(|d| d.segment).collect();
    let missing: Vec<u32> = live
        .live(highest)
        .filter(|number| survey.segments.binary_search(number).is_err() && !known.contains(number))
        .take(MOST_MISSING + 1)
        .collect();
    if missing.len() <= MOST_MISSING {
        return Ok(missing);
    }
    let text = format!(
        "{} names segment {highest}, and more than {MOST_MISSING} segments up to it are not there; \
         put this store's own file back",
        names::CONTROL
    );
    Err(Error::corrupt(names::CONTROL, 0, text))
}

/// The number of a new segment: above every one that is there, was there, or cannot be read.
fn number_behind(highest: u32, missing: &[u32]) -> u32 {
    missing.iter().copied().max().unwrap_or(0).max(highest).saturating_add(1)
}

/// How many session ids whole segments could have handed out that nothing else tells of (F12).
fn lost_ids(missing: &[u32]) -> u64 {
    (missing.len() as u64).saturating_mul(u64::from(u32::MAX) / 16)
}

fn whole_file(segment: u32, reason: DamageReason) -> LiveDamage {
    LiveDamage { segment, from: 0, to: u32::MAX, reason }
}

fn live_damage(spot: &BadSpot) -> LiveDamage {
    let damaged = damaged(spot);
    let reason = match spot.reason {
        Reason::ReadError => DamageReason::ReadError,
        Reason::Missing => DamageReason::MissingFile,
        _ => DamageReason::BadBytes,
    };
    let reason = if reason == DamageReason::MissingFile { DamageReason::BadBytes } else { reason };
    LiveDamage { segment: spot.segment, from: damaged.from, to: damaged.to, reason }
}

/// A known damage in words.
pub(crate) fn loss(damage: &LiveDamage) -> Loss {
    let message = match damage.reason {
        DamageReason::BadBytes => "acknowledged bytes do not validate",
        DamageReason::MissingFile => "the segment file is missing",
        DamageReason::ReadError => "the device returns a read error",
    };
    let length = if damage.to == u32::MAX { 0 } else { u64::from(damage.to.saturating_sub(damage.from)) };
    Loss {
        file: names::segment(damage.segment).into(),
        offset: u64::from(damage.from),
        length,
        message: message.into(),
    }
}

/// Scans the newest segment from its header on.
///
/// # Errors
/// Its header is damaged beyond repair, it is of another version, or it cannot be opened.
pub(crate) fn scan_newest(shared: &Shared, number: u32, control: ControlSlot) -> Result<Newest> {
    let mut bad = Vec::new();
    let (header, header_crc, hurt) = super::header::read(shared, number, &control)?;
    let file = shared.files.readable(number)?;
    if hurt {
        bad.push(BadSpot { segment: number, from: 0, to: 512, reason: Reason::Header });
    }
    let durable = if control.store == header.store && control.durable.segment() == number {
        control.durable.offset()
    } else {
        0
    };
    let indexed = index_frames::load_or_begin(file.as_ref(), &header, header_crc, &control);
    let plan = ScanPlan {
        number,
        binding: header.binding(),
        capacity: header.capacity,
        header_crc,
        max_epoch: u64::MAX,
        from: indexed.from,
        chain: indexed.chain,
        epoch: indexed.epoch,
        end: None,
        durable,
        stop: None,
    };
    let mut table = indexed.table;
    let mut end = scan(file, &plan, &mut |found| {
        match found {
            Found::Frame(view) => {
                for spot in feed(&mut table, view) {
                    table.add_damage(damaged(&spot));
                    bad.push(spot);
                }
            }
            Found::Bad(spot) => {
                table.add_damage(damaged(&spot));
                bad.push(spot);
            }
        }
        Ok(())
    })?;
    // Without the prepared zeros behind the end: they are no part of the log.
    end.bytes_read = indexed.bytes.saturating_add(u64::from(end.end.saturating_sub(indexed.from)));
    Ok(Newest { header, header_crc, table, index_at: indexed.at, index_from: indexed.from, end, bad })
}
