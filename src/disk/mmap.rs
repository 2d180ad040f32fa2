//! Read-only maps of immutable files: the only unsafe code of the library (F5).
//!
//! A map always covers the length that the file had when it was made. It is never writable, and payloads of the
//! log are never read through one: a sector that fails under a map kills the process, a failed `pread` is an error.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::{Mmap, MmapOptions};

use super::{HeapMap, Mapped};

#[derive(Debug)]
struct FileMap(Mmap);

impl Deref for FileMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Mapped for FileMap {}

/// Maps the whole of `file`.
pub(super) fn map(file: &File) -> io::Result<Box<dyn Mapped>> {
    let len = usize::try_from(file.metadata()?.len())
        .map_err(|_| io::Error::new(io::ErrorKind::FileTooLarge, "larger than the address space"))?;
    if len == 0 {
        return Ok(Box::new(HeapMap(Vec::new())));
    }
    // SAFETY: a map is sound while nobody changes or cuts the file under it. The callers uphold it: `DiskFile::map`
    // is only called for index and directory files, which are written under another name, synced, renamed into
    // place and from then on only ever unlinked, which leaves a map whole. The directory belongs to one user (0700),
    // and its one writer holds the lock. What another program could still do is change bytes (then a block's CRC
    // fails, and a copy of the bytes is checked before it is believed) or cut the file (then the process gets
    // SIGBUS, no wrong data); maps can be switched off where that is a concern.
    let map = unsafe { MmapOptions::new().len(len).map(file)? };
    Ok(Box::new(FileMap(map)))
}
