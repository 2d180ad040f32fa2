//! A copy of a database and its log, where SQLite may write.
//!
//! What always holds: the copy is what the database was at one moment, in a folder that only this user can enter, and
//! is removed with its owner. What is never done: recovering a log where it lies, and following the name of another
//! file out of a journal.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::source_file::{SourceFile, sibling};
use crate::{Error, ErrorKind, Result};

/// Copies that are begun before a file that keeps changing is given up.
const ATTEMPTS: u32 = 10;
/// What a log starts with: it changes when the log is begun anew.
const LOG_START_BYTES: u64 = 32;
/// What a rollback journal ends with when it names another journal. SQLite would open and delete that file.
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// The copied files; removed when dropped.
#[derive(Debug)]
pub(super) struct PrivateCopy {
    folder: TempDir,
}

/// Which database and which logs there are. While they are the same, a database that is copied before its log may be
/// written to: what a checkpoint moves into it is still in the WAL, and what a transaction has overwritten is in the
/// journal by then.
#[derive(Debug, PartialEq, Eq)]
struct Logs {
    database: (u64, u64),
    wal: Option<Vec<u8>>,
    journal: Option<Vec<u8>>,
}

impl PrivateCopy {
    /// Copies `source` with its log.
    ///
    /// # Errors
    /// Failed reads and writes; a database that keeps changing (kind `Locked`); a journal of a transaction over several
    /// databases (kind `Unsupported`).
    pub(super) fn of(source: &SourceFile) -> Result<Self> {
        let folder = TempDir::with_prefix("sessionlog-")
            .map_err(|error| Error::io("create a temporary folder below", std::env::temp_dir(), error))?;
        let copy = Self { folder };
        for _ in 0..ATTEMPTS {
            let before = Logs::of(source)?;
            for suffix in ["", "-wal", "-journal"] {
                copy_file(&sibling(&source.path, suffix), &sibling(&copy.path(), suffix))?;
            }
            if Logs::of(source)? == before {
                refuse_other_journals(&copy.path(), &source.path)?;
                return Ok(copy);
            }
        }
        let text = format!(
            "{} keeps changing while it is copied; try again when the program that writes it has stopped",
            source.path.display()
        );
        Err(Error::new(ErrorKind::Locked, text))
    }

    /// The copied database.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("copy.db")
    }
}

impl Logs {
    fn of(source: &SourceFile) -> Result<Self> {
        let data = fs::metadata(&source.path).map_err(|error| Error::io("look at", &source.path, error))?;
        let start = |suffix| read_start(&sibling(&source.path, suffix));
        Ok(Self { database: (data.dev(), data.ino()), wal: start("-wal")?, journal: start("-journal")? })
    }
}

fn read_start(path: &Path) -> Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", path, error)),
    };
    let mut start = Vec::new();
    file.take(LOG_START_BYTES).read_to_end(&mut start).map_err(|error| Error::io("read", path, error))?;
    Ok(Some(start))
}

/// Copies a file that may be missing.
fn copy_file(from: &Path, to: &Path) -> Result<()> {
    let mut source = match File::open(from) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return remove(to),
        Err(error) => return Err(Error::io("open", from, error)),
    };
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut target = options.open(to).map_err(|error| Error::io("create", to, error))?;
    io::copy(&mut source, &mut target)
        .map_err(|error| Error::io("copy to a temporary folder", from, error))?;
    Ok(())
}

/// An earlier attempt may have found the file.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path, error)),
        _ => Ok(()),
    }
}

fn refuse_other_journals(copy: &Path, named: &Path) -> Result<()> {
    let path = sibling(copy, "-journal");
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("open", &path, error)),
    };
    let mut end = [0; 8];
    let read = file.seek(SeekFrom::End(-8)).and_then(|_| file.read_exact(&mut end));
    if read.is_ok() && end == JOURNAL_MAGIC {
        let text = format!(
            "{}: its journal belongs to a transaction over several databases; open it once with the program that \
             wrote it",
            named.display()
        );
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    Ok(())
}
