//! One session that somebody's file offers.

use std::fs::{self, File};
use std::io::{BufReader, ErrorKind as IoErrorKind, Read};
use std::path::{Path, PathBuf};

use super::super::jsonl::Reader;
use crate::event::Header;
use crate::{Error, Result};

/// What a database begins with.
const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The file.
    pub path: PathBuf,
    /// Bytes of the file that are this session's, roughly where it shares the file with others.
    pub bytes: u64,
    /// The session's id, where a header could be read.
    pub id: Option<String>,
    /// The session that it continues.
    pub parent: Option<String>,
}

impl Item {
    /// A file of one session that was not looked at.
    pub(super) fn file(path: &Path) -> Self {
        Self { path: path.to_path_buf(), bytes: 0, id: None, parent: None }
    }

    fn with_header(self, header: &Header) -> Self {
        let (id, parent) = (header.id().to_owned(), header.parent_session().map(str::to_owned));
        Self { id: Some(id), parent, ..self }
    }

    pub(super) fn open(&self) -> Result<Reader<BufReader<File>>> {
        Reader::open(&self.path)
    }
}

/// The sessions in the file at `path`.
pub(super) fn items(path: &Path) -> Result<Vec<Item>> {
    let data = fs::metadata(path).map_err(|error| Error::io("look at", path, error))?;
    let item = Item { bytes: data.len(), ..Item::file(path) };
    // What is no file can be read only once.
    if !data.is_file() {
        return Ok(vec![item]);
    }
    if is_database(path)? {
        return Err(Error::new(crate::ErrorKind::Unsupported, format!("{}: a database", path.display())));
    }
    Ok(vec![match Reader::open(path) {
        Ok(reader) => item.with_header(reader.header()),
        // What is wrong with it is said when it is taken.
        Err(_) => item,
    }])
}

fn is_database(path: &Path) -> Result<bool> {
    let mut first = [0; SQLITE_MAGIC.len()];
    let mut file = File::open(path).map_err(|error| Error::io("open", path, error))?;
    match file.read_exact(&mut first) {
        Ok(()) => Ok(first == *SQLITE_MAGIC),
        Err(error) if error.kind() == IoErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(Error::io("read", path, error)),
    }
}
