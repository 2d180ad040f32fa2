//! The file of a database, before SQLite sees it.
//!
//! What always holds: a file is told by its first bytes, and how it is opened follows from what lies beside it. What
//! is never done: writing, here or beside it.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{ErrorKind as IoKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::connection::Access;
use crate::{Error, Result};

const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const HEADER_BYTES: usize = 100;

/// Whether a file that starts with these bytes is an SQLite database; 16 bytes are enough to tell.
#[must_use]
pub fn is_database(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

/// What tells whether a file is still the one that was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: (u64, u64),
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(data: &Metadata) -> Self {
        Self {
            inode: (data.dev(), data.ino()),
            length: data.len(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }

    /// The stamp of the file at `path`, or `None` where there is none.
    pub(super) fn at(path: &Path) -> Result<Option<Self>> {
        match fs::metadata(path) {
            Ok(data) => Ok(Some(Self::of(&data))),
            Err(error) if error.kind() == IoKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("look at", path, error)),
        }
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }
}

/// A database file that has the look of one.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// Absolute, without links: SQLite looks for the log beside the file itself.
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
    /// A log with content lies beside it.
    pub(super) has_log: bool,
    /// Bytes of the file and of its logs.
    pub(super) bytes: u64,
    wal_mode: bool,
}

impl SourceFile {
    /// Looks at the file at `path`.
    ///
    /// # Errors
    /// A file that is not there or cannot be read, and one that is no database or is cut off (kind `Corrupt`).
    pub(super) fn look(path: &Path) -> Result<Self> {
        let real = fs::canonicalize(path).map_err(|error| Error::io("open", path, error))?;
        let data = fs::metadata(&real).map_err(|error| Error::io("look at", &real, error))?;
        if !data.is_file() {
            return Err(Error::corrupt_in(path, "no regular file, so no SQLite database"));
        }
        let stamp = Stamp::of(&data);
        let mut logged = 0;
        for log in [sibling(&real, "-wal"), sibling(&real, "-journal")] {
            logged += Stamp::at(&log)?.map_or(0, |stamp| stamp.length);
        }
        let (has_log, bytes) = (logged > 0, stamp.length.saturating_add(logged));
        let start = read_start(&real)?;
        let wal_mode =
            check_start(&start, stamp.length, has_log).map_err(|text| Error::corrupt_in(path, text))?;
        Ok(Self { path: real, stamp, has_log, bytes, wal_mode })
    }

    /// How it can be opened where it lies, when it has no log.
    pub(super) fn access(&self) -> Access {
        if self.wal_mode { Access::ReadImmutable } else { Access::Read }
    }
}

/// The file that SQLite would keep beside `path`.
pub(super) fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

fn read_start(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
    let mut start = Vec::with_capacity(HEADER_BYTES);
    let most = u64::try_from(HEADER_BYTES).unwrap_or(u64::MAX);
    file.take(most).read_to_end(&mut start).map_err(|error| Error::io("read", path, error))?;
    Ok(start)
}

/// Whether the file is in WAL mode; the error says why it is no database.
fn check_start(start: &[u8], length: u64, has_log: bool) -> Result<bool, String> {
    if length == 0 {
        return Ok(false);
    }
    if !is_database(start) {
        return Err("no SQLite database: it does not start with \"SQLite format 3\"".to_owned());
    }
    let Some(header) = start.first_chunk::<HEADER_BYTES>() else {
        return Err(format!("cut off: {length} bytes, not even the {HEADER_BYTES} of a database's header"));
    };
    let [_, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, high, low, writes, reads, ..] = *header;
    let page = match u64::from(u16::from_be_bytes([high, low])) {
        1 => 1 << 16,
        size => size,
    };
    if !page.is_power_of_two() || !(512..=1 << 16).contains(&page) {
        return Err(format!("its header is damaged: pages of {page} bytes"));
    }
    let word =
        |at: usize| header.get(at..).and_then(<[u8]>::first_chunk::<4>).map(|word| u32::from_be_bytes(*word));
    // The count is only kept by writers that also leave the change counter beside it.
    let counted = word(24) == word(92);
    let pages = u64::from(word(28).unwrap_or(0));
    if !has_log && (length < page || (counted && pages.saturating_mul(page) > length)) {
        return Err(format!("cut off: {length} bytes are left of {pages} pages of {page} bytes"));
    }
    Ok(writes == 2 || reads == 2)
}
