//! Many lives of one store, each ended by a kill: a segment a life, its index, runs of the directory and their merging
//! (D1, D2). What was deleted stays deleted, what was inherited stays readable (D6), and what only a run knows any more
//! stays known.

use std::sync::{Arc, Mutex};

use sessionlog::testing::oracle::{check, look, settle};
use sessionlog::testing::workload::{event, open};
use sessionlog::testing::{Model, SeededRuntime, SimDisk};
use sessionlog::{CreateOptions, ForkOptions, SessionStore};

use super::power::{Moments, keep};
use super::{Judged, Verdict, agrees, campaign, fails, survive};

const LIVES: usize = 9;

struct Lives {
    disk: SimDisk,
    model: Arc<Mutex<Model>>,
    seed: u64,
}

impl Lives {
    fn new(seed: u64) -> Self {
        Self { disk: SimDisk::new(), model: Arc::default(), seed }
    }

    fn open(&self, life: usize) -> Result<(SessionStore, Arc<SeededRuntime>), String> {
        fails(open(&self.disk, self.seed + life as u64), &format!("life {life}"))
    }

    fn create(&self, store: &SessionStore, id: &str) -> Verdict {
        self.model.lock().unwrap().attempt_session(id, Vec::new());
        fails(store.create(CreateOptions::new().id(id)).map(drop), id)
    }

    fn append(&self, store: &SessionStore, id: &str) -> Verdict {
        let session = match store.get(id) {
            Some(session) => session,
            None => fails(store.resume(id), id)?.session,
        };
        let (event, line) = event(usize::try_from(session.seq()).unwrap(), id).unwrap();
        self.model.lock().unwrap().attempt(id, [line]);
        fails(session.append(event).map(drop), id)
    }

    fn fork(&self, store: &SessionStore, parent: &str, id: &str) -> Verdict {
        let mut model = self.model.lock().unwrap();
        let lines = model.sessions[parent].lines.clone();
        let at = lines.len() as u64 - 1;
        model.attempt_session(id, lines);
        drop(model);
        fails(store.fork(parent, ForkOptions::new().at(at).id(id)).map(drop), id)
    }

    fn delete(&self, store: &SessionStore, id: &str) -> Verdict {
        self.model.lock().unwrap().attempt_delete(id);
        fails(store.delete(id), id)
    }

    fn flush(&self, store: &SessionStore) -> Verdict {
        fails(store.flush(), "flush")?;
        self.model.lock().unwrap().acknowledge_all();
        Ok(())
    }

    /// What one life does: parents get a child and are deleted in a later life, each with one life between.
    fn live(&self, store: &SessionStore, life: usize) -> Verdict {
        self.create(store, &format!("parent-{life}"))?;
        self.append(store, &format!("parent-{life}"))?;
        self.create(store, &format!("alone-{life}"))?;
        self.append(store, &format!("alone-{life}"))?;
        self.flush(store)?;
        if let Some(before) = life.checked_sub(1) {
            self.fork(store, &format!("parent-{before}"), &format!("child-{before}"))?;
            self.append(store, &format!("child-{before}"))?;
        }
        if let Some(before) = life.checked_sub(2) {
            self.delete(store, &format!("parent-{before}"))?;
        }
        if life % 3 == 2 {
            self.delete(store, &format!("alone-{life}"))?;
        }
        self.flush(store)
    }
}

/// The lives, each checked, with a crash at each of some moments.
pub(crate) fn lives(seed: u64, judged: &mut Judged) -> Verdict {
    let mut lives = Lives::new(seed);
    let moments = Moments::default();
    for life in 0..LIVES {
        let (list, known) = (Arc::clone(&moments), Arc::clone(&lives.model));
        keep(&lives.disk, list, move || known.lock().unwrap().clone());
        let (store, runtime) = lives.open(life)?;
        let complaints = check(&store, &lives.model.lock().unwrap());
        *judged += 1;
        agrees(complaints.0.is_empty(), || format!("life {life}: {:#?}", complaints.0))?;
        lives.live(&store, life)?;
        // Indexes, runs and merges; in every other life only at the next opening.
        if life % 2 == 0 {
            runtime.run_for(std::time::Duration::from_millis(50));
        }
        let complaints = check(&store, &lives.model.lock().unwrap());
        agrees(complaints.0.is_empty(), || format!("life {life}, before its end: {:#?}", complaints.0))?;
        lives.disk = lives.disk.kill();
    }
    let moments = std::mem::take(&mut *moments.lock().unwrap());
    for moment in moments.iter().skip(usize::try_from(seed % 4).unwrap()).step_by(4) {
        *judged += 1;
        let what = format!("lives, seed {seed}, cut at call {} ({:?})", moment.call, moment.op);
        survive(&moment.disk.crash(seed + moment.call), &moment.model, moment.call, &what)?;
    }
    Ok(())
}

/// The first segment is lost, index and all: its sessions are known by the directory alone, and stay so whatever the
/// lives after that do, and wherever a power cut ends one.
pub(crate) fn known_by_runs(seed: u64, judged: &mut Judged) -> Verdict {
    let mut lives = Lives::new(seed);
    for life in 0..3 {
        let (store, runtime) = lives.open(life)?;
        lives.live(&store, life)?;
        runtime.run_for(std::time::Duration::from_millis(50));
        lives.disk = lives.disk.kill();
    }
    agrees(lives.disk.remove("segments/00000001.seg"), || "there is no first segment".into())?;
    let _ = lives.disk.remove("segments/00000001.idx");
    let moments = Moments::default();
    for life in 3..LIVES {
        let (list, known) = (Arc::clone(&moments), Arc::clone(&lives.model));
        keep(&lives.disk, list, move || known.lock().unwrap().clone());
        let (store, runtime) = lives.open(life)?;
        lives.create(&store, &format!("new-{life}"))?;
        lives.append(&store, &format!("new-{life}"))?;
        lives.flush(&store)?;
        runtime.run_for(std::time::Duration::from_millis(50));
        lives.disk = lives.disk.kill();
    }
    let mut moments = std::mem::take(&mut *moments.lock().unwrap());
    moments.retain(|moment| moment.disk.files().iter().any(|file| file.starts_with("directory/")));
    for moment in moments.iter().skip(usize::try_from(seed % 2).unwrap()).step_by(2) {
        *judged += 1;
        let what = format!("a lost segment, seed {seed}, cut at call {} ({:?})", moment.call, moment.op);
        let disk = moment.disk.crash(seed + moment.call);
        for opening in ["first", "second"] {
            let what = format!("{what}, {opening} opening");
            let (store, _) = fails(open(&disk, seed), &what)?;
            let sight = look(&store, &moment.model);
            agrees(sight.wrong.is_empty() && !sight.told.is_empty(), || format!("{what}: {sight:.2000?}"))?;
            let known = store.stat("alone-0").is_ok_and(|stat| stat.events == 1);
            agrees(known, || format!("{what}: what the directory knew of \"alone-0\" is gone"))?;
            fails(settle(&store, &mut moment.model.clone()), &what)?;
        }
    }
    Ok(())
}

#[test]
fn what_was_deleted_and_inherited_stays_so_over_many_lives() {
    campaign(0, 40, "lives and power cuts in them", lives);
}

#[test]
fn what_only_the_directory_knows_stays_known() {
    campaign(0, 40, "power cuts in a store without its first segment", known_by_runs);
}
