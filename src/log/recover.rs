//! Opening a log: scan the newest segment, plan, apply (P1), and bring the index up to date.
//!
//! The apply is idempotent and may crash anywhere: what decides is the header of the next segment (or the
//! continue mark), which is durable before anything that relies on it. Acknowledged bytes are never cut, and
//! damage never moves the end of the log.

mod active;
mod damage;
mod newest;

use std::sync::Arc;

use crate::disk::{Disk, DiskFile, FsKind};
use crate::error::{Error, ErrorKind, Result};
use crate::format::index::SegmentTable;
use crate::format::{
    ControlSlot, DamageReason, FIRST_FRAME, LiveDamage, LiveSet, LockInfo, Lsn, PAGE, SegmentHeader, State,
    StoreId, names,
};
use crate::mutation::{self, Mutation};
use crate::rt::Runtime;

use crate::log::commit_state::CommitState;
use crate::log::create::{complete_store, put_live, put_new_control};
use crate::log::directory::open_chain;
use crate::log::fold::replay_behind_chain;
use crate::log::live::LiveIndex;
use crate::log::rebuild::plan;
use crate::log::report::RecoveryReport;
use crate::log::scan::{Found, add_spot, scan};
use crate::log::segments::{SegmentFacts, Segments};
use crate::log::shared::{Parts, Shared};
use crate::log::space::Space;
use crate::log::survey::Survey;
use crate::log::types::LogOptions;
use crate::log::work::Origin;

pub(crate) use damage::{live_damage, loss, missing_members, whole_file};
pub(crate) use newest::{Newest, scan_newest};

/// Prepared before an open returns, so that a small write needs no background.
const FIRST_PREPARED: u32 = 1 << 20;
/// Prepared at least, on a full disk: the header and room for marks.
const LEAST_PREPARED: u32 = 4096;

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

/// Whether a range says nothing that one before it does not say, which may become longer for that.
fn joins(known: &mut LiveDamage, next: &LiveDamage) -> bool {
    let whole = known.to == u32::MAX && next.from > known.from;
    let same = known.segment == next.segment && (next.from == known.from || next.to <= known.to) && !whole;
    if same {
        known.to = known.to.max(next.to);
    }
    same
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
        let epoch = self.next_epoch(control, newest.as_ref())?;
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
        if control.live_version > 1 || self.survey.control.is_none() {
            // It named damage, or may have: only reading everything finds that again.
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
            let mut bad = Vec::new();
            scan(self.shared.files.readable(number)?, &plan(&facts), &mut |found| {
                if let Found::Bad(spot) = found {
                    add_spot(&mut bad, spot);
                }
                Ok(())
            })?;
            damage.extend(bad.iter().map(live_damage));
        }
        Ok(damage)
    }

    fn next_epoch(&self, control: ControlSlot, newest: Option<&Newest>) -> Result<u64> {
        let seen = newest.map_or(0, |newest| newest.end.last_epoch.max(newest.header.epoch));
        let highest = self.survey.epoch.max(control.epoch).max(seen);
        if mutation::is_on(Mutation::ReuseEpoch) {
            return Ok(highest.max(1));
        }
        highest.checked_add(1).ok_or_else(|| {
            let text = "epoch 2^64 - 1 was seen, which no writer reaches; open for reading";
            Error::corrupt(names::SEGMENTS, 0, text)
        })
    }

    /// A sync alone proves nothing about bytes above the highest witness (after a failed fsync the kernel calls
    /// lost pages clean), so those are written again, in place, and synced before anything relies on them.
    fn sync_and_rewrite(&self, newest: Option<&Newest>) -> Result<()> {
        let Some(newest) = newest else { return Ok(()) };
        Shared::unlocked();
        let file = self.shared.files.writable(newest.header.number)?;
        if !mutation::is_on(Mutation::NoSyncAtRecovery) {
            file.sync_file()?;
        }
        if !mutation::is_on(Mutation::NoDirSyncAtRecovery) {
            self.shared.disk.sync_dir(names::SEGMENTS)?;
        }
        let mut at = newest.end.witnessed.max(FIRST_FRAME);
        if at >= newest.end.end || mutation::is_on(Mutation::NoRewriteAtRecovery) {
            return Ok(());
        }
        let mut buffer = vec![0; 1 << 20];
        while at < newest.end.end {
            let left = usize::try_from(newest.end.end - at).unwrap_or(buffer.len()).min(buffer.len());
            let piece = buffer.get_mut(..left).unwrap_or_default();
            rewrite(file.as_ref(), piece, u64::from(at))?;
            at = at.saturating_add(u32::try_from(left).unwrap_or(u32::MAX));
        }
        if mutation::is_on(Mutation::NoSyncAtRecovery) { Ok(()) } else { file.sync_data() }
    }

    fn remember_damage(&mut self, mut live: LiveSet, mut damage: Vec<LiveDamage>) -> Result<()> {
        damage.sort_by_key(|damage| (damage.segment, damage.from, damage.to));
        damage.dedup_by(|next, known| joins(known, next));
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
            if !mutation::is_on(Mutation::DamageNotRecorded) {
                live.version = live.version.saturating_add(1);
                put_live(self.shared.disk.as_ref(), &live)?;
            }
        }
        self.shared.set_live_set(live);
        Ok(())
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

/// Writes again what stands from `at` on, as far as it can be read: what cannot was found to be damage before.
fn rewrite(file: &dyn DiskFile, buffer: &mut [u8], at: u64) -> Result<()> {
    match file.read_at(buffer, at) {
        Ok(read) => file.write_at(&[buffer.get(..read).unwrap_or_default()], at),
        Err(error) => {
            tracing::warn!(%error, "page by page around a read error");
            let first = usize::try_from(at.next_multiple_of(PAGE as u64) - at).unwrap_or(0).min(buffer.len());
            let (head, rest) = buffer.split_at_mut(first);
            let pages = rest.chunks_mut(PAGE).zip((at + first as u64..).step_by(PAGE));
            for (page, at) in std::iter::once((head, at)).chain(pages) {
                if let Ok(read) = file.read_at(page, at) {
                    file.write_at(&[page.get(..read).unwrap_or_default()], at)?;
                }
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_say_nothing_new_join_the_one_before() {
        let range = |segment, from, to| LiveDamage { segment, from, to, reason: DamageReason::BadBytes };
        let whole = whole_file(2, DamageReason::MissingFile);
        let mut all = vec![
            range(1, 10, 20),
            range(1, 10, 40),
            range(1, 30, 40),
            range(1, 40, 50),
            whole,
            range(2, 30, 40),
        ];
        all.dedup_by(|next, known| joins(known, next));
        assert_eq!(all, [range(1, 10, 40), range(1, 40, 50), whole, range(2, 30, 40)]);
    }
}
