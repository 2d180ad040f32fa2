//! Closing what a crash left open is one batch (R2, G2): after a power cut during a resume it is there whole or not.

use std::sync::{Arc, Mutex};

use sessionlog::testing::workload::{event, open};
use sessionlog::testing::{Model, SimDisk};
use sessionlog::{CreateOptions, NewEvent, Session, Time};

use super::power::{Moments, keep};
use super::{Judged, Verdict, agrees, campaign, fails, survive};

const SESSIONS: usize = 4;

fn line(kind: &str, seq: usize, data: &str) -> String {
    format!(r#"{{"type":"{kind}","seq":{seq},"time":5,"data":{data}}}"#)
}

fn raw(kind: &str, data: &str) -> NewEvent {
    NewEvent::raw(kind, data).unwrap().with_time(Time::from_millis(5))
}

/// A turn and a step that nobody closes.
fn open_turn(session: &Session, model: &mut Model) -> Verdict {
    let opened = [("turn/start", r#"{"turn":1}"#), ("step/start", r#"{"turn":1,"step":1}"#)];
    for (seq, (kind, data)) in opened.into_iter().enumerate() {
        model.attempt(session.id(), [line(kind, seq, data)]);
        fails(session.append(raw(kind, data)).map(drop), kind)?;
    }
    Ok(())
}

/// What closes them (R2).
fn closers() -> [String; 2] {
    let end = r#"{"turn":1,"reason":{"kind":"interrupted"}}"#;
    [line("step/end", 2, r#"{"turn":1,"step":1}"#), line("turn/end", 3, end)]
}

/// Sessions with open turns are resumed one after the other; a power cut and a kill at every call of that.
pub(crate) fn resumes(seed: u64, judged: &mut Judged) -> Verdict {
    let what = "resuming sessions with open turns";
    let disk = SimDisk::new();
    let (store, _) = fails(open(&disk, seed), what)?;
    let model = Arc::new(Mutex::new(Model::default()));
    for number in 0..SESSIONS {
        let id = format!("s{number}");
        model.lock().unwrap().attempt_session(&id, Vec::new());
        let session = fails(store.create(CreateOptions::new().id(&id)), what)?;
        open_turn(&session, &mut model.lock().unwrap())?;
    }
    fails(store.flush(), what)?;
    model.lock().unwrap().acknowledge_all();
    drop(store);
    let (moments, known) = (Moments::default(), Arc::clone(&model));
    keep(&disk, Arc::clone(&moments), move || known.lock().unwrap().clone());
    let (store, _) = fails(open(&disk, seed), what)?;
    for number in 0..SESSIONS {
        let id = format!("s{number}");
        model.lock().unwrap().attempt(&id, closers());
        let resumed = fails(store.resume(&id), what)?;
        let lines: Vec<String> = resumed.closers.iter().map(|closer| closer.to_line()).collect();
        agrees(lines == closers(), || format!("{what}: {lines:?}"))?;
        let (event, line) = event(4, "goes on").unwrap();
        model.lock().unwrap().attempt(&id, [line]);
        fails(resumed.session.append(event), what)?;
        fails(resumed.session.flush(), what)?;
        model.lock().unwrap().acknowledge(&id);
    }
    disk.clear_on_call();
    for moment in std::mem::take(&mut *moments.lock().unwrap()) {
        let what = format!("{what}, seed {seed}, call {} ({:?})", moment.call, moment.op);
        *judged += 2;
        survive(&moment.disk.crash(seed + moment.call), &moment.model, moment.call, &format!("{what}, cut"))?;
        survive(&moment.disk.kill_writer(), &moment.model, moment.call, &format!("{what}, killed"))?;
    }
    Ok(())
}

#[test]
fn a_power_cut_during_a_resume_leaves_all_of_its_closers_or_none() {
    campaign(0, 30, "power cuts and kills during resumes", resumes);
}
