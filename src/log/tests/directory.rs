//! The directory under many sessions, tiny segments, kills, lost and damaged runs: always the same answers.

use std::collections::BTreeMap;

use super::{append, event, small};
use crate::format::RecordDraft;
use crate::format::meta::{CreateMeta, ForkMeta, Meta, SessionMeta};
use crate::format::{names, payload};
use crate::log::*;
use crate::testing::{Random, SeededRuntime, SimDisk};

/// A log with its runtime at hand.
struct Rig {
    log: Log,
    rt: Arc<SeededRuntime>,
    report: RecoveryReport,
}

fn start(disk: &SimDisk, seed: u64) -> Rig {
    let rt = Arc::new(SeededRuntime::new(seed));
    let (log, report) =
        Log::open_writer(Arc::new(disk.clone()), Arc::clone(&rt) as Arc<dyn Runtime>, small(), true).unwrap();
    Rig { log, rt, report }
}

fn read(disk: &SimDisk, seed: u64) -> Log {
    let rt = Arc::new(SeededRuntime::new(seed));
    Log::open_reader(Arc::new(disk.other_process()), rt, small()).unwrap().0
}

/// What is expected of every session.
#[derive(Default, Clone)]
struct Model {
    /// By dense id: text id, parent, next seq, deleted.
    sessions: BTreeMap<u64, (String, Option<u64>, u64, bool)>,
}

fn header(id: &str) -> String {
    format!(r#"{{"type":"session","version":0,"id":"{id}","createdAt":1}}"#)
}

impl Model {
    fn create(&mut self, log: &Log, id: &str, parent: Option<u64>) -> u64 {
        let dense = log.allocate_dense().unwrap();
        let (text, cut) = (header(id), parent.map_or(0, |parent| self.sessions[&parent].2));
        let mut bytes = Vec::new();
        payload::encode_session(id, &text, &mut bytes);
        let (meta, note) = match parent {
            None => (
                Meta::Create(CreateMeta { more: false, staged: false, dense }),
                Note::Create { dense, id: id.into(), header: text.as_str().into(), staged: false },
            ),
            Some(parent) => {
                let fork = Fork { parent, ancestor: parent, cut };
                let (staged, turn_open) = (false, false);
                let header = text.as_str().into();
                (
                    Meta::Fork(ForkMeta {
                        more: false,
                        staged,
                        dense,
                        parent,
                        ancestor: parent,
                        cut,
                        turn_open,
                    }),
                    Note::Fork { dense, id: id.into(), header, fork, staged, turn_open },
                )
            }
        };
        append(log, vec![Entry { record: RecordDraft::new(bytes).seal(&meta), note }]);
        self.sessions.insert(dense, (id.to_owned(), parent, cut, false));
        log.detach(dense);
        dense
    }

    fn write(&mut self, log: &Log, dense: u64, text: &str) {
        let seq = self.sessions[&dense].2;
        let entry = log.attach(dense).unwrap();
        assert_eq!(entry.next_seq, seq, "session {dense}");
        append(log, vec![event(dense, seq, text, false)]);
        log.detach(dense);
        self.sessions.get_mut(&dense).unwrap().2 += 1;
    }

    fn delete(&mut self, log: &Log, dense: u64) {
        log.attach(dense).unwrap();
        let record = RecordDraft::new(Vec::new()).seal(&Meta::Delete(SessionMeta { more: false, dense }));
        append(log, vec![Entry { record, note: Note::Delete { dense } }]);
        log.detach(dense);
        self.sessions.get_mut(&dense).unwrap().3 = true;
    }

    fn check(&self, log: &Log) {
        let visible: Vec<u64> =
            self.sessions.iter().filter(|(_, session)| !session.3).map(|(dense, _)| *dense).collect();
        assert_eq!(log.sessions().unwrap(), visible);
        for (dense, (id, parent, next_seq, deleted)) in &self.sessions {
            let entry = log.session(*dense).unwrap().unwrap_or_else(|| panic!("session {dense} is gone"));
            assert_eq!((&*entry.id, entry.next_seq, entry.deleted), (id.as_str(), *next_seq, *deleted));
            assert_eq!(&*entry.header, header(id));
            assert_eq!(entry.fork.map(|fork| fork.parent), *parent);
            let newest =
                self.sessions.iter().filter(|(_, s)| s.0 == *id && !s.3).map(|(dense, _)| *dense).max();
            assert_eq!(log.lookup(id).unwrap().map(|entry| entry.dense), newest, "{id}");
            let children: Vec<u64> =
                self.sessions.iter().filter(|(_, s)| s.1 == Some(*dense) && !s.3).map(|(d, _)| *d).collect();
            assert_eq!(log.shared().children(*dense).unwrap(), children, "children of {dense}");
        }
        assert!(log.lookup("never").unwrap().is_none());
        assert!(log.session(1 << 40).unwrap().is_none());
    }

    fn check_events(&self, log: &Log) {
        for (dense, (_, _, next_seq, deleted)) in &self.sessions {
            let entry = log.session(*dense).unwrap().unwrap();
            if !deleted {
                let events = log.events(&entry, 0, u64::MAX).unwrap();
                let seqs: Vec<u64> = events.map(|event| event.unwrap().seq()).collect();
                assert_eq!(seqs, (0..*next_seq).collect::<Vec<_>>(), "session {dense}");
            }
        }
    }

    /// Some random changes, flushed now and then.
    fn churn(&mut self, log: &Log, random: &mut Random, steps: u64) {
        for step in 0..steps {
            let known: Vec<u64> =
                self.sessions.iter().filter(|(_, s)| !s.3).map(|(dense, _)| *dense).collect();
            let pick = |random: &mut Random| random.pick(&known).copied();
            match (random.below(20), pick(random)) {
                (0..=2, _) | (_, None) => {
                    let id = format!("id{}", random.below(60));
                    if log.lookup(&id).unwrap().is_none() {
                        self.create(log, &id, None);
                    }
                }
                (3, Some(parent)) => {
                    self.create(log, &format!("fork{}-{step}", log.tail()), Some(parent));
                }
                (4, Some(dense)) => self.delete(log, dense),
                (_, Some(dense)) => self.write(log, dense, &"x".repeat(random.index(700))),
            }
            if random.below(25) == 0 {
                log.flush(log.tail(), Durability::Durable).unwrap();
            }
        }
        log.flush(log.tail(), Durability::Durable).unwrap();
    }
}

fn runs(disk: &SimDisk) -> Vec<String> {
    disk.files().into_iter().filter(|name| name.starts_with(names::DIRECTORY)).collect()
}

fn live_entries(log: &Log) -> usize {
    log.shared().state().live.all().count()
}

#[test]
fn what_a_run_covers_and_nobody_holds_costs_no_memory() {
    let disk = SimDisk::new();
    let rig = start(&disk, 1);
    let mut model = Model::default();
    let held = model.create(&rig.log, "held", None);
    rig.log.attach(held).unwrap();
    for n in 0..400 {
        let dense = model.create(&rig.log, &format!("s{n}"), None);
        model.write(&rig.log, dense, &"x".repeat(600));
    }
    rig.log.flush(rig.log.tail(), Durability::Durable).unwrap();
    rig.rt.run_until_idle();
    let directory = Arc::clone(&rig.log.shared().state().live.directory);
    let active = rig.log.tail().segment();
    assert_eq!(directory.to.segment(), active - 1, "everything that ended is in a run");
    assert!(live_entries(&rig.log) < 150, "{}", live_entries(&rig.log));
    model.check(&rig.log);
    assert!(live_entries(&rig.log) < 150, "looking at sessions keeps none");
    let control = *rig.log.shared().state().commit.as_ref().unwrap().control();
    assert_eq!(control.directory_to, directory.to);
    assert!(directory.runs.len() < 6, "runs are merged");
    assert!(runs(&disk).len() == directory.runs.len(), "and the old ones are gone: {:?}", runs(&disk));
}

#[test]
fn opening_replays_only_what_is_behind_the_chain() {
    let disk = SimDisk::new();
    let rig = start(&disk, 2);
    let mut model = Model::default();
    for n in 0..300 {
        let dense = model.create(&rig.log, &format!("s{n}"), None);
        model.write(&rig.log, dense, &"x".repeat(600));
    }
    rig.log.close().unwrap();
    let rig = start(&disk, 3);
    let active = rig.log.tail().segment();
    assert_eq!(rig.log.shared().state().live.directory.to.segment(), active - 1, "close finished the rest");
    assert!(live_entries(&rig.log) < 120, "{}", live_entries(&rig.log));
    model.check(&rig.log);
    model.check_events(&rig.log);
}

#[test]
fn many_cycles_of_open_close_and_kill() {
    for seed in 0..2 {
        let mut disk = SimDisk::new();
        let mut random = Random::new(seed);
        let mut model = Model::default();
        for cycle in 0..16 {
            let rig = start(&disk, seed * 1000 + cycle);
            assert!(rig.report.losses.is_empty(), "{:?}", rig.report);
            model.check(&rig.log);
            model.churn(&rig.log, &mut random, 120);
            if random.below(2) == 0 {
                rig.rt.run_until_idle();
            }
            model.check(&rig.log);
            match random.below(3) {
                0 => rig.log.close().unwrap(),
                1 => disk = disk.kill(),
                _ => disk = disk.crash(random.next_u64()),
            }
        }
        let rig = start(&disk, 7);
        model.check(&rig.log);
        model.check_events(&rig.log);
        rig.rt.run_until_idle();
        model.check(&rig.log);
        model.check(&read(&disk, 8));
    }
}

fn grown(seed: u64) -> (SimDisk, Model) {
    let disk = SimDisk::new();
    let mut random = Random::new(seed);
    let mut model = Model::default();
    for cycle in 0..3 {
        let rig = start(&disk, cycle);
        model.churn(&rig.log, &mut random, 700);
        rig.rt.run_until_idle();
        rig.log.close().unwrap();
    }
    (disk, model)
}

#[test]
fn lost_runs_and_indexes_change_no_answer() {
    let (disk, model) = grown(11);
    assert!(!runs(&disk).is_empty());
    let derived: Vec<String> =
        disk.files().into_iter().filter(|name| name.ends_with(".idx") || name.ends_with(".run")).collect();
    let mut random = Random::new(5);
    for round in 0..6 {
        let copy = disk.snapshot();
        for name in &derived {
            if round == 0 || random.below(3) == 0 {
                copy.remove(name);
            }
        }
        model.check(&read(&copy, round));
        let rig = start(&copy, round);
        model.check(&rig.log);
        model.check_events(&rig.log);
        rig.rt.run_until_idle();
        model.check(&rig.log);
        rig.log.close().unwrap();
        let rig = start(&copy, round);
        let active = rig.log.tail().segment();
        assert_eq!(rig.log.shared().state().live.directory.to.segment(), active - 1, "rebuilt");
        model.check(&rig.log);
    }
}

#[test]
fn damaged_runs_and_indexes_change_no_answer() {
    let (disk, model) = grown(12);
    let derived: Vec<String> =
        disk.files().into_iter().filter(|name| name.ends_with(".idx") || name.ends_with(".run")).collect();
    let mut random = Random::new(6);
    for round in 0..9 {
        let copy = disk.snapshot();
        for name in &derived {
            if name.ends_with(".run") || random.below(4) == 0 {
                let length = copy.contents(name).unwrap().len() as u64;
                let at = random.below(length);
                let _ = match random.below(4) {
                    0 => copy.truncate(name, at),
                    1 => copy.zero(name, at..(at + 512).min(length)),
                    _ => copy.flip(name, at, u32::try_from(random.below(8)).unwrap()),
                };
            }
        }
        model.check(&read(&copy, round));
        let rig = start(&copy, round);
        if round % 2 == 0 {
            rig.rt.run_until_idle();
        }
        model.check(&rig.log);
        model.check_events(&rig.log);
        rig.rt.run_until_idle();
        model.check(&rig.log);
        rig.log.close().unwrap();
        let rig = start(&copy, round);
        model.check(&rig.log);
        rig.log
            .verify(&mut |finding| assert_ne!(finding.kind, "index", "not replaced: {finding:?}"))
            .unwrap();
    }
}

#[test]
fn a_follower_takes_up_new_runs() {
    let disk = SimDisk::new();
    let rig = start(&disk, 21);
    let mut random = Random::new(21);
    let mut model = Model::default();
    model.churn(&rig.log, &mut random, 200);
    let follower = read(&disk, 22);
    model.check(&follower);
    for _ in 0..6 {
        model.churn(&rig.log, &mut random, 300);
        rig.rt.run_until_idle();
        follower.refresh().unwrap();
        model.check(&follower);
    }
    model.check_events(&follower);
    let state = follower.shared().state();
    assert!(state.live.directory.to > Lsn::NONE);
    assert!(state.live.table_numbers().len() < 4, "tables of covered segments are dropped");
}

#[test]
fn leftovers_of_a_killed_writer_are_removed() {
    let (disk, model) = grown(13);
    let (from, to) = (Lsn::new(900, 1), Lsn::new(901, 2));
    disk.install(&names::run_temp(from, to), b"half a run");
    disk.install(&names::index_temp(2), b"half an index");
    let rig = start(&disk, 1);
    rig.rt.run_until_idle();
    assert!(!disk.files().iter().any(|name| name.ends_with(".tmp")), "{:?}", disk.files());
    model.check(&rig.log);
}

#[test]
fn a_run_from_another_state_of_the_log_is_not_used() {
    let (disk, model) = grown(14);
    let first = runs(&disk).remove(0);
    let (from, to) = names::parse_run(first.rsplit('/').next().unwrap()).unwrap();
    let copy = disk.snapshot();
    let bytes = copy.contents(&first).unwrap();
    // The same bytes under a range that no segment end bounds, reaching further.
    copy.install(&names::run(from, Lsn(to.0 + 1)), &bytes);
    let rig = start(&copy, 1);
    model.check(&rig.log);
}
