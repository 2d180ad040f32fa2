use std::fs::File;
use std::io;

use super::{RealLock, flock, query};

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
