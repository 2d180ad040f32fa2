//! An open file of the real disk.
//!
//! Reads and writes are positioned, so handles are shared between threads without a lock. Interrupted and short
//! calls are continued; a failed write or sync is never tried again.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::counters::CounterCells;
use super::{DiskFile, Mapped, mmap, whole};
use crate::{Error, Result};

#[derive(Debug)]
pub(super) struct RealFile {
    file: File,
    path: PathBuf,
    counters: Arc<CounterCells>,
}

impl RealFile {
    pub(super) fn new(file: File, path: PathBuf, counters: Arc<CounterCells>) -> Self {
        counters.opened();
        Self { file, path, counters }
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, buf: &mut [u8], off: u64) -> Result<usize> {
        let got = whole::read(buf, off, |buf, off| self.file.read_at(buf, off));
        self.counters.read(*got.as_ref().unwrap_or(&0));
        got.map_err(|e| Error::io(&format!("read {} bytes at {off} of", buf.len()), &self.path, e))
    }

    fn write_at(&self, bufs: &[&[u8]], off: u64) -> Result<()> {
        let total: u64 = bufs.iter().map(|buf| buf.len() as u64).sum();
        self.counters.wrote(total);
        write_all(&self.file, bufs, off)
            .map_err(|e| Error::io(&format!("write {total} bytes at {off} of"), &self.path, e))
    }

    // On macOS the standard library's two syncs are F_FULLFSYNC, which a drive's cache does not swallow.
    fn sync_data(&self) -> Result<()> {
        self.counters.synced();
        self.file.sync_data().map_err(|e| Error::io("sync", &self.path, e))
    }

    fn sync_file(&self) -> Result<()> {
        self.counters.synced();
        self.file.sync_all().map_err(|e| Error::io("sync", &self.path, e))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|e| Error::io(&format!("set the length {len} of"), &self.path, e))
    }

    fn allocate(&self, off: u64, len: u64) -> Result<bool> {
        reserve(&self.file, off, len)
            .map_err(|e| Error::io(&format!("reserve {len} bytes at {off} of"), &self.path, e))
    }

    fn len(&self) -> Result<u64> {
        let meta = self.file.metadata().map_err(|e| Error::io("get the length of", &self.path, e))?;
        Ok(meta.len())
    }

    fn map(&self) -> Result<Box<dyn Mapped>> {
        self.counters.mapped();
        mmap::map(&self.file).map_err(|e| Error::io("map", &self.path, e))
    }

    fn identity(&self) -> Result<(u64, u64)> {
        let meta = self.file.metadata().map_err(|e| Error::io("identify", &self.path, e))?;
        Ok((meta.dev(), meta.ino()))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// One call for all buffers, however many and whatever part of them each call takes.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn write_all(file: &File, bufs: &[&[u8]], off: u64) -> io::Result<()> {
    whole::write(bufs, off, |slices, at| {
        let at = i64::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge)?;
        nix::sys::uio::pwritev(file, slices, at).map_err(io::Error::from)
    })
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn write_all(file: &File, bufs: &[&[u8]], off: u64) -> io::Result<()> {
    whole::write(bufs, off, |slices, at| slices.first().map_or(Ok(0), |slice| file.write_at(slice, at)))
}

/// Reserves the range where the file system can, else only extends the file; whether it could.
fn reserve(file: &File, off: u64, len: u64) -> io::Result<bool> {
    let end = off.checked_add(len).ok_or(io::ErrorKind::FileTooLarge)?;
    if len == 0 || reserve_blocks(file, off, len)? {
        return Ok(true);
    }
    if file.metadata()?.len() < end {
        file.set_len(end)?;
    }
    Ok(false)
}

/// Whether the file system could do it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn reserve_blocks(file: &File, off: u64, len: u64) -> io::Result<bool> {
    use nix::errno::Errno;
    use nix::fcntl::{FallocateFlags, fallocate};

    let off = off.try_into().map_err(|_| io::ErrorKind::FileTooLarge)?;
    let len = len.try_into().map_err(|_| io::ErrorKind::FileTooLarge)?;
    whole::call(|| match fallocate(file, FallocateFlags::empty(), off, len) {
        Ok(()) => Ok(true),
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(false),
        Err(e) => Err(e.into()),
    })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn reserve_blocks(_file: &File, _off: u64, _len: u64) -> io::Result<bool> {
    Ok(false)
}
