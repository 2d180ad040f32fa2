mod crash;
mod faults;
mod plan;

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

use super::{DiskOp, SimDisk};
use crate::disk::{Disk, DiskFile, FsKind, OpenMode};

const SEEDS: u64 = 600;

/// A disk with a durable file `f` of these bytes, and its handle.
fn with_file(bytes: &[u8]) -> (SimDisk, Arc<dyn DiskFile>) {
    let disk = SimDisk::new();
    let file = disk.create_excl("f").unwrap();
    file.write_at(&[bytes], 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir("").unwrap();
    (disk, file)
}

/// What the seeds leave of `path`.
fn outcomes(disk: &SimDisk, path: &str) -> BTreeSet<Option<Vec<u8>>> {
    (0..SEEDS).map(|seed| disk.crash(seed).contents(path)).collect()
}

fn read(disk: &SimDisk, path: &str) -> Vec<u8> {
    let file = disk.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap().try_into().unwrap()];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

#[test]
fn what_is_written_is_read_and_the_end_is_the_end() {
    let (disk, file) = with_file(b"abc");
    file.write_at(&[b"12", b"", b"345"], 5000).unwrap();
    let mut buf = [9; 8];
    assert_eq!(file.read_at(&mut buf, 4999).unwrap(), 6);
    assert_eq!(&buf, b"\x0012345\x09\x09");
    assert_eq!(file.read_at(&mut buf, 9000).unwrap(), 0);
    assert_eq!(file.len().unwrap(), 5005);
    assert_eq!(&file.map().unwrap()[..3], b"abc");
    assert_eq!(read(&disk, "f").len(), 5005);
}

#[test]
fn a_removed_file_is_there_for_those_who_have_it_open() {
    let (disk, file) = with_file(b"abc");
    disk.unlink("f").unwrap();
    disk.sync_dir("").unwrap();
    let mut buf = [0; 3];
    assert_eq!(file.read_at(&mut buf, 0).unwrap(), 3);
    let other = disk.create_excl("f").unwrap();
    assert_ne!(other.identity().unwrap(), file.identity().unwrap());
    assert_eq!(disk.create_excl("f").unwrap_err().io_kind(), Some(io::ErrorKind::AlreadyExists));
}

#[test]
fn the_lock_is_one_writers_and_dies_with_its_process() {
    let disk = SimDisk::new();
    let reader = disk.other_process();
    assert_eq!(reader.query_lock("LOCK").unwrap(), None);
    assert!(disk.files().is_empty(), "a query creates nothing");
    let lock = disk.lock("LOCK", "pid 1").unwrap();
    let e = disk.lock("LOCK", "pid 2").unwrap_err();
    assert!(e.is_locked() && e.to_string().contains("pid 1"), "{e}");
    assert_eq!(reader.query_lock("LOCK").unwrap(), Some("pid 1".to_owned()));
    assert!(lock.still_valid().unwrap());
    disk.remove("LOCK");
    assert!(!lock.still_valid().unwrap());
    assert!(reader.lock("LOCK", "pid 2").unwrap_err().is_locked());
    assert!(disk.snapshot().query_lock("LOCK").unwrap().is_some());
    assert_eq!(disk.crash(0).query_lock("LOCK").unwrap(), None);
    drop(lock);
    let second = disk.lock("LOCK", "pid 3").unwrap();

    let next = disk.kill();
    assert!(disk.exists("f").unwrap_err().to_string().contains("killed"));
    let _third = next.lock("LOCK", "pid 4").unwrap();
    drop(second);
    assert_eq!(reader.query_lock("LOCK").unwrap(), Some("pid 4".to_owned()), "a dead handle frees nothing");
}

#[test]
fn a_killed_process_leaves_what_it_wrote() {
    let (disk, file) = with_file(b"old");
    file.write_at(&[b"new"], 0).unwrap();
    let next = disk.kill();
    file.write_at(&[b"bad"], 0).unwrap_err();
    assert_eq!(read(&next, "f"), b"new");
    assert_eq!(next.durable_contents("f"), Some(b"old".to_vec()));
}

#[test]
fn a_kill_ends_a_sync_that_waits() {
    let (disk, file) = with_file(b"old");
    file.write_at(&[b"new"], 0).unwrap();
    disk.block_sync();
    let syncing = std::thread::spawn(move || file.sync_data());
    disk.wait_until_sync_blocks();
    let next = disk.kill();
    syncing.join().unwrap().unwrap_err();
    assert_eq!(next.durable_contents("f"), Some(b"old".to_vec()));
}

#[test]
fn a_snapshot_goes_its_own_way() {
    let (disk, file) = with_file(b"one");
    let copy = disk.snapshot();
    file.write_at(&[b"two"], 0).unwrap();
    copy.unlink("f").unwrap();
    assert_eq!(copy.contents("f"), None);
    assert_eq!(disk.contents("f"), Some(b"two".to_vec()));
    assert_eq!(disk.snapshot().durable_contents("f"), Some(b"one".to_vec()), "what is not durable stays so");
}

#[test]
fn the_hook_sees_every_call_before_it_takes_effect() {
    let disk = SimDisk::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    disk.on_call(move |n, op, disk| {
        // Calls of its own do not come back to it.
        let there = disk.exists("f").unwrap();
        notes.lock().unwrap().push((n, op, there, disk.snapshot().contents("f")));
    });
    let file = disk.create_excl("f").unwrap();
    file.write_at(&[b"x"], 0).unwrap();
    drop(file);
    disk.clear_on_call();
    disk.unlink("f").unwrap();
    let expected = vec![(0, DiskOp::Create, false, None), (2, DiskOp::Write, true, Some(Vec::new()))];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn a_hook_may_end_itself() {
    let disk = SimDisk::new();
    let count = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&count);
    disk.on_call(move |_, _, disk| {
        *counted.lock().unwrap() += 1;
        disk.clear_on_call();
    });
    disk.exists("f").unwrap();
    disk.exists("f").unwrap();
    assert_eq!(*count.lock().unwrap(), 1);
}

#[test]
fn the_trace_tells_all_calls() {
    let (disk, file) = with_file(b"abc");
    file.allocate(0, 10).unwrap();
    disk.rename("f", "g").unwrap();
    let trace = disk.trace();
    assert_eq!(trace[..3], ["0 create f", "1 write f 0+3", "2 sync f"]);
    assert_eq!(trace[4..], ["4 reserve space in f 0+10", "5 rename f to g"]);
    assert_eq!(disk.calls(), 6);
    assert_eq!(disk.counters().syncs, 1);
    assert_eq!((disk.counters().writes, disk.counters().written_bytes), (1, 3));
}

#[test]
fn it_says_what_file_system_it_is_told() {
    let disk = SimDisk::new();
    assert_eq!(disk.fs_kind().unwrap(), FsKind::Local);
    disk.set_fs_kind(FsKind::Network("nfs".to_owned()));
    assert_eq!(disk.fs_kind().unwrap(), FsKind::Network("nfs".to_owned()));
}
