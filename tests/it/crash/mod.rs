//! Crashes, damage and full disks, against the simulated disk and a model of what was acknowledged (G1 to G8).
//!
//! `SESSIONLOG_CRASH_ROUNDS` multiplies the seeds of every campaign, and above 1 has every bit flipped and every byte cut
//! off, which the default run samples; `SESSIONLOG_CRASH_SEED` moves the seeds.

mod damage;
mod faults;
mod fixed;
mod locks;
mod power;
mod process;
mod readers;
mod traps;

use std::collections::HashSet;

use sessionlog::testing::oracle::{check, settle};
use sessionlog::testing::workload::{event, open};
use sessionlog::testing::{Model, SimDisk};

pub(crate) fn rounds() -> u64 {
    std::env::var("SESSIONLOG_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

pub(crate) fn first_seed() -> u64 {
    std::env::var("SESSIONLOG_CRASH_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Opens what a crash left, compares it with the model, goes on with every session, closes, opens and compares
/// again; the second time nothing may be left to recover.
pub(crate) fn survive(disk: &SimDisk, model: &Model, seed: u64, what: &str) {
    let mut model = model.clone();
    let (store, _) =
        open(disk, seed).unwrap_or_else(|error| panic!("{what}: the store does not open: {error}"));
    let complaints = check(&store, &model);
    assert!(complaints.0.is_empty(), "{what}: {:#?}\nreport {:?}", complaints.0, store.recovery());
    settle(&store, &mut model).unwrap();
    let ids: Vec<String> = model.sessions.keys().cloned().collect();
    for id in &ids {
        let session =
            store.resume(id).unwrap_or_else(|error| panic!("{what}: {id} does not resume: {error}")).session;
        let seq = usize::try_from(session.seq()).unwrap();
        let (event, line) = event(seq, "after the crash").unwrap();
        model.attempt(id, [line]);
        session.append(event).unwrap();
    }
    store.flush().unwrap();
    model.acknowledge_all();
    store.close().unwrap_or_else(|error| panic!("{what}: the close failed: {error}"));
    let (store, _) =
        open(disk, seed + 1).unwrap_or_else(|error| panic!("{what}: it does not open again: {error}"));
    assert!(store.recovery().clean, "{what}: not clean after a close: {:?}", store.recovery());
    let complaints = check(&store, &model);
    assert!(complaints.0.is_empty(), "{what}, second opening: {:#?}", complaints.0);
    let stored: HashSet<String> = store.stored().unwrap().map(|stat| stat.unwrap().id).collect();
    assert_eq!(stored, ids.into_iter().collect(), "{what}: the sessions are the same");
}
