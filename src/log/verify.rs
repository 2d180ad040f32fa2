//! Verification: reads everything and returns all findings, in file order. Changes nothing.
//!
//! Each finding names file and offset, and the session and seqs as far as surviving bytes prove them (G3): an index
//! that is whole tells which records stood in a damaged range, and contiguous seqs tell which are missing.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::directory::{RunFile, RunKey};
use crate::format::index::{SegmentKey, SegmentTable};
use crate::format::{
    Control, DamageReason, DamagedBatch, FrameView, LiveSet, Lsn, Meta, SEGMENT_HEADER_LEN, names, payload,
};

use super::follow::writer_lives;
use super::rebuild::{self, damaged, feed};
use super::recover::missing_members;
use super::report::{Finding, VerifySummary};
use super::scan::{BadSpot, Found, ScanEnd, ScanPlan, scan};
use super::segments::{Index, SegmentFacts, open_immutable, open_index, read_header_checked};
use super::shared::Shared;
use super::survey::{Survey, list, read_whole};

/// A verification in progress.
struct Verifier<'a> {
    shared: &'a Shared,
    found: &'a mut dyn FnMut(Finding),
    summary: VerifySummary,
    /// Damage that was reported from the bytes themselves.
    seen: Vec<(u32, u32)>,
}

/// The newest segment, which has no successor to tell its end.
struct Newest {
    plan: ScanPlan,
    known: Option<u32>,
}

impl Shared {
    /// See the module.
    pub(crate) fn verify(&self, found: &mut dyn FnMut(Finding)) -> Result<VerifySummary> {
        let mut verifier =
            Verifier { shared: self, found, summary: VerifySummary::default(), seen: Vec::new() };
        let survey = Survey::take(self.disk.as_ref())?;
        if verifier.half_created(&survey) {
            return Ok(verifier.summary);
        }
        verifier.fixed_files()?;
        let ended = self.segments.read().numbers();
        for number in ended {
            verifier.ended(number)?;
        }
        verifier.newest()?;
        verifier.lost_segments(&survey)?;
        verifier.known_damage();
        verifier.runs()?;
        verifier.quarantine()?;
        verifier.summary.sessions = self.sessions()?.len() as u64;
        Ok(verifier.summary)
    }
}

fn finding(kind: &'static str, file: &str, message: impl Into<String>) -> Finding {
    Finding {
        kind,
        note: false,
        file: Some(file.into()),
        offset: None,
        length: None,
        session: None,
        from_seq: None,
        to_seq: None,
        message: message.into(),
    }
}

impl Verifier<'_> {
    fn report(&mut self, finding: Finding) {
        if !finding.note {
            self.summary.findings = self.summary.findings.saturating_add(1);
        }
        (self.found)(finding);
    }

    /// What the next opening completes is no damage; there is nothing else to verify then.
    fn half_created(&mut self, survey: &Survey) -> bool {
        if !survey.is_half_created() {
            return false;
        }
        let text =
            "the creation of this store was cut short before it held anything; the next writer completes it";
        let note = Finding { file: None, ..finding("half-created", names::CONTROL, text) };
        self.report(Finding { note: true, ..note });
        true
    }

    fn fixed_files(&mut self) -> Result<()> {
        match read_whole(self.shared.disk.as_ref(), names::CONTROL)? {
            None => self.report(finding("control", names::CONTROL, "missing; the next writer rebuilds it")),
            Some(bytes) => {
                let control = Control::decode(&bytes);
                if control.newest().is_some_and(|slot| slot.store != self.shared.live_set().store) {
                    let text = "it belongs to another store; the next writer rebuilds it";
                    self.report(finding("control", names::CONTROL, text));
                }
                for (offset, fault) in control.damaged() {
                    let text = format!("{fault}; the next writer rebuilds it");
                    self.report(Finding { offset: Some(offset), ..finding("control", names::CONTROL, text) });
                }
            }
        }
        match read_whole(self.shared.disk.as_ref(), names::LIVE)?.as_deref().map(LiveSet::decode) {
            Some(Ok(_)) => {}
            Some(Err(fault)) => self.report(finding("live-set", names::LIVE, fault.to_string())),
            None => self.report(finding("live-set", names::LIVE, "missing")),
        }
        Ok(())
    }

    fn ended(&mut self, number: u32) -> Result<()> {
        let name = names::segment(number);
        let segments = Arc::clone(&self.shared.segments.read());
        let facts = match segments.facts(self.shared, number) {
            Ok(facts) => facts,
            Err(error) if error.is_not_found() => {
                self.seen.push((number, 0));
                self.report(finding("missing", &name, "the segment file is missing, its events are lost"));
                return Ok(());
            }
            Err(error) if error.is_corruption() => {
                self.report(Finding { offset: Some(0), ..finding("damage", &name, error.to_string()) });
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.header(number, &name)?;
        self.segment(&facts.key(), &rebuild::plan(&facts), Some(facts.as_ref()))?;
        self.index(&facts);
        Ok(())
    }

    fn header(&mut self, number: u32, name: &str) -> Result<()> {
        let (_, _, repaired) = read_header_checked(self.shared, number)?;
        if repaired {
            self.seen.push((number, 0));
            let text = self.header_fault(number, name);
            self.report(Finding { offset: Some(0), length: Some(512), ..finding("damage", name, text) });
        }
        Ok(())
    }

    /// What is wrong with a header that could be made good.
    fn header_fault(&self, number: u32, name: &str) -> &'static str {
        let mut sector = [0; SEGMENT_HEADER_LEN];
        let read = self.shared.files.readable(number).and_then(|file| file.read_at(&mut sector, 0));
        if read.is_err() {
            return "the sector of the segment header cannot be read; it is put together from elsewhere";
        }
        if rebuild::decode_header(&sector, name).is_ok() {
            return "a bit of the segment header is flipped; it is read as its checksum tells";
        }
        if sector.iter().all(|byte| *byte == 0) {
            return "the sector of the segment header is zero, lost or never written; it is put together from elsewhere";
        }
        "the segment header does not validate; it is put together from elsewhere"
    }

    /// Segments that should be there and were not read: without a file, or with a header that nothing can make good.
    fn lost_segments(&mut self, survey: &Survey) -> Result<()> {
        let live = self.shared.live_set();
        for number in missing_members(survey, &live, survey.control.unwrap_or_default())? {
            if !self.seen.contains(&(number, 0)) {
                self.seen.push((number, 0));
                let text = "the segment file is missing, its events are lost";
                self.report(finding("missing", &names::segment(number), text));
            }
        }
        for number in &survey.segments {
            if self.seen.contains(&(*number, 0)) || self.shared.is_segment(*number) {
                continue;
            }
            if let Err(error) = read_header_checked(self.shared, *number)
                && error.is_corruption()
            {
                self.seen.push((*number, 0));
                let text = format!("{error}; its events are lost");
                self.report(Finding { offset: Some(0), ..finding("damage", &names::segment(*number), text) });
            }
        }
        Ok(())
    }

    fn newest(&mut self) -> Result<()> {
        let Some(newest) = self.shared.newest_plan()? else { return Ok(()) };
        let name = names::segment(newest.plan.number);
        self.header(newest.plan.number, &name)?;
        let key = SegmentKey {
            store: newest.plan.binding.store,
            segment: newest.plan.number,
            salt: newest.plan.binding.salt,
        };
        let end = self.segment(&key, &newest.plan, None)?;
        if newest.known.is_none() && end.residue_end > end.end {
            let text = "a torn tail that no writer has cut yet; the next one does, and keeps the bytes aside";
            let length = u64::from(end.residue_end.saturating_sub(end.end));
            let note = finding("torn-tail", &name, text);
            self.report(Finding { note: true, offset: Some(end.end.into()), length: Some(length), ..note });
        }
        Ok(())
    }

    /// Scans one segment; decodes every event of it.
    fn segment(
        &mut self,
        key: &SegmentKey,
        plan: &ScanPlan,
        facts: Option<&SegmentFacts>,
    ) -> Result<ScanEnd> {
        let mut table = SegmentTable::new(*key);
        let mut bad = Vec::new();
        let mut undecodable = Vec::new();
        let mut batches = Vec::new();
        let file = self.shared.files.readable(plan.number)?;
        let summary = &mut self.summary;
        let end = scan(file, plan, &mut |found| {
            match found {
                Found::Frame(view) => {
                    summary.frames = summary.frames.saturating_add(1);
                    batches.extend(hurt_batches(view));
                    check_events(view, summary, &mut undecodable);
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
        self.summary.segments = self.summary.segments.saturating_add(1);
        self.summary.bytes = self.summary.bytes.saturating_add(end.bytes_read);
        let name = names::segment(plan.number);
        for (at, message) in undecodable {
            self.report(Finding { offset: Some(at.offset().into()), ..finding("damage", &name, message) });
        }
        for spot in bad {
            self.damage(&spot, &table, facts)?;
        }
        for (at, batch, left) in batches {
            self.batch(&name, at, &batch, &left)?;
        }
        Ok(end)
    }

    /// One damaged range, for each session that it provably hit.
    fn damage(&mut self, spot: &BadSpot, table: &SegmentTable, facts: Option<&SegmentFacts>) -> Result<()> {
        self.seen.push((spot.segment, spot.from));
        let name = names::segment(spot.segment);
        let base = Finding {
            offset: Some(spot.from.into()),
            length: Some(spot.to.saturating_sub(spot.from).into()),
            ..finding("damage", &name, spot.reason.text())
        };
        let hit = match facts.and_then(|facts| open_index(self.shared, facts).ok()) {
            Some(file) => by_index(&Index::File(file), spot)?,
            None => by_gaps(table, spot),
        };
        if hit.is_empty() {
            let text = format!("{}; which sessions it hit is unknown", spot.reason.text());
            self.report(Finding { message: text, ..base });
            return Ok(());
        }
        for (dense, (from, to)) in hit {
            let session = self.shared.session(dense)?.map(|entry| entry.id.to_string());
            self.report(Finding { session, from_seq: Some(from), to_seq: Some(to), ..base.clone() });
        }
        Ok(())
    }

    /// A batch that lost a member: what is left of it stays readable, and is not all that was appended at once (F7).
    /// A note where the damaged record may as well have stood alone.
    fn batch(&mut self, name: &str, at: Lsn, batch: &DamagedBatch, left: &Hit) -> Result<()> {
        let text = if batch.certain {
            "a batch lost a part; these of its events are left"
        } else {
            "these events may be what is left of a batch that the damaged record belonged to"
        };
        let note = !batch.certain;
        let base = Finding { note, offset: Some(at.offset().into()), ..finding("batch", name, text) };
        for (dense, (from, to)) in left {
            let session = self.shared.session(*dense)?.map(|entry| entry.id.to_string());
            self.report(Finding { session, from_seq: Some(*from), to_seq: Some(*to), ..base.clone() });
        }
        Ok(())
    }

    fn index(&mut self, facts: &SegmentFacts) {
        let name = names::index(facts.header.number);
        let checked = open_index(self.shared, facts)
            .and_then(|file| file.verify().map_err(|fault| Error::corrupt(&name, fault.offset(), fault)));
        match checked {
            Ok(()) => {}
            Err(error) if error.is_not_found() => {
                let note = finding("index", &name, "not there yet; readers rebuild it in memory");
                self.report(Finding { note: true, ..note });
            }
            Err(error) => {
                let text = format!("{error}; readers rebuild it from the segment, no event is lost");
                self.report(Finding { offset: error.offset(), ..finding("index", &name, text) });
            }
        }
    }

    /// Damage that LIVE remembers and that the bytes do not show (any more).
    fn known_damage(&mut self) {
        for known in self.shared.live_set().damage {
            if self.seen.contains(&(known.segment, known.from)) {
                continue;
            }
            let loss = super::recover::loss(&known);
            let text = format!("{} (found when the store was opened, now or earlier)", loss.message);
            let name = names::segment(known.segment);
            let length = Some(loss.length).filter(|length| *length > 0);
            let kind = if known.reason == DamageReason::MissingFile { "missing" } else { "damage" };
            self.report(Finding { offset: Some(loss.offset), length, ..finding(kind, &name, text) });
        }
    }

    fn runs(&mut self) -> Result<()> {
        for name in list(self.shared.disk.as_ref(), names::DIRECTORY)? {
            let path = format!("{}/{name}", names::DIRECTORY);
            let Some((from, to)) = names::parse_run(&name) else {
                let note = finding("leftover", &path, "no directory run; left alone");
                self.report(Finding { note: true, ..note });
                continue;
            };
            let key = RunKey { store: self.shared.live_set().store, from, to };
            let checked = open_immutable(self.shared, &path).and_then(|bytes| {
                let run = RunFile::open(bytes, &key).and_then(|run| run.verify());
                run.map_err(|fault| Error::corrupt(&path, fault.offset(), fault))
            });
            // Merged into another one and removed since it was listed: the indexer works on meanwhile.
            if let Err(error) =
                checked.or_else(|error| if error.is_not_found() { Ok(()) } else { Err(error) })
            {
                let text = format!("{error}; what it held is replayed from the segments, nothing is lost");
                self.report(finding("directory", &path, text));
            }
        }
        Ok(())
    }

    fn quarantine(&mut self) -> Result<()> {
        for name in list(self.shared.disk.as_ref(), names::QUARANTINE)? {
            let path = format!("{}/{name}", names::QUARANTINE);
            let note = finding("quarantine", &path, "bytes of a torn tail that a recovery cut and kept");
            self.report(Finding { note: true, ..note });
        }
        Ok(())
    }
}

fn check_events(view: &FrameView<'_>, summary: &mut VerifySummary, bad: &mut Vec<(Lsn, String)>) {
    for record in view.records().flatten() {
        let Meta::Event(meta) = &record.meta else { continue };
        match payload::decode(meta, record.payload) {
            Ok(_) => summary.events = summary.events.saturating_add(1),
            Err(why) => bad.push((record.lsn, format!("an event that cannot be read: {why}"))),
        }
    }
}

/// Batches that lost a member, or may have if they had more than the damaged record: the frame, and what is left.
fn hurt_batches(view: &FrameView<'_>) -> Vec<(Lsn, DamagedBatch, Hit)> {
    let batches = view.damaged_batches().into_iter().filter(|batch| batch.records.len() > 1);
    let left = |batch: DamagedBatch| {
        let mut hit = Hit::new();
        let mut index = 0u32;
        for item in view.records() {
            let count = item.as_ref().map_or_else(|damage| damage.count, |_| 1);
            if let Ok(record) = item
                && batch.records.contains(&index)
                && let Meta::Event(meta) = &record.meta
            {
                add(&mut hit, meta.dense, meta.seq);
            }
            index = index.saturating_add(count);
        }
        (view.header.lsn, batch, hit)
    };
    batches.map(left).collect()
}

/// First and last lost seq by session.
type Hit = BTreeMap<u64, (u64, u64)>;

fn add(hit: &mut Hit, dense: u64, seq: u64) {
    let range = hit.entry(dense).or_insert((seq, seq));
    range.0 = range.0.min(seq);
    range.1 = range.1.max(seq);
}

/// What a whole index says stood in the range. An index that was built after the damage knows of nothing there, but of
/// what is missing.
fn by_index(index: &Index, spot: &BadSpot) -> Result<Hit> {
    let (mut hit, mut gaps) = (Hit::new(), Hit::new());
    for part in index.parts()? {
        let offsets = index.offsets(&part, 0, part.count)?;
        add_gaps(&mut gaps, part.dense, (part.first_seq..).zip(offsets.iter().copied()), spot);
        for (seq, offset) in (part.first_seq..).zip(offsets) {
            if offset >= spot.from && offset < spot.to {
                add(&mut hit, part.dense, seq);
            }
        }
    }
    Ok(if hit.is_empty() { gaps } else { hit })
}

/// What gaps in the seqs prove.
fn by_gaps(table: &SegmentTable, spot: &BadSpot) -> Hit {
    let mut hit = Hit::new();
    for session in table.sessions() {
        let part = session.part();
        let events = (part.first_seq..).zip(session.offsets().iter().copied());
        add_gaps(&mut hit, part.dense, events, spot);
    }
    hit
}

/// The events that are missing between two neighbours on either side of the range.
fn add_gaps(hit: &mut Hit, dense: u64, events: impl Iterator<Item = (u64, u32)>, spot: &BadSpot) {
    let (mut before, mut missing) = (0, None);
    for (seq, offset) in events {
        if offset == 0 {
            missing = Some((missing.map_or(seq, |(first, _)| first), seq));
            continue;
        }
        if let Some((first, last)) = missing.take()
            && before < spot.to
            && offset > spot.from
        {
            add(hit, dense, first);
            add(hit, dense, last);
        }
        before = offset;
    }
}

impl Shared {
    /// How to scan the segment without a successor: up to what is durable while a writer lives, else to its end.
    fn newest_plan(&self) -> Result<Option<Newest>> {
        let own = self.state().commit.as_ref().map(|commit| commit.durable());
        let (number, stop, durable) = match own {
            Some(durable) => (durable.segment(), Some(durable.offset()), durable.offset()),
            None => {
                let Some(follow) = self.follow.lock().clone() else { return Ok(None) };
                let control = self.control();
                let number = follow.header.number;
                let durable = if control.durable.segment() == number { control.durable.offset() } else { 0 };
                (number, writer_lives(self).then_some(follow.at), durable)
            }
        };
        let (header, header_crc, _) = read_header_checked(self, number)?;
        let plan = ScanPlan {
            number,
            binding: header.binding(),
            capacity: header.capacity,
            max_epoch: u64::MAX,
            from: crate::format::FIRST_FRAME,
            chain: header_crc,
            epoch: header.epoch,
            end: None,
            durable,
            stop,
        };
        Ok(Some(Newest { plan, known: stop }))
    }
}
