use super::{Disk, OpenMode, RealDisk, check_path};

fn disk() -> (tempfile::TempDir, RealDisk) {
    let dir = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(&dir.path().join("a/store"), true).unwrap();
    (dir, disk)
}

#[test]
fn only_plain_relative_paths_pass() {
    for good in ["", "LOCK", "segments/00000001.seg", "a/b/c", "..a", "a..b"] {
        assert!(check_path(good).is_ok(), "{good}");
    }
    for bad in ["/", "/etc/passwd", "..", "a/..", "a/../b", "./a", "a//b", "a/", "a\0b", "a\\b"] {
        assert!(check_path(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_second_lock_is_refused() {
    let (_dir, disk) = disk();
    let lock = disk.lock("LOCK", "first").unwrap();
    assert!(disk.lock("LOCK", "second").unwrap_err().is_locked());
    assert_eq!(disk.query_lock("LOCK").unwrap(), Some("first".to_owned()));
    drop(lock);
    assert_eq!(disk.query_lock("LOCK").unwrap(), None);
    disk.lock("LOCK", "second").unwrap();
}

#[test]
fn what_is_written_is_read() {
    let (_dir, disk) = disk();
    let file = disk.create_excl("f").unwrap();
    file.write_at(&[b"ab", b"", b"cde"], 3).unwrap();
    let mut buf = [7; 9];
    assert_eq!(disk.open("f", OpenMode::Read).unwrap().read_at(&mut buf, 0).unwrap(), 8);
    assert_eq!(&buf[..8], b"\0\0\0abcde");
    assert_eq!(&file.map().unwrap()[..], b"\0\0\0abcde");
}
