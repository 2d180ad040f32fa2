//! The writer's lock (G8, D5), against handles of this process and of another one.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use super::disk;
use crate::disk::{Disk, RealDisk};

/// Tells [`holder`] what to lock.
const DIR: &str = "SESSIONLOG_TEST_LOCK_DIR";

/// This test binary as another process that takes the lock, says so, and holds it until its input ends.
struct Holder {
    child: Child,
    /// Kept open, as the test harness in the child goes on to write.
    _output: BufReader<ChildStdout>,
}

impl Holder {
    fn start(dir: &Path) -> (Self, String) {
        let exe = std::env::current_exe().unwrap();
        let mut child = Command::new(exe)
            .args(["disk::tests::locking::holder", "--exact", "--nocapture", "--test-threads=1"])
            .env(DIR, dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.by_ref().lines().map_while(std::result::Result::ok);
        let said = lines.find_map(|line| line.split_once("holder: ").map(|(_, said)| said.to_owned()));
        (Self { child, _output: output }, said.unwrap())
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// Not a test by itself: what [`Holder`] runs.
#[test]
fn holder() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let disk = RealDisk::open(dir.as_ref(), false).unwrap();
    let lock = disk.lock("LOCK", &format!("pid {}", std::process::id()));
    let said = lock.as_ref().map_or_else(ToString::to_string, |_| "locked".to_owned());
    println!("\nholder: {said}");
    std::io::stdout().flush().unwrap();
    let mut rest = String::new();
    // The parent is done with this process when its end of the pipe closes.
    let _ = std::io::stdin().read_line(&mut rest);
}

#[test]
fn two_handles_of_one_process_are_refused_too() {
    let (_dir, disk) = disk();
    let lock = disk.lock("LOCK", "pid 7 on here").unwrap();
    assert!(lock.still_valid().unwrap());
    let other = RealDisk::open(disk.path(), false).unwrap();
    for second in [&disk, &other] {
        let e = second.lock("LOCK", "second").unwrap_err();
        assert!(e.is_locked() && e.to_string().contains("pid 7 on here"), "{e}");
        assert_eq!(second.query_lock("LOCK").unwrap(), Some("pid 7 on here".to_owned()));
    }
    drop(lock);
    assert_eq!(disk.query_lock("LOCK").unwrap(), None);
    let _again = other.lock("LOCK", "x").unwrap();
    assert_eq!(disk.query_lock("LOCK").unwrap(), Some("x".to_owned()), "nothing is left of a longer text");
}

#[test]
fn another_process_is_refused_and_named() {
    let (_dir, disk) = disk();
    let lock = disk.lock("LOCK", "pid 7 on here").unwrap();
    let (holder, said) = Holder::start(disk.path());
    assert!(said.contains("pid 7 on here"), "{said}");
    holder.end();
    drop(lock);

    let (holder, said) = Holder::start(disk.path());
    assert_eq!(said, "locked");
    let named = format!("pid {}", holder.child.id());
    assert_eq!(disk.query_lock("LOCK").unwrap(), Some(named.clone()));
    assert!(disk.lock("LOCK", "").unwrap_err().to_string().contains(&named));
    holder.end();
    disk.lock("LOCK", "").unwrap();
}

#[test]
fn the_lock_dies_with_a_killed_process() {
    let (_dir, disk) = disk();
    let (holder, said) = Holder::start(disk.path());
    assert_eq!(said, "locked");
    assert!(disk.lock("LOCK", "").unwrap_err().is_locked());
    holder.kill();
    assert_eq!(disk.query_lock("LOCK").unwrap(), None);
    disk.lock("LOCK", "").unwrap();
}

#[test]
fn removing_the_lock_file_lets_nobody_in() {
    let (_dir, disk) = disk();
    let lock = disk.lock("LOCK", "first").unwrap();
    let path = disk.path().join("LOCK");
    fs::remove_file(&path).unwrap();
    assert!(!lock.still_valid().unwrap());
    let held = disk.query_lock("LOCK").unwrap().unwrap();
    assert!(held.contains("removed"), "{held}");
    let e = disk.lock("LOCK", "second").unwrap_err();
    assert!(e.is_locked() && e.to_string().contains("removed"), "{e}");
    // The second has left a new file behind, which nobody holds.
    assert!(path.exists());
    assert!(disk.query_lock("LOCK").unwrap().is_some());
    let (holder, said) = Holder::start(disk.path());
    assert!(said.contains("a writer already"), "{said}");
    holder.end();
    drop(lock);
    assert_eq!(disk.query_lock("LOCK").unwrap(), None);
    let lock = disk.lock("LOCK", "third").unwrap();
    assert!(lock.still_valid().unwrap());
}

#[test]
fn replacing_the_lock_file_lets_nobody_in() {
    let (_dir, disk) = disk();
    let (holder, said) = Holder::start(disk.path());
    assert_eq!(said, "locked");
    fs::write(disk.path().join("new"), "stranger").unwrap();
    fs::rename(disk.path().join("new"), disk.path().join("LOCK")).unwrap();
    assert!(disk.query_lock("LOCK").unwrap().is_some());
    assert!(disk.lock("LOCK", "second").unwrap_err().is_locked());
    holder.kill();
    disk.lock("LOCK", "third").unwrap();
}

#[test]
fn a_moved_directory_is_noticed() {
    let (dir, disk) = disk();
    let lock = disk.lock("LOCK", "first").unwrap();
    fs::rename(disk.path(), dir.path().join("elsewhere")).unwrap();
    assert!(!lock.still_valid().unwrap());
    let other = RealDisk::open(disk.path(), true).unwrap();
    let _other = other.lock("LOCK", "other").unwrap();
    assert!(!lock.still_valid().unwrap());
    let moved = RealDisk::open(&dir.path().join("elsewhere"), false).unwrap();
    assert!(moved.lock("LOCK", "second").unwrap_err().is_locked(), "the moved store still has its writer");
}

#[test]
fn a_query_never_makes_a_writer_fail() {
    let (_dir, disk) = disk();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    disk.query_lock("LOCK").unwrap();
                }
            });
        }
        for round in 0..300 {
            let lock = disk.lock("LOCK", "writer").unwrap();
            assert_eq!(disk.query_lock("LOCK").unwrap(), Some("writer".to_owned()), "round {round}");
            drop(lock);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn one_of_many_wins_also_while_the_file_is_removed_again_and_again() {
    let (_dir, disk) = disk();
    let (inside, wins) = (AtomicU32::new(0), AtomicU32::new(0));
    let start = Barrier::new(4);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::remove_file(disk.path().join("LOCK"));
                thread::yield_now();
            }
        });
        let writers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..40 {
                        if let Ok(lock) = disk.lock("LOCK", "writer") {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two writers at once");
                            wins.fetch_add(1, Ordering::Relaxed);
                            thread::yield_now();
                            inside.fetch_sub(1, Ordering::SeqCst);
                            drop(lock);
                        }
                    }
                })
            })
            .collect();
        start.wait();
        for writer in writers {
            writer.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(wins.load(Ordering::Relaxed) > 0);
}

#[test]
fn the_holders_text_is_safe_to_print() {
    let (_dir, disk) = disk();
    let text = format!("pid 1\n\x1b[31m{}", "x".repeat(10_000));
    let _lock = disk.lock("LOCK", &text).unwrap();
    let held = disk.query_lock("LOCK").unwrap().unwrap();
    assert!(held.starts_with("pid 1  [31mxxx") && held.len() <= 4096 && !held.contains('\n'));
}

#[test]
fn a_lock_file_that_cannot_be_read_is_an_error() {
    let (_dir, disk) = disk();
    fs::create_dir(disk.path().join("LOCK")).unwrap();
    let e = disk.lock("LOCK", "").unwrap_err();
    assert!(e.to_string().contains("LOCK"), "{e}");
    assert!(!e.is_locked());
}
