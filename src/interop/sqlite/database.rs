//! Somebody's database of schema 4, for reading.
//!
//! What always holds: the file and its folder are left as they are, byte for byte; one bad session does not hide the
//! others. What is never done: trusting the file's views, triggers or types, and reading another schema version.

use std::fmt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::connection::{self, Access};
use super::fault::During;
use super::ids::{self, Ids};
use super::private_copy::PrivateCopy;
use super::schema::{self, Layout};
use super::source_file::{SourceFile, Stamp};
use crate::{Error, ErrorKind, Result};

/// An open database.
pub struct Database {
    path: PathBuf,
    bytes: u64,
    connection: Connection,
    layout: Layout,
    /// Of a file that is read without locks: nobody may write to it meanwhile.
    unlocked: Option<(PathBuf, Stamp)>,
    // Behind the connection, which is closed first.
    copy: Option<PrivateCopy>,
}

/// The tables that a reader or writer looks into.
#[derive(Clone, Copy)]
pub(super) struct Tables<'a> {
    pub(super) connection: &'a Connection,
    /// What errors name.
    pub(super) path: &'a Path,
    pub(super) layout: Layout,
}

impl Tables<'_> {
    pub(super) fn has_lines(&self) -> bool {
        matches!(self.layout, Layout::Schema4 { lines: true })
    }
}

impl Database {
    /// Opens the database at `path` for reading. A log beside it that holds data is read too: from a private copy of
    /// both in the system's temporary folder, which has to have room for them. Otherwise the database is read where it
    /// lies; while it is open a program that writes to it in rollback mode has to wait with its commits.
    ///
    /// An empty file and a database without tables and version are databases without sessions.
    ///
    /// # Errors
    /// A file that cannot be read; one that is no database, is cut off or damaged (kind `Corrupt`); another schema
    /// version, or tables that are not those of version 4 (kind `Version`); a database that another program keeps
    /// writing to (kind `Locked`).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let source = SourceFile::look(path)?;
        let copy = if source.has_log { Some(PrivateCopy::of(&source)?) } else { None };
        let (at, access) = match &copy {
            Some(copy) => (copy.path(), Access::OwnCopy),
            None => (source.path.clone(), source.access()),
        };
        let connection = connection::open(&at, access).during("open", path)?;
        // One moment for all that is read.
        connection.execute_batch("BEGIN").during("open", path)?;
        let layout = schema::check(&connection, path)?;
        let bytes = source.bytes;
        let unlocked = (access == Access::ReadImmutable).then_some((source.path, source.stamp));
        let database = Self { path: path.to_path_buf(), bytes, connection, layout, unlocked, copy };
        database.check_unchanged()?;
        Ok(database)
    }

    /// The path that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file and of the log beside it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it is a database that nobody has used yet: no tables, no version.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layout == Layout::Empty
    }

    /// Whether it was copied with its log to be read.
    #[must_use]
    pub fn was_copied(&self) -> bool {
        self.copy.is_some()
    }

    /// The ids of the sessions, in the order of their bytes. A row whose id is no text is an error in its place.
    #[must_use]
    pub fn sessions(&self) -> Ids<'_> {
        Ids::new(self.tables(), ids::SESSIONS)
    }

    /// The session ids of events that `sessions` does not have: nobody can read those.
    #[must_use]
    pub fn orphans(&self) -> Ids<'_> {
        Ids::new(self.tables(), ids::ORPHANS)
    }

    /// That nobody wrote to the file while it was read without locks.
    ///
    /// # Errors
    /// Somebody did (kind `Locked`): what was read may be of two moments.
    pub fn check_unchanged(&self) -> Result<()> {
        match &self.unlocked {
            Some((path, stamp)) if Stamp::at(path)? != Some(*stamp) => {
                let text = format!(
                    "{} changed while it was read; try again when the program that writes it has stopped",
                    self.path.display()
                );
                Err(Error::new(ErrorKind::Locked, text))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn tables(&self) -> Tables<'_> {
        Tables { connection: &self.connection, path: &self.path, layout: self.layout }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("path", &self.path)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}
