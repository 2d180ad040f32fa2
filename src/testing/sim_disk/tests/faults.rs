//! Faults, full disks and damage.

use std::collections::BTreeSet;
use std::io;

use super::{outcomes, read, with_file};
use crate::ErrorKind;
use crate::disk::{Disk, OpenMode};
use crate::testing::{DiskOp, Effect};

#[test]
fn a_failed_sync_loses_its_pages_though_the_next_one_succeeds() {
    let (disk, file) = with_file(b"old");
    file.write_at(&[b"new"], 0).unwrap();
    disk.fail_nth(DiskOp::Sync, 1, io::ErrorKind::Other);
    let e = file.sync_data().unwrap_err();
    assert!(e.to_string().contains("/simulated/f"), "{e}");
    file.sync_data().unwrap();
    assert_eq!(disk.contents("f"), Some(b"new".to_vec()));
    assert_eq!(disk.durable_contents("f"), Some(b"old".to_vec()));
    // The disk itself may have written them, all the same.
    assert!(outcomes(&disk, "f").contains(&Some(b"new".to_vec())));

    let rewritten = disk.snapshot();
    let again = rewritten.open("f", OpenMode::ReadWrite).unwrap();
    again.write_at(&[b"new"], 0).unwrap();
    again.sync_data().unwrap();
    assert_eq!(outcomes(&rewritten, "f"), BTreeSet::from([Some(b"new".to_vec())]));

    disk.evict_clean();
    assert_eq!(disk.contents("f"), Some(b"old".to_vec()));
}

#[test]
fn a_sync_that_fails_without_an_effect_leaves_all_to_the_next() {
    let (disk, file) = with_file(b"old");
    file.write_at(&[b"new"], 0).unwrap();
    disk.fail_nth_with(DiskOp::Sync, 1, io::ErrorKind::Other, Effect::Nothing);
    file.sync_data().unwrap_err();
    file.sync_data().unwrap();
    assert_eq!(disk.durable_contents("f"), Some(b"new".to_vec()));
}

#[test]
fn a_sync_may_succeed_and_say_otherwise() {
    let (disk, file) = with_file(b"old");
    file.write_at(&[b"new"], 0).unwrap();
    disk.fail_nth_with(DiskOp::Sync, 1, io::ErrorKind::Other, Effect::Whole);
    file.sync_data().unwrap_err();
    assert_eq!(disk.durable_contents("f"), Some(b"new".to_vec()));
}

#[test]
fn a_failed_directory_sync_promises_nothing() {
    let (disk, _file) = with_file(b"x");
    disk.rename("f", "g").unwrap();
    disk.fail_nth(DiskOp::SyncDir, 1, io::ErrorKind::Other);
    disk.sync_dir("").unwrap_err();
    assert_eq!(outcomes(&disk, "g"), BTreeSet::from([None, Some(b"x".to_vec())]));
}

#[test]
fn faults_strike_when_they_should() {
    let (disk, file) = with_file(&[0; 2048]);
    disk.fail_nth(DiskOp::Write, 2, io::ErrorKind::Other);
    file.write_at(&[b"a"], 0).unwrap();
    assert_eq!(file.write_at(&[b"b"], 0).unwrap_err().kind(), ErrorKind::Io);
    file.write_at(&[b"c"], 1).unwrap();
    assert_eq!(&disk.contents("f").unwrap()[..2], b"ac");

    disk.fail_nth_with(DiskOp::Write, 1, io::ErrorKind::StorageFull, Effect::Part);
    assert!(file.write_at(&[&[7; 2048]], 0).unwrap_err().is_full());
    let left = disk.contents("f").unwrap();
    assert_eq!((left[1023], left[1024]), (7, 0));

    disk.fail_from(DiskOp::Rename, 1, io::ErrorKind::PermissionDenied);
    disk.rename("f", "g").unwrap_err();
    disk.rename("f", "g").unwrap_err();
    disk.clear_faults();
    disk.rename("f", "g").unwrap();

    disk.fail_nth_call(2, io::ErrorKind::Other);
    disk.exists("g").unwrap();
    disk.list("").unwrap_err();
    disk.list("").unwrap();
}

#[test]
fn the_power_goes_at_a_call() {
    let (disk, file) = with_file(b"a");
    disk.stop_at_call(disk.calls() + 1);
    file.write_at(&[b"b"], 0).unwrap();
    file.sync_data().unwrap_err();
    disk.other_process().exists("f").unwrap_err();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([Some(b"a".to_vec()), Some(b"b".to_vec())]));
    assert!(disk.crash(1).exists("f").unwrap());
}

#[test]
fn a_full_disk_refuses_what_does_not_fit() {
    let (disk, file) = with_file(&[1; 4096]);
    disk.set_free_space(Some(4096 + 64));
    assert_eq!(disk.free_space().unwrap(), 4160);
    file.write_at(&[&[2; 4096]], 0).unwrap();
    let e = file.write_at(&[&[3; 8192]], 4000).unwrap_err();
    assert!(e.is_full(), "{e}");
    assert_eq!(file.len().unwrap(), 8192, "what fitted is there");
    assert_eq!(disk.free_space().unwrap(), 64);
    assert!(file.allocate(8192, 1).unwrap_err().is_full());
    file.allocate(100, 8000).unwrap();
    file.set_len(100_000).unwrap();

    disk.create_excl("g").unwrap();
    assert!(disk.create_excl("h").unwrap_err().is_full());
    assert!(disk.create_dir("h").unwrap_err().is_full());
    disk.rename("g", "h").unwrap();
    disk.charge_renames(true);
    assert!(disk.rename("h", "g").unwrap_err().is_full());

    disk.unlink("f").unwrap();
    assert_eq!(disk.free_space().unwrap(), 64, "an open file keeps its space");
    drop(file);
    assert_eq!(disk.free_space().unwrap(), 8192 + 64);
    disk.set_free_space(None);
    disk.create_excl("i").unwrap();
}

#[test]
fn reserved_space_is_there_when_it_is_written() {
    let (disk, file) = with_file(b"");
    file.allocate(0, 8192).unwrap();
    file.sync_data().unwrap();
    assert_eq!(file.len().unwrap(), 8192);
    disk.set_free_space(Some(0));
    file.write_at(&[&[1; 8192]], 0).unwrap();
    let crashed = disk.crash(0);
    assert_eq!(crashed.free_space().unwrap(), 0);
    let file = crashed.open("f", OpenMode::ReadWrite).unwrap();
    file.write_at(&[&[1; 8192]], 0).unwrap();
    assert!(file.write_at(&[&[1]], 8192).unwrap_err().is_full());
}

#[test]
fn zero_filling_takes_space() {
    let (disk, file) = with_file(b"");
    disk.set_free_space(Some(8192));
    file.write_at(&[&[0; 8192]], 0).unwrap();
    assert_eq!(disk.free_space().unwrap(), 0);
    file.sync_data().unwrap();
    assert_eq!(disk.durable_contents("f"), Some(vec![0; 8192]));
}

#[test]
fn bad_sectors_stay_bad() {
    let (disk, file) = with_file(&[1; 4096]);
    assert!(disk.fail_reads("f", 1000..1001));
    let mut buf = [0; 1000];
    assert_eq!(file.read_at(&mut buf, 0).unwrap(), 1000);
    file.read_at(&mut buf, 1).unwrap_err();
    file.map().unwrap_err();
    let crashed = disk.crash(3);
    crashed.open("f", OpenMode::Read).unwrap().read_at(&mut buf, 900).unwrap_err();
    assert!(crashed.heal_reads("f"));
    crashed.open("f", OpenMode::Read).unwrap().read_at(&mut buf, 900).unwrap();
    assert!(!disk.fail_reads("g", 0..1));
}

#[test]
fn damage_is_seen_at_once_and_after_a_power_cut() {
    let (disk, file) = with_file(&[0; 600]);
    file.write_at(&[b"\x01"], 10).unwrap();
    assert!(disk.flip("f", 10, 7));
    assert!(disk.overwrite("f", 20, b"xy"));
    for left in outcomes(&disk, "f").into_iter().flatten().chain(disk.contents("f")) {
        assert!(left[10] == 0x80 || left[10] == 0x81);
        assert_eq!(&left[20..22], b"xy");
    }
    assert!(disk.zero("f", 0..100_000));
    assert_eq!(disk.contents("f"), Some(vec![0; 600]));
    assert!(disk.truncate("f", 5));
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([Some(vec![0; 5])]));
    assert!(disk.remove("f"));
    assert!(!disk.remove("f") && !disk.flip("f", 0, 0));
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([None]));
}

#[test]
fn a_read_only_disk_refuses_changes() {
    let (disk, file) = with_file(b"abc");
    disk.set_read_only(true);
    assert_eq!(read(&disk, "f"), b"abc");
    for refused in [
        file.write_at(&[b"x"], 0).err(),
        file.set_len(0).err(),
        disk.open("f", OpenMode::ReadWrite).err(),
        disk.create_excl("g").err(),
        disk.create_dir("d").err(),
        disk.rename("f", "g").err(),
        disk.unlink("f").err(),
        disk.lock("LOCK", "").err(),
    ] {
        assert_eq!(refused.unwrap().io_kind(), Some(io::ErrorKind::ReadOnlyFilesystem));
    }
    assert_eq!(disk.query_lock("LOCK").unwrap(), None);
    let reader = disk.open("f", OpenMode::Read).unwrap();
    disk.set_read_only(false);
    assert_eq!(reader.write_at(&[b"x"], 0).unwrap_err().io_kind(), Some(io::ErrorKind::PermissionDenied));
}

#[test]
fn damaged_names_are_what_they_are_whatever_was_pending() {
    let (disk, _file) = with_file(b"f");
    disk.create_excl("created").unwrap();
    assert!(disk.remove("created"));
    assert_eq!(outcomes(&disk, "created"), BTreeSet::from([None]));
    disk.unlink("f").unwrap();
    disk.install("f", b"new");
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([Some(b"new".to_vec())]));

    disk.rename("f", "g").unwrap();
    disk.install("f", b"other");
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([Some(b"other".to_vec())]));
    assert_eq!(outcomes(&disk, "g"), BTreeSet::from([None, Some(b"new".to_vec())]));
    disk.sync_dir("").unwrap();
    assert_eq!(outcomes(&disk, "g"), BTreeSet::from([Some(b"new".to_vec())]));
}
