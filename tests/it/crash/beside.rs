//! What happens while a sync is under way (E1): more is appended, by whoever does not wait.
//!
//! The rig has one thread; the disk's hook appends from within each sync, as another thread would.

use std::sync::{Arc, Mutex};

use sessionlog::testing::workload::{event, open};
use sessionlog::testing::{DiskOp, Model, SimDisk};
use sessionlog::{CreateOptions, Session};

use super::power::{Moment, Moments};
use super::{Judged, Verdict, agrees, campaign, fails, survive};

struct Beside {
    session: Session,
    model: Arc<Mutex<Model>>,
}

impl Beside {
    fn append(&self) {
        let id = self.session.id().to_owned();
        let seq = usize::try_from(self.session.seq()).unwrap();
        let (event, line) = event(seq, &format!("beside {seq}")).unwrap();
        self.model.lock().unwrap().attempt(&id, [line]);
        if self.session.append(event).is_err() {
            self.model.lock().unwrap().retract(&id);
        }
    }
}

/// Appends to one session, each flushed; another one gets an event within every sync, and is flushed now and then. A
/// power cut at every call.
pub(crate) fn appends(seed: u64, judged: &mut Judged) -> Verdict {
    let what = "appends beside syncs";
    let disk = SimDisk::new();
    let (store, _) = fails(open(&disk, seed), what)?;
    let model = Arc::new(Mutex::new(Model::default()));
    let mut sessions = Vec::new();
    for id in ["a", "b"] {
        model.lock().unwrap().attempt_session(id, Vec::new());
        sessions.push(fails(store.create(CreateOptions::new().id(id)), what)?);
    }
    fails(store.flush(), what)?;
    model.lock().unwrap().acknowledge_all();
    let beside = Beside { session: sessions[1].clone(), model: Arc::clone(&model) };
    let moments = Moments::default();
    let list = Arc::clone(&moments);
    disk.on_call(move |call, op, disk| {
        if op == DiskOp::Sync {
            beside.append();
        }
        if op.is_change() || op.is_sync() {
            let model = beside.model.lock().unwrap().clone();
            list.lock().unwrap().push(Moment { call, op, disk: disk.snapshot(), model });
        }
    });
    for round in 0..30 {
        let seq = usize::try_from(sessions[0].seq()).unwrap();
        let (event, line) = event(seq, &"x".repeat(round * 53 % 700)).unwrap();
        model.lock().unwrap().attempt("a", [line]);
        fails(sessions[0].append(event), what)?;
        let flushed = &sessions[usize::from(round % 3 == 2)];
        let count = model.lock().unwrap().sessions[flushed.id()].lines.len();
        fails(flushed.flush(), what)?;
        if let Some(known) = model.lock().unwrap().sessions.get_mut(flushed.id()) {
            known.acknowledged = known.acknowledged.max(count);
        }
    }
    disk.clear_on_call();
    let moments = std::mem::take(&mut *moments.lock().unwrap());
    for moment in &moments {
        *judged += 1;
        let what = format!("{what}, seed {seed}, cut at call {} ({:?})", moment.call, moment.op);
        survive(&moment.disk.crash(seed + moment.call), &moment.model, moment.call, &what)?;
    }
    let more = moments.last().map_or(0, |moment| moment.model.sessions["b"].lines.len());
    agrees(more > 20, || format!("only {more} events were appended beside a sync"))
}

#[test]
fn what_is_appended_during_a_sync_is_not_taken_for_synced() {
    campaign(0, 60, "power cuts with appends beside syncs", appends);
}
