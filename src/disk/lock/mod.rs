//! The writer's lock (G8, D5).
//!
//! Two kernel locks make one: an exclusive lock on the lock file, and an exclusive `flock` on the directory that it
//! is in. The first carries the holder's text and can be asked about by readers; the second is why removing or
//! replacing the lock file lets nobody in: the directory is still the same. After the first is taken, the path must
//! still lead to the locked inode, or it is tried again.
//!
//! What it guarantees: at most one handle over all processes of the machine, two handles of one process included;
//! it ends with the process, however that dies, and no stale lock is ever left. What it does not: other machines on
//! a network file system, which is why writers refuse those (D5); and where a file system has no `flock` on
//! directories, a removed lock file lets a second writer in, who is then caught by [`DiskLock::still_valid`].
//!
//! A forked child inherits both locks with its descriptors, and holds them as long as it keeps them; the drop in the
//! parent releases them all the same, and the drop in the child releases nothing.

#[cfg(any(not(any(target_os = "linux", target_os = "android")), test))]
mod flock;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod ofd;

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::DiskLock;
use crate::{Error, ErrorKind, Result};

#[cfg(not(any(target_os = "linux", target_os = "android")))]
use flock as exclusive;
#[cfg(any(target_os = "linux", target_os = "android"))]
use ofd as exclusive;

/// How often a lock is tried that only a passing query may be holding, and the pause between: a quarter of a second,
/// against the microseconds that a query takes.
const TRIES: u32 = 125;
const PAUSE: Duration = Duration::from_millis(2);

/// How often the lock file may be replaced between opening and locking it before that counts as an error.
const REPLACEMENTS: u32 = 100;

/// What is read of the holder's text.
const INFO_BYTES: usize = 4096;

const UNKNOWN_HOLDER: &str = "unknown";

#[derive(Debug)]
pub(super) struct RealLock {
    file: File,
    dir: File,
    path: PathBuf,
    owner: u32,
}

impl RealLock {
    /// Takes the lock at `path`, creating the file with `mode` when it is missing.
    pub(super) fn take(path: PathBuf, info: &str, mode: u32) -> Result<Self> {
        let file = lock_file(&path, mode, || {})?;
        let dir = lock_directory(&path)?;
        write_info(&file, info);
        Ok(Self { file, dir, path, owner: std::process::id() })
    }
}

impl DiskLock for RealLock {
    fn still_valid(&self) -> Result<bool> {
        let failed = |e| Error::io("check the lock", &self.path, e);
        let same_file = is_at(&self.file, &self.path).map_err(failed)?;
        Ok(same_file && is_at(&self.dir, parent(&self.path)).map_err(failed)?)
    }
}

impl Drop for RealLock {
    fn drop(&mut self) {
        // In a forked child both descriptors stand for the parent's locks: unlocking would let a second writer in.
        if self.owner == std::process::id() {
            // Closing releases as well, except while a child still holds copies. A failure leaves it at that.
            let _ = self.dir.unlock();
            let _ = exclusive::release(&self.file);
        }
    }
}

/// Who holds the lock at `path`, if anybody does.
pub(super) fn query(path: &Path) -> Result<Option<String>> {
    let failed = |e| Error::io("query the lock", path, e);
    match File::open(path) {
        Ok(file) if exclusive::is_held(&file).map_err(failed)? => return Ok(Some(read_info(&file))),
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(failed(e)),
    }
    // Nobody on the file; a writer whose lock file was removed still holds the directory. The shared lock of this
    // test lasts for microseconds, and writers try again for longer than that.
    let dir = File::open(parent(path)).map_err(failed)?;
    match dir.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Ok(Some(format!("{UNKNOWN_HOLDER} (its lock file was removed)"))),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Opens and locks the file that is at `path` at the end. `opened` is called between the two.
fn lock_file(path: &Path, mode: u32, mut opened: impl FnMut()) -> Result<File> {
    let failed = |e| Error::io("lock", path, e);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(mode);
    for _ in 0..REPLACEMENTS {
        let file = options.open(path).map_err(failed)?;
        opened();
        if !patiently(|| exclusive::take(&file), || exclusive::QUERY_INTERFERES).map_err(failed)? {
            return Err(locked(path, &read_info(&file)));
        }
        if is_at(&file, path).map_err(failed)? {
            return Ok(file);
        }
    }
    Err(failed(io::Error::other("the file was replaced again and again while it was being locked")))
}

/// Locks the directory of `path`, whose lock file this handle holds already.
fn lock_directory(path: &Path) -> Result<File> {
    let dir_path = parent(path);
    let dir = File::open(dir_path).map_err(|e| Error::io("lock", dir_path, e))?;
    let attempt = || match dir.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(e)) => Err(e),
    };
    match patiently(attempt, || true) {
        Ok(true) => Ok(dir),
        Ok(false) => Err(locked(path, &format!("{UNKNOWN_HOLDER}, as its lock file was removed"))),
        // Some network file systems have no such lock on directories. Then the lock file must do.
        Err(e) if unsupported(&e) => Ok(dir),
        Err(e) => Err(Error::io("lock", dir_path, e)),
    }
}

/// Tries until it is taken; for longer than once only while a query may be what is in the way.
fn patiently(attempt: impl Fn() -> io::Result<bool>, may_be_query: impl Fn() -> bool) -> io::Result<bool> {
    for _ in 1..TRIES {
        if attempt()? {
            return Ok(true);
        }
        if !may_be_query() {
            return Ok(false);
        }
        thread::sleep(PAUSE);
    }
    attempt()
}

fn unsupported(e: &io::Error) -> bool {
    use nix::errno::Errno;

    let code = e.raw_os_error().map(Errno::from_raw);
    e.kind() == io::ErrorKind::Unsupported
        || matches!(code, Some(Errno::EBADF | Errno::EINVAL | Errno::ENOLCK | Errno::ENOSYS | Errno::EISDIR))
}

fn locked(path: &Path, holder: &str) -> Error {
    let text = format!(
        "lock {}: the store has a writer already: {holder}. Close it, or open the store for reading",
        path.display()
    );
    Error::new(ErrorKind::Locked, text)
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Whether `path` leads to the open `file`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Leaves the holder's text. It is information only: on a full disk the lock holds without it.
fn write_info(file: &File, info: &str) {
    let bytes = info.as_bytes();
    // Over the old text and not behind a truncation, so that a full disk keeps the block that is there.
    let written = file.write_all_at(bytes, 0).and_then(|()| file.set_len(bytes.len() as u64));
    if written.is_err() {
        // Better no name than that of an earlier holder.
        let _ = file.set_len(0);
    }
}

/// The holder's text, as one line that is safe to print.
fn read_info(file: &File) -> String {
    let mut bytes = vec![0; INFO_BYTES];
    let got = file.read_at(&mut bytes, 0).unwrap_or(0);
    bytes.truncate(got);
    let text: String =
        String::from_utf8_lossy(&bytes).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.trim() {
        "" => UNKNOWN_HOLDER.to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
