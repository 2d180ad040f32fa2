//! What a power cut leaves.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{SEEDS, outcomes, with_file};
use crate::ErrorKind;
use crate::disk::Disk;
use crate::testing::{Random, SimDisk};

#[test]
fn synced_bytes_outlive_every_power_cut() {
    let (disk, file) = with_file(&[1; 10_000]);
    file.write_at(&[&[2; 100]], 9_950).unwrap();
    file.sync_data().unwrap();
    let expected = disk.contents("f").unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([Some(expected)]));
}

#[test]
fn unsynced_sectors_are_kept_or_lost_one_by_one() {
    let (disk, file) = with_file(&[0; 4 * 512]);
    file.write_at(&[&[1; 4 * 512]], 0).unwrap();
    let mut seen = BTreeSet::new();
    for left in outcomes(&disk, "f") {
        let left = left.unwrap();
        assert_eq!(left.len(), 4 * 512);
        for sector in left.chunks(512) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is written whole or not at all");
        }
        seen.insert(left.iter().step_by(512).copied().collect::<Vec<u8>>());
    }
    assert_eq!(seen.len(), 16, "all mixtures: {seen:?}");
}

#[test]
fn a_sector_may_be_left_at_any_of_its_versions() {
    let (disk, file) = with_file(b"0");
    for version in [b"1", b"2", b"3"] {
        file.write_at(&[version], 0).unwrap();
    }
    let expected = [b"0", b"1", b"2", b"3"].map(|v| Some(v.to_vec()));
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from(expected));
}

#[test]
fn a_sector_written_often_keeps_some_of_its_versions() {
    let (disk, file) = with_file(b"\0");
    for version in 1..=200u8 {
        file.write_at(&[&[version]], 0).unwrap();
    }
    let left = outcomes(&disk, "f");
    assert!(left.contains(&Some(vec![0])) && left.contains(&Some(vec![200])));
    assert!(left.len() > 2);
    file.sync_data().unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([Some(vec![200])]));
}

#[test]
fn lengths_are_lost_too_and_lost_sectors_read_as_zero() {
    let (disk, file) = with_file(&[1; 512]);
    file.write_at(&[&[2; 1024]], 512).unwrap();
    let left = outcomes(&disk, "f");
    let old = vec![1; 512];
    let hole = [[1; 512], [0; 512], [2; 512]].concat();
    let all = [[1; 512], [2; 512], [2; 512]].concat();
    for expected in [old, hole, all] {
        assert!(left.contains(&Some(expected)));
    }
    assert!(left.iter().flatten().all(|bytes| [512, 1536].contains(&bytes.len())));
}

#[test]
fn a_cut_is_undone_unless_synced() {
    let (disk, file) = with_file(&[1; 1024]);
    file.set_len(100).unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([Some(vec![1; 100]), Some(vec![1; 1024])]));
    file.set_len(1024).unwrap();
    let cut = [vec![1; 100], vec![0; 924]].concat();
    let left = outcomes(&disk, "f");
    assert!(left.contains(&Some(cut.clone())) && left.contains(&Some(vec![1; 1024])));
    file.sync_data().unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([Some(cut.clone())]));
    assert_eq!(disk.contents("f"), Some(cut));
}

#[test]
fn bytes_behind_a_durable_cut_never_come_back() {
    let (disk, file) = with_file(b"");
    file.write_at(&[&[1; 2048]], 0).unwrap();
    file.set_len(512).unwrap();
    file.write_at(&[&[2; 512]], 1536).unwrap();
    for left in outcomes(&disk, "f").into_iter().flatten().filter(|bytes| bytes.len() == 2048) {
        // What was written behind the cut is there, so the cut happened.
        let cut_happened = left[1536..] == [2; 512];
        assert!(!cut_happened || left[512..1536].iter().all(|byte| *byte == 0), "the cut bytes are back");
    }
}

#[test]
fn a_name_is_durable_after_a_sync_of_its_directory_only() {
    let disk = SimDisk::new();
    let file = disk.create_excl("f").unwrap();
    file.write_at(&[b"x"], 0).unwrap();
    file.sync_file().unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([None, Some(b"x".to_vec())]));
    disk.sync_dir("").unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([Some(b"x".to_vec())]));
    disk.unlink("f").unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([None, Some(b"x".to_vec())]));
    disk.sync_dir("").unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([None]));
}

#[test]
fn names_in_a_lost_directory_are_lost() {
    let disk = SimDisk::new();
    disk.create_dir("d").unwrap();
    disk.create_dir("d").unwrap();
    disk.create_excl("d/f").unwrap();
    disk.sync_dir("d").unwrap();
    assert!((0..SEEDS).any(|seed| disk.crash(seed).files().is_empty()));
    disk.sync_dir("").unwrap();
    assert!((0..SEEDS).all(|seed| disk.crash(seed).files() == ["d/f"]));
    assert_eq!(disk.list("").unwrap(), ["d"]);
    assert_eq!(disk.list("d").unwrap(), ["f"]);
    assert_eq!(disk.list("e").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(disk.create_excl("e/f").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_rename_happens_wholly_or_not_at_all() {
    let (disk, _file) = with_file(b"old");
    disk.install("tmp", b"new");
    disk.rename("tmp", "f").unwrap();
    let left: BTreeSet<_> =
        (0..SEEDS).map(|seed| disk.crash(seed)).map(|d| (d.contents("f"), d.contents("tmp"))).collect();
    let (old, new) = (Some(b"old".to_vec()), Some(b"new".to_vec()));
    assert_eq!(left, BTreeSet::from([(old, new.clone()), (new.clone(), None)]));
    disk.sync_dir("").unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([new]));
}

#[test]
fn a_rename_does_not_make_the_bytes_durable() {
    let (disk, _file) = with_file(b"old");
    let tmp = disk.create_excl("tmp").unwrap();
    tmp.write_at(&[b"new"], 0).unwrap();
    disk.rename("tmp", "f").unwrap();
    disk.sync_dir("").unwrap();
    assert!(outcomes(&disk, "f").contains(&Some(Vec::new())), "the classic empty file");
}

#[test]
fn a_rename_between_directories_needs_the_new_one_synced_first() {
    let disk = SimDisk::new();
    disk.install("a/f", b"x");
    disk.install("b/g", b"y");
    disk.rename("a/f", "b/f").unwrap();
    let other = disk.snapshot();

    disk.sync_dir("b").unwrap();
    assert!((0..SEEDS).all(|seed| disk.crash(seed).contents("b/f").is_some()));
    assert!((0..SEEDS).any(|seed| disk.crash(seed).contents("a/f").is_some()));
    disk.sync_dir("a").unwrap();
    assert!((0..SEEDS).all(|seed| disk.crash(seed).files() == ["b/f", "b/g"]));

    other.sync_dir("a").unwrap();
    assert!((0..SEEDS).any(|seed| other.crash(seed).files() == ["b/g"]), "nowhere");
}

#[test]
fn one_seed_twice_leaves_the_same() {
    let (disk, file) = with_file(&[0; 8192]);
    file.write_at(&[&[1; 8192]], 100).unwrap();
    disk.create_excl("g").unwrap();
    for seed in 0..SEEDS {
        let (one, two) = (disk.crash(seed), disk.crash(seed));
        assert_eq!(one.contents("f"), two.contents("f"));
        assert_eq!(one.files(), two.files());
        // What is left is durable.
        assert_eq!(one.crash(seed + 1).contents("f"), one.contents("f"));
    }
}

#[test]
fn an_ordered_disk_is_among_the_seeds() {
    let (disk, file) = with_file(&[0; 20 * 512]);
    for step in 0..20 {
        file.write_at(&[&[1; 512]], step * 512).unwrap();
    }
    let prefix = |bytes: &Vec<u8>| bytes.iter().skip_while(|byte| **byte == 1).all(|byte| *byte == 0);
    let prefixes = outcomes(&disk, "f").into_iter().flatten().filter(prefix).count();
    assert!(prefixes > 10, "{prefixes}");
}

#[test]
fn a_sync_covers_what_was_written_before_it_was_called() {
    let (disk, file) = with_file(b"0");
    file.write_at(&[b"x"], 0).unwrap();
    file.write_at(&[b"1"], 0).unwrap();
    disk.block_sync();
    let syncing = {
        let file = Arc::clone(&file);
        std::thread::spawn(move || file.sync_data())
    };
    disk.wait_until_sync_blocks();
    assert!(!syncing.is_finished());
    for _ in 0..20 {
        file.write_at(&[b"2"], 0).unwrap();
    }
    disk.release_sync();
    syncing.join().unwrap().unwrap();
    assert_eq!(disk.durable_contents("f"), Some(b"1".to_vec()));
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([Some(b"1".to_vec()), Some(b"2".to_vec())]));
}

/// Every crash of a random run leaves, sector by sector, something that was there since the last sync.
#[test]
fn random_runs_leave_only_what_was_there() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let (disk, file) = with_file(&[9; 3000]);
        let mut since_sync = vec![disk.contents("f").unwrap()];
        for step in 1..60 {
            let off = random.below(5000);
            match random.below(8) {
                0 => {
                    file.sync_data().unwrap();
                    since_sync.clear();
                }
                1 => file.set_len(off).unwrap(),
                2 => assert!(file.allocate(off, 700).unwrap()),
                _ => file.write_at(&[&vec![step; 1 + random.index(2000)]], off).unwrap(),
            }
            since_sync.push(disk.contents("f").unwrap());
            for _ in 0..3 {
                let left = disk.crash(random.next_u64()).contents("f").unwrap();
                assert!(since_sync.iter().any(|then| then.len() == left.len()), "seed {seed} step {step}");
                for (number, sector) in left.chunks(512).enumerate() {
                    // A cut may have taken the rest of a sector whose later bytes were lost: zeros from there on.
                    let zeros = sector.iter().rev().take_while(|byte| **byte == 0).count();
                    let bytes = &sector[..sector.len() - zeros];
                    let was =
                        |then: &Vec<u8>| then.get(number * 512..).unwrap_or_default().starts_with(bytes);
                    assert!(since_sync.iter().any(was), "seed {seed} step {step} sector {number}");
                }
            }
        }
    }
}
