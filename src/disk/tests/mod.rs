mod both;
mod locking;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Disk, FsKind, MapBytes, OpenMode, RealDisk, check_path};
use crate::ErrorKind;

fn disk() -> (tempfile::TempDir, RealDisk) {
    let dir = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(&dir.path().join("a/store"), true).unwrap();
    (dir, disk)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn only_plain_relative_paths_pass() {
    for good in ["", "LOCK", "segments/00000001.seg", "a/b/c", "..a", "a..b"] {
        assert!(check_path(good).is_ok(), "{good}");
    }
    for bad in ["/", "/etc/passwd", "..", "a/..", "a/../b", "./a", "a//b", "a/", "a\0b", "a\\b"] {
        assert_eq!(check_path(bad).unwrap_err().kind(), ErrorKind::InvalidArgument, "{bad}");
    }
    let (_dir, disk) = disk();
    for refused in [
        disk.create_excl("../x").err(),
        disk.open("/etc/passwd", OpenMode::Read).err(),
        disk.rename("x", "../y").err(),
        disk.rename("../y", "x").err(),
        disk.unlink("../x").err(),
        disk.list("..").err(),
        disk.create_dir("../x").err(),
        disk.sync_dir("..").err(),
        disk.exists("..").err(),
        disk.lock("../LOCK", "").err(),
        disk.query_lock("../LOCK").err(),
    ] {
        assert_eq!(refused.unwrap().kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn files_and_directories_are_private() {
    let (_dir, disk) = disk();
    disk.create_dir("d").unwrap();
    disk.create_excl("d/f").unwrap();
    let _lock = disk.lock("LOCK", "").unwrap();
    let root = disk.path();
    assert_eq!(mode(root), 0o700);
    assert_eq!(mode(root.parent().unwrap()), 0o700);
    assert_eq!(mode(&root.join("d")), 0o700);
    assert_eq!(mode(&root.join("d/f")), 0o600);
    assert_eq!(mode(&root.join("LOCK")), 0o600);
}

#[test]
fn a_missing_directory_is_created_only_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let e = RealDisk::open(&path, false).unwrap_err();
    assert_eq!((e.kind(), e.path()), (ErrorKind::NotFound, Some(path.as_path())));
    assert!(!path.exists());
    fs::write(&path, "").unwrap();
    assert_eq!(RealDisk::open(&path, false).unwrap_err().kind(), ErrorKind::InvalidArgument);
    RealDisk::open(&path, true).unwrap_err();
    RealDisk::open(&dir.path().join("y/z"), true).unwrap();
    RealDisk::open(&dir.path().join("y/z"), true).unwrap();
}

#[test]
fn an_error_names_operation_and_full_path() {
    let (_dir, disk) = disk();
    let full = disk.path().join("f");
    let e = disk.open("f", OpenMode::Read).unwrap_err();
    assert_eq!((e.kind(), e.path()), (ErrorKind::NotFound, Some(full.as_path())));
    assert!(e.to_string().starts_with(&format!("open {}: ", full.display())), "{e}");
    let file = disk.create_excl("f").unwrap();
    let e = disk.create_excl("f").unwrap_err();
    assert_eq!(e.io_kind(), Some(io::ErrorKind::AlreadyExists));
    drop(file);
    let reader = disk.open("f", OpenMode::Read).unwrap();
    let e = reader.write_at(&[b"abc"], 7).unwrap_err();
    assert!(e.to_string().starts_with(&format!("write 3 bytes at 7 of {}: ", full.display())), "{e}");
    let e = disk.rename("g", "h").unwrap_err();
    assert!(e.to_string().contains("store/h:") && e.to_string().contains("store/g"), "{e}");
}

#[test]
fn many_buffers_are_one_write() {
    let (_dir, disk) = disk();
    let file = disk.create_excl("f").unwrap();
    // More than one call of the kernel's takes.
    let parts: Vec<[u8; 3]> = (0..3000u16).map(|n| [n.to_le_bytes()[0], n.to_le_bytes()[1], 7]).collect();
    let bufs: Vec<&[u8]> = parts.iter().map(<[u8; 3]>::as_slice).collect();
    file.write_at(&bufs, 5).unwrap();
    let mut read = vec![0; 9001];
    assert_eq!(file.read_at(&mut read, 5).unwrap(), 9000);
    assert_eq!(read[..9000], parts.concat());
    file.write_at(&[], 0).unwrap();
    file.write_at(&[b""], 1 << 40).unwrap();
    assert_eq!(file.len().unwrap(), 9005);
    file.write_at(&[b"x"], u64::MAX).unwrap_err();
}

#[test]
fn a_map_is_the_whole_file() {
    let (_dir, disk) = disk();
    let file = disk.create_excl("f").unwrap();
    assert!(file.map().unwrap().is_empty());
    file.write_at(&[&[1; 5000], &[2; 5000]], 0).unwrap();
    let map = MapBytes::from(file.map().unwrap());
    assert_eq!(*map, [[1; 5000], [2; 5000]].concat());
    drop(file);
    disk.unlink("f").unwrap();
    assert_eq!(map[9999], 2, "a map outlives handle and name");
    assert_eq!(disk.counters().maps, 2);
}

#[test]
fn names_that_are_no_text_are_left_out() {
    use std::os::unix::ffi::OsStrExt;

    let (_dir, disk) = disk();
    disk.create_excl("b").unwrap();
    disk.create_dir("a").unwrap();
    let odd = disk.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
    // Some file systems refuse such names.
    let _ = fs::write(odd, "");
    assert_eq!(disk.list("").unwrap(), ["a", "b"]);
}

#[test]
fn space_and_kind_are_the_operating_systems() {
    let (_dir, disk) = disk();
    assert!(disk.free_space().unwrap() > 0);
    assert_ne!(disk.fs_kind().unwrap(), FsKind::Network("nfs".to_owned()));
}

#[test]
fn calls_are_counted() {
    let (_dir, disk) = disk();
    let file = disk.create_excl("f").unwrap();
    file.write_at(&[b"abc", b"de"], 0).unwrap();
    file.read_at(&mut [0; 10], 0).unwrap();
    file.sync_data().unwrap();
    file.sync_file().unwrap();
    disk.sync_dir("").unwrap();
    let counters = disk.clone().counters();
    assert_eq!((counters.opens, counters.reads, counters.read_bytes), (1, 1, 5));
    assert_eq!((counters.writes, counters.written_bytes), (1, 5));
    assert_eq!((counters.syncs, counters.dir_syncs), (2, 1));
}

#[test]
fn reading_needs_no_right_to_write() {
    let (_dir, disk) = disk();
    let file = disk.create_excl("f").unwrap();
    file.write_at(&[b"abc"], 0).unwrap();
    let root = disk.path().to_path_buf();
    fs::set_permissions(root.join("f"), fs::Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o500)).unwrap();
    let reader = RealDisk::open(&root, false).unwrap();
    assert_eq!(reader.query_lock("LOCK").unwrap(), None);
    assert_eq!(reader.open("f", OpenMode::Read).unwrap().len().unwrap(), 3);
    assert_eq!(reader.list("").unwrap(), ["f"], "readers leave nothing behind");
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
}
