//! A session too large for one batch is staged (F10): whatever interrupts it, it is there whole or not at all.

use std::sync::{Arc, Mutex};

use sessionlog::event::Event;
use sessionlog::testing::oracle::check;
use sessionlog::testing::workload::{open, options};
use sessionlog::testing::{Model, SeededRuntime, SimDisk};
use sessionlog::{Durability, Header, Time};

use super::power::{Moments, keep};
use super::{Judged, Verdict, agrees, campaign, fails, survive};

const ID: &str = "large";
const EVENTS: usize = 20;
/// Together more than one batch takes.
const LENGTH: usize = 60_000;
/// Of so many moments one is judged: each has a megabyte to look at.
const SAMPLED: usize = 4;

fn line(seq: usize) -> String {
    let letter = char::from(b'a' + u8::try_from(seq).unwrap());
    format!(
        r#"{{"type":"plugin/note","seq":{seq},"time":5,"data":"{}"}}"#,
        String::from(letter).repeat(LENGTH)
    )
}

/// An import that is staged; a power cut at calls of it. Nobody sees it before it is published.
pub(crate) fn imports(seed: u64, judged: &mut Judged) -> Verdict {
    let what = "a staged import";
    let disk = SimDisk::new();
    let (store, _) = fails(open(&disk, seed), what)?;
    let model = Arc::new(Mutex::new(Model::default()));
    let (moments, known) = (Moments::default(), Arc::clone(&model));
    keep(&disk, Arc::clone(&moments), move || known.lock().unwrap().clone());
    let mut import = fails(store.import(Header::new(ID, Time::from_millis(1)).unwrap()), what)?;
    for seq in 0..EVENTS {
        fails(import.push(&Event::parse_line(&line(seq)).unwrap()), what)?;
        agrees(store.open(ID).is_err(), || format!("{what}: it is there before it is published"))?;
    }
    {
        let mut model = model.lock().unwrap();
        model.attempt_session(ID, Vec::new());
        model.attempt(ID, (0..EVENTS).map(line));
        // Not even without an event.
        model.sessions.get_mut(ID).unwrap().ends = vec![EVENTS];
    }
    fails(import.publish(Durability::Durable), what)?;
    model.lock().unwrap().acknowledge(ID);
    disk.clear_on_call();
    let moments = std::mem::take(&mut *moments.lock().unwrap());
    for moment in moments.iter().skip(usize::try_from(seed).unwrap() % SAMPLED).step_by(SAMPLED) {
        let what = format!("{what}, seed {seed}, cut at call {} ({:?})", moment.call, moment.op);
        *judged += 1;
        let left = moment.disk.crash(seed + moment.call);
        if moment.call > 0 {
            let runtime = Arc::new(SeededRuntime::new(seed));
            let reader = fails(options(&left, &runtime).open_read_only(""), &what)?;
            let complaints = check(&reader, &moment.model);
            agrees(complaints.0.is_empty(), || format!("{what}, read: {:.500?}", complaints.0))?;
        }
        // Not with a further cut behind the opening: 1 is no multiple of 3.
        survive(&left, &moment.model, 1, &what)?;
    }
    Ok(())
}

#[test]
fn a_staged_import_is_there_whole_or_not_at_all() {
    campaign(0, 5, "power cuts of a staged import", imports);
}
