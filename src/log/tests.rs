//! The log on the simulated disk, driven by the seeded runtime.

mod commit;
mod directory;
mod index_frames;
mod locking;
mod repair;
mod verify;

use super::*;
use crate::event::{Class, NewEvent, Time};
use crate::format::RecordDraft;
use crate::format::meta::{CreateMeta, Meta};
use crate::format::payload::{self, Parts};
use crate::testing::{SeededRuntime, SimDisk};

pub(super) struct Rig {
    pub(super) log: Log,
    pub(super) report: RecoveryReport,
}

pub(super) fn open(disk: &SimDisk, seed: u64, options: LogOptions) -> Rig {
    try_open(disk, seed, options).unwrap()
}

pub(super) fn try_open(disk: &SimDisk, seed: u64, options: LogOptions) -> Result<Rig> {
    let rt = Arc::new(SeededRuntime::new(seed));
    let (log, report) = Log::open_writer(Arc::new(disk.clone()), rt, options, true)?;
    Ok(Rig { log, report })
}

pub(super) fn small() -> LogOptions {
    LogOptions { segment_bytes: 64 << 10, ..LogOptions::default() }
}

pub(super) fn create(log: &Log, id: &str) -> (u64, Appended) {
    let dense = log.allocate_dense().unwrap();
    let header = format!(r#"{{"type":"session","version":0,"id":"{id}","createdAt":1}}"#);
    let mut bytes = Vec::new();
    payload::encode_session(id, &header, &mut bytes);
    let meta = Meta::Create(CreateMeta { more: false, staged: false, dense });
    let record = RecordDraft::new(bytes).seal(&meta);
    let note = Note::Create { dense, id: id.into(), header: header.as_str().into(), staged: false };
    (dense, append(log, vec![Entry { record, note }]))
}

pub(super) fn append(log: &Log, entries: Vec<Entry>) -> Appended {
    loop {
        match log.append(&entries) {
            Err(error) if error.is_backpressure() => log.wait_for_room(64).unwrap(),
            other => return other.unwrap(),
        }
    }
}

pub(super) fn event(dense: u64, seq: u64, text: &str, more: bool) -> Entry {
    let data = format!(r#"{{"turn":1,"step":1,"chunk":{{"type":"text-delta","index":0,"text":"{text}"}}}}"#);
    let new = NewEvent::raw("assistant/chunk", &data).unwrap();
    let now = Time::from_millis(1000 + i64::try_from(seq).unwrap());
    let mut bytes = Vec::new();
    let encoded = payload::encode(&Parts::of_new(&new, seq, &now), &mut bytes);
    let record = RecordDraft::new(bytes).seal(&Meta::Event(encoded.meta(dense, seq, more)));
    let note = Note::Event { dense, seq, class: Class::Chunk, op: None, time_ms: 1000 };
    Entry { record, note }
}

pub(super) fn texts(log: &Log, id: &str) -> Vec<String> {
    let entry = log.lookup(id).unwrap().unwrap();
    log.events(&entry, 0, u64::MAX).unwrap().map(|event| event.unwrap().data().as_str().to_owned()).collect()
}

#[test]
fn events_come_back_before_and_after_flush_close_and_reopen() {
    let disk = SimDisk::new();
    let rig = open(&disk, 1, small());
    assert!(rig.report.created);
    let (dense, _) = create(&rig.log, "a");
    for seq in 0..5 {
        append(&rig.log, vec![event(dense, seq, "before", false)]);
    }
    assert_eq!(texts(&rig.log, "a").len(), 5, "visible at once (A1)");
    let end = append(&rig.log, vec![event(dense, 5, "last", false)]).end;
    rig.log.flush(end, Durability::Durable).unwrap();
    assert_eq!(texts(&rig.log, "a").len(), 6);
    rig.log.close().unwrap();
    drop(rig);
    let rig = open(&disk, 2, small());
    assert!(rig.report.clean, "{:?}", rig.report);
    let all = texts(&rig.log, "a");
    assert_eq!(all.len(), 6);
    assert!(all[5].contains("last"));
    assert_eq!(
        disk.files().iter().filter(|name| name.ends_with(".seg")).count(),
        1,
        "no segment is left behind"
    );
}

#[test]
fn many_segments_are_rotated_indexed_and_read_back() {
    let disk = SimDisk::new();
    let rig = open(&disk, 3, small());
    let (a, _) = create(&rig.log, "a");
    let (b, _) = create(&rig.log, "b");
    let text = "x".repeat(300);
    for seq in 0..1500 {
        append(&rig.log, vec![event(a, seq, &text, false)]);
        if seq % 10 == 0 {
            let end = append(&rig.log, vec![event(b, seq / 10, &text, false)]).end;
            rig.log.flush(end, Durability::Durable).unwrap();
        }
    }
    assert_eq!(texts(&rig.log, "a").len(), 1500);
    assert_eq!(texts(&rig.log, "b").len(), 150);
    rig.log.close().unwrap();
    drop(rig);
    assert!(disk.files().iter().filter(|name| name.ends_with(".seg")).count() > 5);
    for _ in 0..2 {
        let rig = open(&disk, 4, small());
        assert!(rig.report.clean, "{:?}", rig.report);
        assert_eq!(texts(&rig.log, "a").len(), 1500);
        assert_eq!(texts(&rig.log, "b").len(), 150);
        rig.log.close().unwrap();
    }
}

#[test]
fn a_killed_writer_loses_nothing_that_was_flushed() {
    let disk = SimDisk::new();
    let rig = open(&disk, 5, small());
    let (dense, _) = create(&rig.log, "a");
    let mut end = Lsn::NONE;
    for seq in 0..100 {
        end = append(&rig.log, vec![event(dense, seq, "text", false)]).end;
    }
    rig.log.flush(end, Durability::Durable).unwrap();
    append(&rig.log, vec![event(dense, 100, "lost", false)]);
    let killed = disk.kill();
    let cut = disk.crash(7);
    for disk in [killed, cut] {
        let rig = open(&disk, 6, small());
        assert!(rig.report.losses.is_empty(), "{:?}", rig.report);
        assert!(texts(&rig.log, "a").len() >= 100);
        rig.log.close().unwrap();
    }
}

#[test]
fn verify_names_what_damage_hit() {
    let disk = SimDisk::new();
    let rig = open(&disk, 8, small());
    let (a, _) = create(&rig.log, "a");
    let text = "y".repeat(300);
    for seq in 0..600 {
        let end = append(&rig.log, vec![event(a, seq, &text, false)]).end;
        if seq % 7 == 0 {
            rig.log.flush(end, Durability::Durable).unwrap();
        }
    }
    rig.log.close().unwrap();
    drop(rig);
    let findings = |disk: &SimDisk| {
        let rt = Arc::new(SeededRuntime::new(9));
        let (log, _) = Log::open_reader(Arc::new(disk.clone()), rt, small()).unwrap();
        let mut all = Vec::new();
        let summary = log.verify(&mut |finding| all.push(finding)).unwrap();
        (all.into_iter().filter(|finding| !finding.note).collect::<Vec<_>>(), summary)
    };
    let (none, summary) = findings(&disk);
    assert_eq!(none, Vec::new());
    assert_eq!((summary.events, summary.sessions, summary.findings), (600, 1, 0));
    assert!(disk.flip("segments/00000001.seg", 30_000, 3));
    let (found, summary) = findings(&disk);
    assert_eq!(summary.findings, 1, "{found:?}");
    let hit = &found[0];
    assert_eq!((hit.kind, hit.session.as_deref()), ("damage", Some("a")));
    assert!(hit.from_seq.is_some() && hit.from_seq == hit.to_seq, "one record: {hit:?}");
    let rig = open(&disk, 10, small());
    let entry = rig.log.lookup("a").unwrap().unwrap();
    let read: Vec<_> = rig.log.events(&entry, 0, u64::MAX).unwrap().collect();
    let lost: Vec<_> =
        read.iter().enumerate().filter(|(_, event)| event.is_err()).map(|(seq, _)| seq as u64).collect();
    assert_eq!((read.len(), lost), (600, vec![hit.from_seq.unwrap()]), "only the damaged one is missing");
}

#[test]
fn a_backup_of_a_live_store_opens_and_is_the_same() {
    let disk = SimDisk::new();
    let rig = open(&disk, 11, small());
    let (a, _) = create(&rig.log, "a");
    let text = "z".repeat(300);
    let mut end = Lsn::NONE;
    for seq in 0..500 {
        end = append(&rig.log, vec![event(a, seq, &text, false)]).end;
    }
    rig.log.flush(end, Durability::Durable).unwrap();
    append(&rig.log, vec![event(a, 500, "not durable", false)]);
    let target = SimDisk::new();
    let report = rig.log.backup(Arc::new(target.clone())).unwrap();
    assert!(report.files > 4 && report.bytes > 150_000, "{report:?}");
    assert!(rig.log.backup(Arc::new(target.clone())).is_err(), "never over something");
    let copy = open(&target, 12, small());
    assert!(copy.report.losses.is_empty() && copy.report.cut.is_empty(), "{:?}", copy.report);
    assert_eq!(texts(&copy.log, "a"), texts(&rig.log, "a")[..500]);
}

/// What recovery cuts is evidence: the quarantine holds exactly those bytes, and the report names them (G4).
#[test]
fn a_torn_tail_is_kept_byte_for_byte() {
    let disk = SimDisk::new();
    let rig = open(&disk, 13, small());
    let (dense, _) = create(&rig.log, "a");
    let safe = append(&rig.log, vec![event(dense, 0, "safe", false)]).end;
    rig.log.flush(safe, Durability::Durable).unwrap();
    let from = u64::from(rig.log.durable().offset());
    let end = append(&rig.log, vec![event(dense, 1, &"t".repeat(3000), false)]).end;
    rig.log.flush(end, Durability::Written).unwrap();
    let disk = disk.kill();
    // A power cut lost one whole sector in the middle of what was written and not synced.
    let lost = (from / 512 + 3) * 512;
    assert!(disk.zero("segments/00000001.seg", lost..lost + 512));
    let torn = disk.contents("segments/00000001.seg").unwrap();
    let rig = open(&disk, 14, small());
    let [cut] = rig.report.cut.as_slice() else { panic!("{:?}", rig.report) };
    assert_eq!((cut.offset, rig.report.losses.len()), (from, 0));
    let kept = disk.contents(&cut.kept_in.as_ref().unwrap().display().to_string()).unwrap();
    let (from, to) = (usize::try_from(from).unwrap(), usize::try_from(from + cut.length).unwrap());
    assert_eq!(kept, torn[from..to]);
    assert!(torn[to..].iter().all(|byte| *byte == 0), "nothing but prepared zeros is left out");
    assert_eq!(texts(&rig.log, "a").len(), 1);
    rig.log.close().unwrap();
}

/// A sector of the torn tail that cannot be read keeps nobody from opening the store: the tail stays where it is.
#[test]
fn a_torn_tail_that_cannot_be_read_is_left_in_place() {
    let disk = SimDisk::new();
    let rig = open(&disk, 13, small());
    let (dense, _) = create(&rig.log, "a");
    let safe = append(&rig.log, vec![event(dense, 0, "safe", false)]).end;
    rig.log.flush(safe, Durability::Durable).unwrap();
    let from = u64::from(rig.log.durable().offset());
    let end = append(&rig.log, vec![event(dense, 1, &"t".repeat(9000), false)]).end;
    rig.log.flush(end, Durability::Written).unwrap();
    let disk = disk.kill();
    let lost = (from / 512 + 3) * 512;
    assert!(disk.zero("segments/00000001.seg", lost..lost + 512));
    // In a page of its own: the kernel reads, and fails, by the page.
    assert!(disk.fail_reads("segments/00000001.seg", 8192..8704));
    let rig = open(&disk, 14, small());
    let [cut] = rig.report.cut.as_slice() else { panic!("{:?}", rig.report) };
    assert_eq!((cut.offset, &cut.kept_in, rig.report.losses.len()), (from, &None, 0));
    assert!(cut.may_have_been_acknowledged);
    let next = append(&rig.log, vec![event(rig.log.lookup("a").unwrap().unwrap().dense, 1, "on", false)]);
    rig.log.flush(next.end, Durability::Durable).unwrap();
    assert_eq!(texts(&rig.log, "a").len(), 2);
    rig.log.close().unwrap();
    drop(rig);
    let rig = open(&disk, 15, small());
    assert_eq!((rig.report.cut.len(), rig.report.losses.len()), (0, 0), "{:?}", rig.report);
    assert_eq!(texts(&rig.log, "a").len(), 2);
}

/// A page that cannot be read where the log ends is told as something that may have been acknowledged: nobody knows what
/// stood in it (E2).
#[test]
fn an_unreadable_page_at_the_end_is_told() {
    let disk = SimDisk::new();
    let rig = open(&disk, 13, LogOptions { padded: true, ..small() });
    let (dense, created) = create(&rig.log, "a");
    rig.log.flush(created.end, Durability::Durable).unwrap();
    let control = disk.contents("CONTROL").unwrap();
    let from = u64::from(rig.log.durable().offset());
    let end = append(&rig.log, vec![event(dense, 0, "acknowledged", false)]).end;
    rig.log.flush(end, Durability::Durable).unwrap();
    let disk = disk.kill();
    // CONTROL is not synced at each commit: a power cut may take its newest slot.
    disk.install("CONTROL", &control);
    assert!(disk.fail_reads("segments/00000001.seg", from..from + 4096));
    let rig = open(&disk, 14, small());
    let [cut] = rig.report.cut.as_slice() else { panic!("{:?}", rig.report) };
    assert_eq!((cut.offset, cut.may_have_been_acknowledged, &cut.kept_in), (from, true, &None));
    assert!(texts(&rig.log, "a").is_empty());
    rig.log.close().unwrap();
}
