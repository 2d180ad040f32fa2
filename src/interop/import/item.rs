//! One session that somebody's file offers, and what kind of file that is.
//!
//! What always holds: the content decides, never the name.

use std::fs::{self, File};
use std::io::{ErrorKind as IoErrorKind, Read};
use std::path::{Path, PathBuf};

use super::super::jsonl::Reader;
use super::Survey;
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
    pub(super) kind: Kind,
}

/// What kind of file it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Lines, one session.
    Jsonl,
    /// A database, and the id in its row.
    #[cfg(feature = "sqlite")]
    Sqlite(String),
}

impl Item {
    /// A file of one session that was not looked at.
    pub(super) fn file(path: &Path) -> Self {
        Self { path: path.to_path_buf(), bytes: 0, id: None, parent: None, kind: Kind::Jsonl }
    }

    fn with_header(self, header: &Header) -> Self {
        let (id, parent) = (header.id().to_owned(), header.parent_session().map(str::to_owned));
        Self { id: Some(id), parent, ..self }
    }
}

/// Adds the sessions in the file at `path`.
pub(super) fn look_at(path: &Path, survey: &mut Survey) -> Result<()> {
    let data = fs::metadata(path).map_err(|error| Error::io("look at", path, error))?;
    let item = Item { bytes: data.len(), ..Item::file(path) };
    // What is no file can be read only once.
    if data.is_file() && is_database(path)? {
        return database::look_at(item, survey);
    }
    survey.items.push(jsonl(path));
    Ok(())
}

/// The session in the file of lines at `path`.
pub(super) fn jsonl(path: &Path) -> Item {
    // What is no file can be read only once; what is wrong with one is said when it is taken.
    let Some(data) = fs::metadata(path).ok().filter(fs::Metadata::is_file) else { return Item::file(path) };
    let item = Item { bytes: data.len(), ..Item::file(path) };
    match Reader::open(path) {
        Ok(reader) => item.with_header(reader.header()),
        Err(_) => item,
    }
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

#[cfg(feature = "sqlite")]
mod database {
    use super::{Item, Kind, Survey};
    use crate::interop::sqlite::Database;
    use crate::{Error, Result};

    /// Every session of the database. One whose row is bad is told in its place, as are events of no session.
    pub(super) fn look_at(file: Item, survey: &mut Survey) -> Result<()> {
        let database = Database::open(&file.path)?;
        let first = survey.items.len();
        for id in database.sessions() {
            match id.and_then(|id| database.session(&id).map(|session| (id, session))) {
                Ok((id, session)) => {
                    let item = Item { kind: Kind::Sqlite(id), ..file.clone() };
                    survey.items.push(item.with_header(session.header()));
                }
                Err(error) => survey.errors.push((file.path.clone(), error)),
            }
        }
        for orphan in database.orphans() {
            let error = match orphan {
                Ok(id) => Error::corrupt_in(
                    &file.path,
                    format!("events of session {id:?} that has no row in sessions; they cannot be imported"),
                ),
                Err(error) => error,
            };
            survey.errors.push((file.path.clone(), error));
        }
        let found = survey.items.get_mut(first..).unwrap_or_default();
        let count = u64::try_from(found.len()).unwrap_or(u64::MAX).max(1);
        found.iter_mut().for_each(|item| item.bytes = file.bytes / count);
        if found.is_empty() {
            survey.empty.push(file.path);
        }
        Ok(())
    }
}

#[cfg(not(feature = "sqlite"))]
mod database {
    use super::{Item, Survey};
    use crate::{Error, ErrorKind, Result};

    pub(super) fn look_at(file: Item, _: &mut Survey) -> Result<()> {
        let text = format!(
            "{}: a SQLite database; this program was built without the feature `sqlite`",
            file.path.display()
        );
        Err(Error::new(ErrorKind::Unsupported, text))
    }
}
