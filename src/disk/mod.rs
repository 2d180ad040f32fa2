//! The only code that touches the operating system's files: the trait [`Disk`] and the real one.
//!
//! A [`Disk`] is rooted at the store's directory. Paths are relative, with `/` between their parts
//! (`segments/00000001.seg`); the empty path is the root itself. Absolute paths and `..` are refused, so
//! nothing outside the root is ever touched. Every error names the operation and the full path.
//!
//! What the engine above may rely on, and nothing more:
//! - bytes are durable after [`DiskFile::sync_data`] returned, names after [`Disk::sync_dir`] of their directory;
//! - a failed sync proves nothing about what was written before it, nor does a later sync that succeeds (P1);
//! - a rename within one directory happens wholly or not at all.
//!
//! This module never starts threads, never retries a failed write or sync, and never reads file contents for
//! meaning. `mmap` is the only unsafe code of the library (F5).

mod counters;
mod fs_kind;
mod lock;
mod mmap;
mod real;
mod real_file;
pub(crate) mod whole;

use std::fmt::Debug;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use crate::{Error, ErrorKind, Result};

#[cfg(feature = "testing")]
pub(crate) use counters::CounterCells;
pub use counters::DiskCounters;
pub use fs_kind::FsKind;
pub use real::RealDisk;

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading only.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// A directory of files, and what the engine needs to do with them (T4).
///
/// # Errors
/// Every call returns the operating system's refusal as an [`Error`] with the full path; a full disk has the
/// kind [`ErrorKind::Full`], a missing file [`ErrorKind::NotFound`].
pub trait Disk: Send + Sync + Debug {
    /// Opens an existing file.
    ///
    /// # Errors
    /// See [`Disk`].
    fn open(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn DiskFile>>;

    /// Creates a file that must not exist yet, for reading and writing.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] with [`std::io::ErrorKind::AlreadyExists`] when the name is taken. See [`Disk`].
    fn create_excl(&self, path: &str) -> Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, replacing what has it. Not durable before [`sync_dir`](Self::sync_dir); between
    /// two directories, sync the new one first.
    ///
    /// # Errors
    /// See [`Disk`].
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a file's name.
    ///
    /// # Errors
    /// See [`Disk`].
    fn unlink(&self, path: &str) -> Result<()>;

    /// Makes the names in `dir` durable: those created, renamed and removed before this call.
    ///
    /// # Errors
    /// See [`Disk`].
    fn sync_dir(&self, dir: &str) -> Result<()>;

    /// The names in `dir`, files and directories, in byte order. Names that are not UTF-8 are left out.
    ///
    /// # Errors
    /// See [`Disk`].
    fn list(&self, dir: &str) -> Result<Vec<String>>;

    /// Creates a directory whose parent exists. One that is there already is fine.
    ///
    /// # Errors
    /// See [`Disk`].
    fn create_dir(&self, dir: &str) -> Result<()>;

    /// Whether the name exists.
    ///
    /// # Errors
    /// See [`Disk`].
    fn exists(&self, path: &str) -> Result<bool>;

    /// Becomes the one writer (G8, D5): takes the lock at `path`, creating the file when it is missing, and leaves
    /// `info` in it for people to read. `info` is information only; the lock is the kernel's.
    ///
    /// The lock is held until the value is dropped or the process ends, however it ends. At any time at most one
    /// handle over all processes of the machine holds it, also when somebody removes or replaces the lock file
    /// meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] at once (within a second) when another handle of any process holds it; the text quotes
    /// the holder's `info`. See also [`Disk`].
    fn lock(&self, path: &str, info: &str) -> Result<Box<dyn DiskLock>>;

    /// The `info` of the writer that holds the lock at `path`, or `None` when nobody does. Creates nothing, works
    /// on a read-only directory, and never makes a writer's [`lock`](Self::lock) fail.
    ///
    /// # Errors
    /// See [`Disk`].
    fn query_lock(&self, path: &str) -> Result<Option<String>>;

    /// Bytes that this user can still write.
    ///
    /// # Errors
    /// See [`Disk`].
    fn free_space(&self) -> Result<u64>;

    /// The kind of file system that the root is on.
    ///
    /// # Errors
    /// See [`Disk`].
    fn fs_kind(&self) -> Result<FsKind>;

    /// The root, absolute.
    fn path(&self) -> &Path;

    /// How often what was called so far, over all files of this disk.
    fn counters(&self) -> DiskCounters;
}

/// An open file of a [`Disk`]. All calls take a position and may come from any thread at once.
///
/// # Errors
/// As for [`Disk`].
pub trait DiskFile: Send + Sync + Debug {
    /// Reads from byte `off` on until `buf` is full or the file ends; less than `buf.len()` means the end.
    ///
    /// # Errors
    /// See [`Disk`].
    fn read_at(&self, buf: &mut [u8], off: u64) -> Result<usize>;

    /// Writes the buffers one behind the other from byte `off` on. After an error any part of them may have been
    /// written.
    ///
    /// # Errors
    /// See [`Disk`].
    fn write_at(&self, bufs: &[&[u8]], off: u64) -> Result<()>;

    /// Makes what was written before this call durable, with the length. On macOS through the drive's own cache.
    ///
    /// # Errors
    /// See [`Disk`]. After an error nothing is known about what became durable.
    fn sync_data(&self) -> Result<()>;

    /// As [`sync_data`](Self::sync_data), with the file's other attributes.
    ///
    /// # Errors
    /// As [`sync_data`](Self::sync_data).
    fn sync_file(&self) -> Result<()>;

    /// Cuts the file, or extends it with bytes that read as zero and have no space behind them yet.
    ///
    /// # Errors
    /// See [`Disk`].
    fn set_len(&self, len: u64) -> Result<()>;

    /// Reserves space for a range and extends the file to its end when it is shorter; what was not written reads
    /// as zero. False where the file system cannot reserve: only the length changes then, and writing is what makes it
    /// sure.
    ///
    /// # Errors
    /// [`ErrorKind::Full`] when the space is not there. See [`Disk`].
    fn allocate(&self, off: u64, len: u64) -> Result<bool>;

    /// The length in bytes.
    ///
    /// # Errors
    /// See [`Disk`].
    fn len(&self) -> Result<u64>;

    /// Whether the length is zero.
    ///
    /// # Errors
    /// See [`Disk`].
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Maps the whole file for reading. Only for files that nobody writes, cuts or extends any more (F5).
    ///
    /// # Errors
    /// See [`Disk`].
    fn map(&self) -> Result<Box<dyn Mapped>>;

    /// Device and inode: two handles with the same pair are one file, whatever its names are.
    ///
    /// # Errors
    /// See [`Disk`].
    fn identity(&self) -> Result<(u64, u64)>;

    /// The full path that it was opened under.
    fn path(&self) -> &Path;
}

/// The bytes of a mapped file.
pub trait Mapped: Deref<Target = [u8]> + Send + Sync + Debug {}

/// A [`Mapped`] of any disk, for code that is generic over `Deref<Target = [u8]>`.
#[derive(Debug)]
pub struct MapBytes(Box<dyn Mapped>);

impl From<Box<dyn Mapped>> for MapBytes {
    fn from(map: Box<dyn Mapped>) -> Self {
        Self(map)
    }
}

impl Deref for MapBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Bytes in memory that stand for a map: of an empty file, or of a simulated disk.
#[derive(Debug)]
pub(crate) struct HeapMap(pub(crate) Vec<u8>);

impl Deref for HeapMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Mapped for HeapMap {}

/// The writer's lock, held until dropped. See [`Disk::lock`] for what it guarantees.
pub trait DiskLock: Send + Sync + Debug {
    /// Whether the lock file at the path, and the directory, are still those that were locked. `false` means that
    /// somebody removed or replaced them: no second writer got in, but the store should not be written any further.
    ///
    /// # Errors
    /// See [`Disk`].
    fn still_valid(&self) -> Result<bool>;
}

/// Refuses a path that would leave the root. The empty path is the root.
pub(crate) fn check_path(path: &str) -> Result<()> {
    let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\0', '\\']);
    if path.is_empty() || path.split('/').all(plain) {
        return Ok(());
    }
    let text = format!("the path {path:?} is not a plain relative one of the store's directory");
    Err(Error::new(ErrorKind::InvalidArgument, text))
}

#[cfg(test)]
mod tests;
