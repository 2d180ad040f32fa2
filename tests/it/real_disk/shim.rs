//! Calls of a real process that fail: a library that is put before the C library makes them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::recorder::{DIRECTORY, EVENTS};
use super::{Said, reopened, shown, this_test};

/// What is made to fail.
struct Strike {
    call: &'static str,
    path: &'static str,
    nth: u32,
    every: u32,
    errno: i32,
}

const EIO: i32 = 5;
const EINTR: i32 = 4;
const ENOSPC: i32 = 28;
const EDQUOT: i32 = 122;
/// Half of the work is done.
const SHORT: i32 = 0;

/// The library, built for this run; nothing where that is not possible.
fn library(folder: &Path) -> Option<PathBuf> {
    let library = folder.join("shim.so");
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        println!("skipped: calls are made to fail on Linux with glibc only");
        return None;
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/shim/shim.c");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).output();
    match built {
        Ok(output) if output.status.success() => Some(library),
        Ok(output) => panic!("the shim does not build: {}", shown(&output)),
        Err(error) => {
            println!("skipped: no C compiler: {error}");
            None
        }
    }
}

/// Records with the strike, and checks what is left; what the recorder said.
fn struck(library: &Path, strike: &Strike) -> Said {
    let Strike { call, path, nth, every, errno } = strike;
    let what = format!("{call} of {path:?} number {nth} and every {every} behind it: errno {errno}");
    let folder = tempfile::tempdir().unwrap();
    let output = this_test(&[], "recorder::recorder")
        .env("LD_PRELOAD", library)
        .env("SHIM_CALL", call)
        .env("SHIM_PATH", path)
        .env("SHIM_NTH", nth.to_string())
        .env("SHIM_EVERY", every.to_string())
        .env("SHIM_ERRNO", errno.to_string())
        .env(DIRECTORY, folder.path().join("store"))
        .env(EVENTS, "120")
        .output()
        .unwrap();
    assert!(output.status.success(), "{what}: {}", shown(&output));
    let said = Said::of(&output);
    assert!(said.done, "{what}: {}", shown(&output));
    let store = folder.path().join("store");
    let begun = store.join("CONTROL").exists();
    assert!(begun || said.refused.iter().any(|refused| refused.starts_with("open")), "{what}: {said:?}");
    if begun {
        reopened(&store, &said, &what);
    }
    println!(
        "{what}: {} acknowledged, poisoned {}, refused {:?}",
        said.events(),
        said.poisoned,
        said.refused
    );
    said
}

#[test]
fn a_write_or_a_sync_that_fails_in_a_real_process_poisons_it_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path()) else { return };
    let (mut runs, mut events) = (0, 0);
    for (call, path, errno) in [
        ("fdatasync", ".seg", EIO),
        ("fdatasync", ".seg", ENOSPC),
        ("fdatasync", ".seg", EDQUOT),
        ("pwritev", ".seg", EIO),
        ("pwritev", ".seg", ENOSPC),
        ("pwritev", "CONTROL", EIO),
    ] {
        for nth in [1, 2, 9, 40] {
            let said = struck(&library, &Strike { call, path, nth, every: 0, errno });
            // The first ones may hit the creation of the store, which is refused then.
            let opened = !said.refused.iter().any(|refused| refused.starts_with("open"));
            assert!(!said.refused.is_empty(), "{call} {nth}: nobody was told");
            assert!(said.poisoned || !opened, "{call} {nth}: {said:?}");
            events += said.events();
            runs += 1;
        }
    }
    println!("{runs} processes whose write or sync failed once: {events} acknowledged events, all there");
    assert!(events > 100);
}

#[test]
fn calls_that_are_interrupted_or_short_are_continued() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path()) else { return };
    for (call, path) in [("pwritev", "store"), ("pread64", "store"), ("fallocate64", "store")] {
        for errno in [EINTR, SHORT] {
            if call == "fallocate64" && errno == SHORT {
                continue;
            }
            let said = struck(&library, &Strike { call, path, nth: 1, every: 2, errno });
            assert!(said.refused.is_empty() && !said.poisoned, "{call} {errno}: {said:?}");
            assert_eq!(said.events(), 4 * 120, "{call} {errno}");
        }
    }
}

#[test]
fn without_space_for_new_segments_appends_are_refused_and_nothing_is_poisoned() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path()) else { return };
    for errno in [ENOSPC, EDQUOT] {
        for nth in [3, 6] {
            let said = struck(&library, &Strike { call: "fallocate64", path: "store", nth, every: 1, errno });
            assert!(!said.poisoned, "{said:?}");
            assert!(said.refused.iter().all(|refused| refused.ends_with(" Full")), "{said:?}");
            assert!(!said.refused.is_empty(), "{nth}: {said:?}");
        }
    }
}

#[test]
fn a_directory_that_cannot_be_synced_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path()) else { return };
    let mut told = 0;
    for nth in 1..12 {
        let said = struck(&library, &Strike { call: "fsync", path: "store", nth, every: 0, errno: EIO });
        told += usize::from(!said.refused.is_empty());
    }
    println!("a failed sync of files and directories: {told} of 11 processes were refused something");
    assert!(told > 3);
}
