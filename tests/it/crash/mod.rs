//! Crashes, damage and full disks, against the simulated disk and a model of what was acknowledged (G1 to G8).
//!
//! `SESSIONLOG_CRASH_ROUNDS` multiplies the seeds of every campaign, and above 1 has every bit flipped and every byte cut
//! off, which the default run samples; `SESSIONLOG_CRASH_SEED` moves the seeds.

pub(crate) mod beside;
pub(crate) mod damage;
pub(crate) mod faults;
mod fixed;
mod hurt;
pub(crate) mod index_frames;
pub(crate) mod lives;
pub(crate) mod locks;
pub(crate) mod mirror;
pub(crate) mod power;
mod process;
pub(crate) mod readers;
pub(crate) mod repairs;
pub(crate) mod staged;
mod traps;

use std::collections::HashSet;

use sessionlog::SessionStore;
use sessionlog::testing::oracle::{check, settle};
use sessionlog::testing::workload::{event, open};
use sessionlog::testing::{Model, Random, SimDisk};

pub(crate) fn rounds() -> u64 {
    std::env::var("SESSIONLOG_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

pub(crate) fn first_seed() -> u64 {
    std::env::var("SESSIONLOG_CRASH_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// How many crashes, or other cases, a campaign has judged.
pub(crate) type Judged = u64;

/// What a campaign found wrong, in words; the first thing ends it. Engine faults that are switched on show here.
pub(crate) type Verdict = Result<(), String>;

/// For tests of the engine as it is.
#[track_caller]
pub(crate) fn holds(verdict: Verdict) {
    if let Err(why) = verdict {
        panic!("{why}");
    }
}

/// Runs a campaign over the engine as it is, once a round, each with a seed of its own.
#[track_caller]
pub(crate) fn campaign(first: u64, least: Judged, what: &str, run: fn(u64, &mut Judged) -> Verdict) {
    let mut judged = 0;
    (0..rounds()).for_each(|round| holds(run(first_seed() + first + round, &mut judged)));
    println!("{what}: {judged}");
    assert!(judged >= least, "{what}: only {judged}");
}

/// An error of the store, where none may be.
pub(crate) fn fails<T>(done: sessionlog::Result<T>, what: &str) -> Result<T, String> {
    done.map_err(|error| format!("{what}: {error}"))
}

pub(crate) fn agrees(holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(what()) }
}

/// A power cut that keeps nothing but what was synced.
pub(crate) fn worst_cut(disk: &SimDisk) -> SimDisk {
    // The cut of a seed is chosen by its first number: see `sim_disk/cut.rs`, which its tests hold on to.
    let seed = (0..).find(|seed| Random::new(*seed).below(10) == 0).unwrap_or_default();
    disk.crash(seed)
}

/// Opens what a crash left, compares it with the model, goes on with every session, closes, opens and compares
/// again; the second time nothing may be left to recover. What was cut must be kept, durably; and what the first opening
/// handed out must be there after a power cut that keeps nothing unsynced.
pub(crate) fn survive(disk: &SimDisk, model: &Model, seed: u64, what: &str) -> Verdict {
    let mut model = model.clone();
    let left = disk.snapshot();
    let (store, _) = fails(open(disk, seed), &format!("{what}: the store does not open"))?;
    let complaints = check(&store, &model);
    agrees(complaints.0.is_empty(), || {
        format!("{what}: {:#?}\nreport {:?}", complaints.0, store.recovery())
    })?;
    evidence_is_kept(&left, disk, &store, what)?;
    fails(settle(&store, &mut model), what)?;
    if seed.is_multiple_of(3) {
        let what = format!("{what}, and a power cut behind the opening");
        let cut = worst_cut(disk);
        let (store, _) = fails(open(&cut, seed), &what)?;
        let complaints = check(&store, &model);
        agrees(complaints.0.is_empty(), || format!("{what}: {:#?}", complaints.0))?;
    }
    let ids: Vec<String> = model.sessions.keys().cloned().collect();
    for id in &ids {
        let resumed = fails(store.resume(id), &format!("{what}: {id} does not resume"))?;
        if !resumed.closers.is_empty() {
            model.attempt(id, resumed.closers.iter().map(|closer| closer.to_line()));
        }
        let session = resumed.session;
        let seq = usize::try_from(session.seq()).unwrap();
        let (event, line) = event(seq, "after the crash").unwrap();
        model.attempt(id, [line]);
        fails(session.append(event), what)?;
    }
    fails(store.flush(), what)?;
    model.acknowledge_all();
    fails(store.close(), &format!("{what}: the close failed"))?;
    let (store, _) = fails(open(disk, seed + 1), &format!("{what}: it does not open again"))?;
    agrees(store.recovery().clean, || format!("{what}: not clean after a close: {:?}", store.recovery()))?;
    let complaints = check(&store, &model);
    agrees(complaints.0.is_empty(), || format!("{what}, second opening: {:#?}", complaints.0))?;
    let stored: sessionlog::Result<HashSet<String>> =
        fails(store.stored(), what)?.map(|stat| stat.map(|stat| stat.id)).collect();
    let same = fails(stored, what)? == ids.into_iter().collect();
    agrees(same, || format!("{what}: the sessions are not the same"))
}

/// Every byte that an opening cut is kept, durably, as it was (G4).
fn evidence_is_kept(left: &SimDisk, disk: &SimDisk, store: &SessionStore, what: &str) -> Verdict {
    for cut in &store.recovery().cut {
        let file = cut.file.to_str().unwrap();
        let (from, to) =
            (usize::try_from(cut.offset).unwrap(), usize::try_from(cut.offset + cut.length).unwrap());
        let torn = left.contents(file).and_then(|bytes| bytes.get(from..to).map(<[u8]>::to_vec));
        let kept = match &cut.kept_in {
            Some(kept) => disk.durable_contents(kept.to_str().unwrap()),
            None => disk.contents(file).and_then(|bytes| bytes.get(from..to).map(<[u8]>::to_vec)),
        };
        agrees(torn.is_some() && kept == torn, || format!("{what}: what was cut is not kept: {cut:?}"))?;
    }
    Ok(())
}
