//! A session too large for one batch is staged (F10): whatever interrupts it, it is there whole or not at all.

use std::sync::{Arc, Mutex};

use sessionlog::event::Event;
use sessionlog::testing::oracle::check;
use sessionlog::testing::workload::{Op, open, options};
use sessionlog::testing::{Model, SeededRuntime, SimDisk, Workload};
use sessionlog::{Durability, Header, Time};

use super::faults::full_disks_of;
use super::power::{Moments, keep, moments_of};
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

/// A script whose batches come in as imports of stored sessions, most of them staged.
fn script(seed: u64, steps: usize) -> Vec<Op> {
    let larger = |op| if let Op::Batch(count) = op { Op::Import(count * 5) } else { op };
    Workload::script(seed, steps).into_iter().map(larger).collect()
}

/// What is added to stored sessions; a power cut and a kill at every call.
pub(crate) fn extensions(seed: u64, judged: &mut Judged) -> Verdict {
    let script = script(seed, 90);
    let imports = script.iter().filter(|op| matches!(op, Op::Import(12..))).count();
    agrees(imports > 1, || format!("only {imports} staged imports"))?;
    for moment in moments_of(seed, &script)? {
        let what = format!("extensions, seed {seed}, call {} ({:?})", moment.call, moment.op);
        let choice = seed + moment.call;
        survive(&moment.disk.crash(choice), &moment.model, choice, &format!("{what}, power cut"))?;
        survive(&moment.disk.kill_writer(), &moment.model, 1, &format!("{what}, killed"))?;
        *judged += 2;
    }
    Ok(())
}

/// The same, refused for want of space from any call on.
pub(crate) fn extensions_of_full_disks(seed: u64, judged: &mut Judged) -> Verdict {
    let heavier = |op| if let Op::Append(length) = op { Op::Append(length * 6 + 500) } else { op };
    let script: Vec<Op> = script(seed, 60).into_iter().map(heavier).collect();
    full_disks_of(seed, &script, judged)
}

#[test]
fn what_is_added_to_a_stored_session_is_there_whole_or_not_at_all() {
    campaign(10_000, 100, "crashes of scripts that import", extensions);
    campaign(10_500, 20, "full disks of scripts that import", extensions_of_full_disks);
}

#[test]
fn a_staged_import_is_there_whole_or_not_at_all() {
    campaign(0, 5, "power cuts of a staged import", imports);
}
