//! A database under a temporary name, until it is whole.
//!
//! What always holds: the final name appears only with complete, synced content, in one step. A draft that is not
//! published is removed with whatever SQLite left beside it. What is never done: replacing a file without being asked
//! to, and replacing one whose log holds what the file does not.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::source_file::{Stamp, sibling};
use crate::{Error, ErrorKind, Result};

const FILE_MODE: u32 = 0o600;

#[derive(Debug)]
pub(super) struct Draft {
    pub(super) path: PathBuf,
    target: PathBuf,
}

impl Draft {
    /// An empty file in the folder of `target`.
    ///
    /// # Errors
    /// A target that is there, unless it is to be replaced, or that has a log beside it; failed writes.
    pub(super) fn create(target: &Path, replace: bool) -> Result<Self> {
        refuse_target(target, replace)?;
        let folder = folder_of(target);
        // SQLite is given an absolute path, so that a later change of the working directory does not matter.
        let folder = fs::canonicalize(folder).map_err(|error| Error::io("open folder", folder, error))?;
        let path = folder.join(format!("{}.tmp", Uuid::new_v4().simple()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(FILE_MODE);
        options.open(&path).map_err(|error| Error::io("create", &path, error))?;
        Ok(Self { path, target: target.to_path_buf() })
    }

    /// Syncs the file and gives it its name; returns its bytes.
    pub(super) fn publish(self, replace: bool, mode: Option<Permissions>) -> Result<u64> {
        let path = &self.path;
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| Error::io("open", path, error))?;
        if let Some(mode) = mode {
            file.set_permissions(mode).map_err(|error| Error::io("set the rights of", path, error))?;
        }
        file.sync_all().map_err(|error| Error::io("sync", path, error))?;
        let bytes = file.metadata().map_err(|error| Error::io("look at", path, error))?.len();
        refuse_target(&self.target, replace)?;
        self.name(replace)?;
        let folder = folder_of(&self.target);
        let opened = File::open(folder).map_err(|error| Error::io("open folder", folder, error))?;
        opened.sync_all().map_err(|error| Error::io("sync folder", folder, error))?;
        Ok(bytes)
    }

    /// A link fails where the name is taken, which a rename does not.
    fn name(&self, replace: bool) -> Result<()> {
        if !replace {
            match fs::hard_link(&self.path, &self.target) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(there_already(&self.target));
                }
                // A file system without links: the name was free a moment ago, and a rename is all there is.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
                    ) => {}
                Err(error) => return Err(Error::io("link", &self.target, error)),
            }
        }
        fs::rename(&self.path, &self.target).map_err(|error| Error::io("rename to", &self.target, error))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After a rename there is nothing under the temporary name.
        for suffix in ["", "-journal", "-wal", "-shm"] {
            let _ = fs::remove_file(sibling(&self.path, suffix));
        }
    }
}

fn folder_of(target: &Path) -> &Path {
    target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn there_already(path: &Path) -> Error {
    let text = format!("{} is there already; it was not touched", path.display());
    Error::new(ErrorKind::Exists, text)
}

fn refuse_target(target: &Path, replace: bool) -> Result<()> {
    if !replace && target.symlink_metadata().is_ok() {
        return Err(there_already(target));
    }
    for suffix in ["-wal", "-journal", "-shm"] {
        let beside = sibling(target, suffix);
        if Stamp::at(&beside)?.is_some_and(|stamp| stamp.length() > 0) {
            let text = format!(
                "{} lies beside {}: a program has the database open, or died with it. Close the program, or run \
                 `sqlite3 {} 'PRAGMA wal_checkpoint(TRUNCATE)'`; nothing was touched",
                beside.display(),
                target.display(),
                target.display()
            );
            return Err(Error::new(ErrorKind::Locked, text));
        }
    }
    Ok(())
}
