use std::fs::{self, File};
use std::io;
use std::thread;
use std::time::Duration;

use super::{RealLock, exclusive, flock, is_at, lock_file, query};

/// What both kinds of lock promise, on a file of their own.
fn contract(
    take: fn(&File) -> io::Result<bool>,
    release: fn(&File) -> io::Result<()>,
    is_held: fn(&File) -> io::Result<bool>,
) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LOCK");
    let first = File::create(&path).unwrap();
    let second = File::options().read(true).write(true).open(&path).unwrap();
    let reader = File::open(&path).unwrap();
    assert!(!is_held(&reader).unwrap());
    assert!(take(&first).unwrap());
    assert!(is_held(&reader).unwrap());
    assert!(!take(&second).unwrap());
    // Closing another handle of the file frees nothing.
    drop(File::open(&path).unwrap());
    assert!(is_held(&reader).unwrap());
    release(&first).unwrap();
    assert!(!is_held(&reader).unwrap());
    assert!(take(&second).unwrap());
    drop(second);
    assert!(take(&first).unwrap());
}

#[test]
fn flock_keeps_the_contract() {
    contract(flock::take, flock::release, flock::is_held);
    const { assert!(flock::QUERY_INTERFERES) };
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn ofd_keeps_the_contract() {
    contract(super::ofd::take, super::ofd::release, super::ofd::is_held);
}

/// The same descriptors as in a child that was forked while the lock was held.
fn inherited(lock: &RealLock, owner: u32) -> RealLock {
    let (file, dir) = (lock.file.try_clone().unwrap(), lock.dir.try_clone().unwrap());
    RealLock { file, dir, path: lock.path.clone(), owner }
}

#[test]
fn a_forked_child_frees_nothing_and_keeps_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LOCK");
    let lock = RealLock::take(path.clone(), "parent", 0o600).unwrap();
    drop(inherited(&lock, lock.owner + 1));
    assert_eq!(query(&path).unwrap(), Some("parent".to_owned()));
    let child = inherited(&lock, lock.owner + 1);
    drop(lock);
    assert_eq!(query(&path).unwrap(), None, "the parent's drop frees it, whoever has copies");
    let _next = RealLock::take(path, "next", 0o600).unwrap();
    drop(child);
}

#[test]
fn a_file_that_was_replaced_before_it_was_locked_is_not_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LOCK");
    let mut removals = 2;
    let file = lock_file(&path, 0o600, || {
        if removals > 0 {
            removals -= 1;
            fs::remove_file(&path).unwrap();
        }
    });
    assert!(is_at(&file.unwrap(), &path).unwrap());
    // Somebody who never stops is an error and no endless loop.
    lock_file(&path, 0o600, || fs::remove_file(&path).unwrap()).unwrap_err();
}

#[test]
fn a_writer_outwaits_a_query() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LOCK");
    let query = File::open(dir.path()).unwrap();
    query.try_lock_shared().unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| RealLock::take(path.clone(), "writer", 0o600));
        while !File::open(&path).is_ok_and(|file| exclusive::is_held(&file).unwrap()) {
            thread::yield_now();
        }
        // It has the file and goes for the directory, for much longer than this.
        thread::sleep(Duration::from_millis(10));
        query.unlock().unwrap();
        writer.join().unwrap().unwrap();
    });
}
