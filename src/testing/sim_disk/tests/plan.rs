//! Every kind of planned fault, one by one and together.

use std::io;

use super::super::plan::{FaultKind as K, FaultPlan};
use super::{outcomes, read, with_file};
use crate::disk::{Disk, DiskFile, OpenMode};
use crate::testing::{DiskOp, SimDisk};

fn once(kind: K) -> FaultPlan {
    FaultPlan { seed: 7, ..FaultPlan::none() }.at(kind, 0)
}

fn always(kind: K) -> FaultPlan {
    FaultPlan { seed: 7, ..FaultPlan::none() }.with(kind, 10_000)
}

fn struck(disk: &SimDisk, kind: K) -> u64 {
    disk.struck().get(&kind).copied().unwrap_or(0)
}

fn try_read(file: &dyn DiskFile) -> crate::Result<Vec<u8>> {
    let mut buf = vec![0; 8192];
    let got = file.read_at(&mut buf, 0)?;
    buf.truncate(got);
    Ok(buf)
}

#[test]
fn a_read_fails_once_or_for_good() {
    let (disk, file) = with_file(b"abc");
    disk.plan_faults(once(K::ReadFails));
    try_read(file.as_ref()).unwrap_err();
    assert_eq!(try_read(file.as_ref()).unwrap(), b"abc");
    disk.plan_faults(once(K::BadSector));
    try_read(file.as_ref()).unwrap_err();
    try_read(file.as_ref()).unwrap_err();
    let crashed = disk.crash(1);
    try_read(crashed.open("f", OpenMode::Read).unwrap().as_ref()).unwrap_err();
    assert_eq!((struck(&disk, K::ReadFails), struck(&crashed, K::BadSector)), (1, 1));
}

#[test]
fn short_and_interrupted_calls_are_gone_on_from() {
    let (disk, file) = with_file(b"");
    disk.plan_faults(always(K::ShortWrite).with(K::Interrupted, 3000));
    let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
    file.write_at(&[&bytes[..9], &bytes[9..]], 100).unwrap();
    file.allocate(0, 9000).unwrap();
    assert!(struck(&disk, K::ShortWrite) > 1 && struck(&disk, K::Interrupted) > 0, "{:?}", disk.struck());
    let seen = read(&disk, "f");
    assert_eq!(seen.len(), 9000);
    assert!(seen[100..5100] == bytes && seen[..100] == [0; 100]);
    assert_eq!(disk.calls(), 9, "one call above, however many below: {:?}", disk.trace());
}

#[test]
fn failing_calls_do_what_their_kind_says() {
    let (disk, file) = with_file(&[1; 2048]);
    disk.plan_faults(once(K::WriteFails));
    assert_eq!(file.write_at(&[&[2; 2048]], 0).unwrap_err().io_kind(), Some(io::ErrorKind::Other));
    assert_eq!((disk.contents("f").unwrap()[1023], disk.contents("f").unwrap()[1024]), (2, 1));
    disk.plan_faults(once(K::FullWrite));
    assert!(file.write_at(&[&[3; 2048]], 0).unwrap_err().is_full());
    disk.plan_faults(once(K::FullReserve));
    assert!(file.allocate(0, 10).unwrap_err().is_full());
    file.allocate(0, 10).unwrap();
    disk.plan_faults(once(K::FullNames));
    assert!(disk.create_excl("g").unwrap_err().is_full());
    disk.plan_faults(once(K::NamesFail));
    assert!(!disk.rename("f", "g").unwrap_err().is_full());
    disk.rename("f", "g").unwrap();
    disk.plan_faults(always(K::FullNames));
    assert!(disk.sync_dir("").unwrap_err().is_full());
    disk.unlink("g").unwrap();
    assert_eq!(struck(&disk, K::FullNames), 2);
}

#[test]
fn a_sync_that_drops_is_followed_by_one_that_succeeds_and_by_an_eviction() {
    for kind in [K::SyncDrops, K::FullSync] {
        let (disk, file) = with_file(b"old");
        file.write_at(&[b"new"], 0).unwrap();
        disk.plan_faults(once(kind));
        assert_eq!(file.sync_data().unwrap_err().is_full(), kind == K::FullSync);
        file.sync_data().unwrap();
        assert_eq!(disk.durable_contents("f"), Some(b"old".to_vec()));
        disk.plan_faults(once(K::Eviction));
        assert_eq!(read(&disk, "f"), b"old");
        assert_eq!(struck(&disk, K::Eviction), 1);
    }
    let (disk, file) = with_file(b"old");
    file.write_at(&[b"new"], 0).unwrap();
    disk.plan_faults(once(K::SyncFails));
    file.sync_data().unwrap_err();
    file.sync_data().unwrap();
    assert_eq!(disk.durable_contents("f"), Some(b"new".to_vec()));
}

#[test]
fn rot_turns_one_bit_over_and_zeroing_takes_a_page() {
    let (disk, _file) = with_file(&[0xFF; 6000]);
    disk.plan_faults(once(K::BitRot));
    let seen = read(&disk, "f");
    assert_eq!(seen.iter().map(|byte| byte.count_zeros()).sum::<u32>(), 1);
    assert!(outcomes(&disk, "f").iter().flatten().all(|left| *left == seen), "live and durable alike");
    disk.plan_faults(once(K::ZeroedPage));
    let seen = read(&disk, "f");
    let zeros = seen.iter().filter(|byte| **byte == 0).count();
    assert!([4096, 6000 - 4096].contains(&zeros), "{zeros}");
}

#[test]
fn a_lost_write_is_seen_until_the_cache_forgets_it() {
    let (disk, file) = with_file(&[1; 1024]);
    disk.plan_faults(once(K::LostWrite));
    file.write_at(&[&[2; 512]], 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(read(&disk, "f")[..512], [2; 512]);
    assert!(outcomes(&disk, "f").iter().flatten().all(|left| left[..] == [1; 1024]));
    disk.evict_clean();
    assert_eq!(read(&disk, "f"), [1; 1024]);
    file.write_at(&[&[3; 512]], 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(disk.durable_contents("f").unwrap()[..512], [3; 512]);
}

#[test]
fn a_misdirected_write_is_missing_here_and_wrong_there() {
    let (disk, file) = with_file(&[1; 512]);
    disk.install("g", &[9; 4096]);
    let mut elsewhere = false;
    for seed in 0..40 {
        let disk = disk.snapshot();
        disk.plan_faults(FaultPlan { seed, ..FaultPlan::none() }.at(K::Misdirected, 0));
        let file = disk.open("f", OpenMode::ReadWrite).unwrap();
        file.write_at(&[&[2; 512]], 0).unwrap();
        file.sync_data().unwrap();
        assert_eq!(struck(&disk, K::Misdirected), 1);
        let (f, g) = (disk.durable_contents("f").unwrap(), disk.durable_contents("g").unwrap());
        let hit = g.chunks(512).position(|sector| sector == [2; 512]);
        assert!(hit.is_some() && f == [1; 512] || hit.is_none() && f == [2; 512], "seed {seed}");
        elsewhere |= hit.is_some_and(|sector| sector > 0);
    }
    assert!(elsewhere);
    drop(file);
}

#[test]
fn stale_sectors_are_read_once_or_for_good() {
    for (kind, chance) in [(K::StaleRead, 0), (K::StaleForGood, 2)] {
        let (disk, file) = with_file(&[1; 1024]);
        disk.plan_faults(FaultPlan { seed: 7, ..FaultPlan::none() }.at(kind, chance));
        file.write_at(&[&[2; 1024]], 0).unwrap();
        file.sync_data().unwrap();
        let seen = read(&disk, "f");
        assert_eq!(seen.iter().filter(|byte| **byte == 1).count(), 512, "{kind}");
        disk.clear_faults();
        let later = read(&disk, "f");
        assert_eq!(later == [2; 1024], kind == K::StaleRead);
    }
}

#[test]
fn files_vanish_and_are_swapped_with_what_they_were() {
    let (disk, file) = with_file(b"one");
    disk.plan_faults(once(K::Vanished));
    assert!(!disk.exists("f").unwrap());
    drop(file);

    let (disk, file) = with_file(b"one");
    disk.plan_faults(FaultPlan { seed: 3, ..FaultPlan::none() }.at(K::Swapped, 2));
    file.sync_data().unwrap();
    file.write_at(&[b"two"], 0).unwrap();
    assert_eq!(read(&disk, "f"), b"one", "the file of that name is the older one");
    assert_eq!(try_read(file.as_ref()).unwrap(), b"two", "an open handle has the other one");
}

#[test]
fn kinds_strike_independently_and_by_their_rates() {
    let strikes = |plan: FaultPlan| {
        let (disk, file) = with_file(&[1; 64]);
        disk.plan_faults(plan);
        let failed = |n: u64| (file.write_at(&[b"x"], n % 64).is_err(), file.sync_data().is_err());
        (0..2000).map(failed).unzip::<bool, bool, Vec<bool>, Vec<bool>>()
    };
    let both = FaultPlan { seed: 5, ..FaultPlan::none() }.with(K::WriteFails, 1000).with(K::SyncDrops, 100);
    let (writes, syncs) = strikes(both.clone());
    let (alone, none) = strikes(both.without(K::SyncDrops));
    assert!(writes == alone && none.iter().all(|failed| !failed));
    let count = |all: &[bool]| all.iter().filter(|failed| **failed).count();
    assert!((150..250).contains(&count(&writes)) && (5..40).contains(&count(&syncs)));
    assert_eq!(strikes(both.clone()), (writes, syncs), "one seed twice");
}

#[test]
fn plans_are_text_and_back() {
    for seed in 0..200 {
        let plan = FaultPlan::of_seed(seed, &K::ALL).at(K::BitRot, seed);
        assert_eq!(plan.to_string().parse::<FaultPlan>().unwrap(), plan);
    }
    for wrong in ["", "x", "1,bit-rot", "1,nothing=3", "1,bit-rot=x"] {
        assert!(wrong.parse::<FaultPlan>().is_err(), "{wrong}");
    }
    let kinds: Vec<K> = "1,bit-rot=3,vanished@2".parse::<FaultPlan>().unwrap().kinds().collect();
    assert_eq!(kinds, [K::BitRot, K::Vanished]);
}

#[test]
fn copies_have_no_plan_and_know_what_struck() {
    let (disk, file) = with_file(b"x");
    disk.plan_faults(always(K::WriteFails));
    file.write_at(&[b"y"], 0).unwrap_err();
    for copy in [disk.snapshot(), disk.crash(1), disk.settled()] {
        copy.open("f", OpenMode::ReadWrite).unwrap().write_at(&[b"y"], 0).unwrap();
        assert_eq!(struck(&copy, K::WriteFails), 1);
    }
}

#[test]
fn pauses_come_around_every_call_and_within_a_sync() {
    let (disk, file) = with_file(b"x");
    let count = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counter = std::sync::Arc::clone(&count);
    let within = disk.clone();
    disk.on_pause(move |op| {
        // No lock of the disk is held.
        assert!(within.contents("f").is_some());
        counter.fetch_add(1 + 100 * u32::from(op == DiskOp::Sync), std::sync::atomic::Ordering::SeqCst);
    });
    file.write_at(&[b"y"], 0).unwrap();
    assert_eq!(count.load(std::sync::atomic::Ordering::SeqCst), 2);
    file.sync_data().unwrap();
    assert_eq!(count.load(std::sync::atomic::Ordering::SeqCst), 305);
}
