//! Reading a store without being its writer: beside a live one, or after it is gone (D4).
//!
//! A follower takes no lock and writes nothing. While a writer holds the lock it reads up to the durable LSN that
//! CONTROL names; with none it scans on as recovery would, in memory.

use std::sync::Arc;

use crate::disk::Disk;
use crate::error::Result;
use crate::format::{Control, ControlSlot, DamageReason, FIRST_FRAME, LiveSet, Lsn, SegmentHeader, names};
use crate::mutation::{self, Mutation};
use crate::rt::Runtime;

use super::directory::open_chain;
use super::fold::replay_behind_chain;
use super::index_frames::load_or_begin;
use super::live::LiveIndex;
use super::notes::note_of;
use super::rebuild::{damaged, refused_record};
use super::recover::{live_damage, loss, missing_members, no_store, whole_file};
use super::report::{Cut, Loss, RecoveryReport};
use super::scan::{BadSpot, Found, ScanEnd, ScanPlan, scan};
use super::segments::{EndOf, SegmentFacts, Segments, read_header, read_header_checked};
use super::shared::{Parts, Shared};
use super::survey::{Survey, read_whole};
use super::types::{LogOptions, Note};

/// How far a follower has read.
#[derive(Debug, Clone)]
pub(crate) struct Follow {
    pub header: SegmentHeader,
    pub header_crc: u32,
    pub at: u32,
    pub chain: u32,
    pub epoch: u64,
}

/// Opens for reading.
///
/// # Errors
/// There is no store, or it is of another version.
pub(crate) fn open_reader(
    disk: Arc<dyn Disk>,
    rt: Arc<dyn Runtime>,
    options: LogOptions,
) -> Result<(Arc<Shared>, RecoveryReport)> {
    let mut survey = Survey::take(disk.as_ref())?;
    if survey.is_empty() {
        return Err(no_store(disk.as_ref()));
    }
    let shared = Arc::new(Shared::new(Parts { disk, rt, options, lock: None }));
    let control = survey.control.unwrap_or_default();
    let live_set = survey.live.take().unwrap_or_else(|| LiveSet {
        store: control.store,
        version: 1,
        ..LiveSet::default()
    });
    let mut report = RecoveryReport { clean: true, ..RecoveryReport::default() };
    report.notes.append(&mut survey.notes);
    report.losses = live_set.damage.iter().map(loss).collect();
    let mut gone = Vec::new();
    for number in missing_members(&survey, &live_set, control)? {
        report.clean = false;
        let file = names::segment(number).into();
        report.losses.push(Loss {
            file,
            offset: 0,
            length: 0,
            message: "the segment file is missing".into(),
        });
        gone.push(whole_file(number, DamageReason::MissingFile));
    }
    shared.set_live_set(live_set);
    gone.into_iter().for_each(|damage| shared.note_damage(damage));
    shared.set_control(control);
    let mut ended = survey.segments.clone();
    let newest = newest_readable(&shared, &mut ended, &mut report)?;
    *shared.segments.write() = Arc::new(Segments::new(ended.clone()));
    let chain = open_chain(&shared, newest.unwrap_or(0));
    let next_dense = chain.next_dense();
    shared.state().live = LiveIndex::new(chain, next_dense);
    let from = match newest {
        Some(number) => enter(&shared, number, &control)?,
        None => 0,
    };
    // With what the index frames of the followed segment say, if there are any.
    replay_behind_chain(&shared, &ended, newest)?;
    if let Some(number) = newest {
        let end = shared.advance(&mut report)?;
        report.scanned_bytes = end.as_ref().map_or(0, |end| u64::from(end.end.saturating_sub(from)));
        note_tail(&shared, number, end, &mut report);
    }
    Ok((shared, report))
}

/// The newest segment with a header that can be used; those above it are lost.
fn newest_readable(
    shared: &Shared,
    ended: &mut Vec<u32>,
    report: &mut RecoveryReport,
) -> Result<Option<u32>> {
    while let Some(number) = ended.pop() {
        let message = match read_header_checked(shared, number) {
            Ok((_, _, false)) => return Ok(Some(number)),
            Ok((_, _, true)) => {
                "the segment header is damaged; it was put together from elsewhere".to_owned()
            }
            Err(error) if error.is_corruption() => error.to_string(),
            Err(error) => return Err(error),
        };
        let usable = read_header_checked(shared, number).is_ok();
        report.clean = false;
        let length = if usable { u64::from(FIRST_FRAME) } else { 0 };
        let file = names::segment(number).into();
        report.losses.push(Loss { file, offset: 0, length, message });
        if usable {
            return Ok(Some(number));
        }
        shared.note_damage(whole_file(number, DamageReason::BadBytes));
    }
    Ok(None)
}

fn note_tail(shared: &Shared, number: u32, end: Option<ScanEnd>, report: &mut RecoveryReport) {
    let Some(end) = end else { return };
    report.clean &= end.closed && !end.damaged;
    if end.residue_end > end.end && !writer_lives(shared) {
        report.cut.push(Cut {
            file: names::segment(number).into(),
            offset: u64::from(end.end),
            length: u64::from(end.residue_end.saturating_sub(end.end)),
            kept_in: None,
            may_have_been_acknowledged: end.doubtful,
        });
    }
}

pub(crate) fn writer_lives(shared: &Shared) -> bool {
    // Not knowing counts as a writer: reading less is safe.
    shared.disk.query_lock(names::LOCK).map_or(true, |holder| holder.is_some())
}

/// Makes `number` the segment that is followed, and says from where on it is to be scanned.
fn enter(shared: &Shared, number: u32, control: &ControlSlot) -> Result<u32> {
    let (header, header_crc) = read_header(shared, number)?;
    let file = shared.files.readable(number)?;
    let indexed = load_or_begin(file.as_ref(), &header, header_crc, control);
    shared.state().live.add_table(indexed.table, header.binding());
    let (at, chain, epoch) = (indexed.from, indexed.chain, indexed.epoch);
    *shared.follow.lock() = Some(Follow { at, chain, epoch, header, header_crc });
    Ok(at)
}

impl Shared {
    /// Takes in what became durable since. True if anything changed.
    pub(crate) fn refresh(&self) -> Result<bool> {
        if self.state().commit.is_some() {
            return Ok(false);
        }
        if let Some(bytes) = read_whole(self.disk.as_ref(), names::CONTROL)?
            && let Some(slot) = Control::decode(&bytes).newest()
        {
            self.set_control(slot);
        }
        let mut changed = false;
        let mut report = RecoveryReport::default();
        loop {
            let before = self.follow.lock().as_ref().map(|follow| (follow.header.number, follow.at));
            let Some((number, at)) = before else { break };
            self.advance(&mut report)?;
            changed |= self.follow.lock().as_ref().is_some_and(|follow| follow.at > at);
            let next = number.saturating_add(1);
            if !self.disk.exists(&names::segment(next))? {
                break;
            }
            self.leave(next)?;
            changed = true;
        }
        self.renew_directory();
        Ok(changed)
    }

    /// The followed segment has a successor: it has ended where that one says.
    fn leave(&self, next: u32) -> Result<()> {
        let (header, _) = read_header(self, next)?;
        let Some(follow) = self.follow.lock().clone() else { return Ok(()) };
        self.read_to(&follow, Some(header.previous_end), None, 0, &mut RecoveryReport::default())?;
        let end = EndOf { end: header.previous_end, chain: header.previous_chain, why: header.previous_why };
        let facts = SegmentFacts { header: follow.header, header_crc: follow.header_crc, end };
        self.segments.read().add_ended(follow.header.number, facts);
        // What its index frames say is not in the entries yet: it is read from the beginning.
        enter(self, next, &ControlSlot::default()).map(drop)
    }

    /// Reads on in the followed segment, as far as it may.
    fn advance(&self, report: &mut RecoveryReport) -> Result<Option<ScanEnd>> {
        let Some(follow) = self.follow.lock().clone() else { return Ok(None) };
        let control = self.control();
        let durable = durable_in(&control, &follow);
        let beside = writer_lives(self) && !mutation::is_on(Mutation::FollowerReadsAhead);
        let stop = if beside { Some(durable) } else { None };
        if stop.is_some_and(|stop| stop <= follow.at) {
            return Ok(None);
        }
        self.read_to(&follow, None, stop, durable, report).map(Some)
    }

    fn read_to(
        &self,
        follow: &Follow,
        end: Option<u32>,
        stop: Option<u32>,
        durable: u32,
        report: &mut RecoveryReport,
    ) -> Result<ScanEnd> {
        let number = follow.header.number;
        let plan = ScanPlan {
            number,
            binding: follow.header.binding(),
            capacity: follow.header.capacity,
            max_epoch: u64::MAX,
            from: follow.at,
            chain: follow.chain,
            epoch: follow.epoch,
            end,
            durable: durable.max(end.unwrap_or(0)),
            stop,
        };
        let file = self.files.readable(number)?;
        let scanned = scan(file, &plan, &mut |found| match found {
            Found::Frame(view) => {
                for spot in self.take_frame(view)? {
                    self.note_loss(&spot, report);
                }
                Ok(())
            }
            Found::Bad(spot) => {
                self.note_loss(&spot, report);
                Ok(())
            }
        })?;
        if let Some(follow) = self.follow.lock().as_mut() {
            follow.at = scanned.end;
            follow.chain = scanned.chain;
            follow.epoch = scanned.last_epoch;
        }
        Ok(scanned)
    }

    fn note_loss(&self, spot: &BadSpot, report: &mut RecoveryReport) {
        let range = damaged(spot);
        self.note_damage(live_damage(spot));
        let loss = Loss {
            file: names::segment(spot.segment).into(),
            offset: u64::from(range.from),
            length: u64::from(range.to.saturating_sub(range.from)),
            message: spot.reason.text().into(),
        };
        match report.losses.last_mut() {
            Some(last) if last.goes_on_in(&loss) => last.length = last.length.saturating_add(loss.length),
            _ => report.losses.push(loss),
        }
        if let Some(table) = self.state().live.table_mut(spot.segment) {
            table.add_damage(range);
        }
    }

    /// Takes in a frame's records; the answer is those that no writer makes, which count as damage.
    fn take_frame(&self, view: &crate::format::FrameView<'_>) -> Result<Vec<BadSpot>> {
        let mut refused = Vec::new();
        for record in view.records().flatten() {
            let note = match note_of(&record) {
                Ok(Some(note)) => note,
                Ok(None) => continue,
                Err(_) => {
                    refused.push(refused_record(&record));
                    continue;
                }
            };
            let dense = note.dense();
            let creates = matches!(note, Note::Create { .. } | Note::Fork { .. });
            if !creates && !self.state().live.knows(dense) {
                match self.session(dense)? {
                    Some(entry) => drop(self.state().live.adopt(entry)),
                    None => self.state().live.adopt_orphan(dense),
                }
            }
            let taken = self.state().live.note(&note, record.lsn, record.stored_len);
            match taken {
                Err(error) if error.is_corruption() => refused.push(refused_record(&record)),
                other => other?,
            }
        }
        Ok(refused)
    }
}

/// The durable end within the followed segment: all of it once CONTROL names a later one.
fn durable_in(control: &ControlSlot, follow: &Follow) -> u32 {
    let number = follow.header.number;
    if control.store != follow.header.store || control.durable < Lsn::new(number, 0) {
        return 0;
    }
    if control.durable.segment() == number { control.durable.offset() } else { follow.at }
}
