//! A file under a temporary name, until it is whole.
//!
//! What always holds: the final name appears only with complete, synced content, in one step. A draft that is not
//! published is removed, with whatever was left beside it. What is never done: replacing a file without being asked to.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::{Error, ErrorKind, Result};

const FILE_MODE: u32 = 0o600;

/// See the module.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
    target: PathBuf,
    /// Endings of files that may lie beside it.
    beside: &'static [&'static str],
}

impl Draft {
    /// An empty private file in the folder of `target`. Its name is short, so that it fits wherever the target's does, and
    /// ends in `.tmp`; its path is absolute, so that a later change of the working directory does not matter.
    pub(super) fn create(target: &Path, beside: &'static [&'static str]) -> Result<(Self, File)> {
        let folder = folder_of(target);
        let folder = fs::canonicalize(folder).map_err(|error| Error::io("open folder", folder, error))?;
        let path = folder.join(format!("{}.tmp", Uuid::new_v4().simple()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(FILE_MODE);
        let file = options.open(&path).map_err(|error| Error::io("create", &path, error))?;
        Ok((Self { path, target: target.to_path_buf(), beside }, file))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the file and gives it its name, and the rights `mode`; returns its bytes. Whether what is there may be
    /// replaced, `check` says once more when all is synced.
    pub(super) fn publish(
        self,
        replace: bool,
        mode: Option<Permissions>,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<u64> {
        let path = &self.path;
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|error| Error::io("open", path, error))?;
        if let Some(mode) = mode {
            file.set_permissions(mode).map_err(|error| Error::io("set the rights of", path, error))?;
        }
        file.sync_all().map_err(|error| Error::io("sync", path, error))?;
        let bytes = file.metadata().map_err(|error| Error::io("look at", path, error))?.len();
        check()?;
        self.name(replace)?;
        sync_folder(folder_of(&self.target))?;
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
                Err(error) if links_are_missing(&error) => {}
                Err(error) => return Err(Error::io("link", &self.target, error)),
            }
        }
        fs::rename(&self.path, &self.target).map_err(|error| Error::io("rename to", &self.target, error))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After a rename there is nothing under the temporary name.
        let _ = fs::remove_file(&self.path);
        for ending in self.beside {
            let mut path = OsString::from(&self.path);
            path.push(ending);
            let _ = fs::remove_file(path);
        }
    }
}

fn links_are_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported)
}

fn folder_of(target: &Path) -> &Path {
    target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    let file = File::open(folder).map_err(|error| Error::io("open folder", folder, error))?;
    file.sync_all().map_err(|error| Error::io("sync folder", folder, error))
}

/// The refusal to write where something is.
pub(super) fn there_already(path: &Path) -> Error {
    let text = format!(
        "{} is there already; it was not touched (--append adds what is new, --force replaces it)",
        path.display()
    );
    Error::new(ErrorKind::Exists, text)
}
