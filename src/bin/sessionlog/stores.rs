//! Which store, and how it is opened.
//!
//! What always holds: only `open_or_create` makes a store; only it and `open` take the writer's lock.

use std::path::{Path, PathBuf};

use sessionlog::{Error, ErrorKind, Result, SessionStore, StoreOptions};

/// The store that was asked for.
pub(crate) struct Stores {
    path: PathBuf,
    allow_network_fs: bool,
}

impl Stores {
    /// `--store`, else `$SESSIONLOG_STORE`, else `./.sessionlog`.
    pub(crate) fn new(given: Option<PathBuf>, allow_network_fs: bool) -> Self {
        let from_environment = || std::env::var_os("SESSIONLOG_STORE").filter(|path| !path.is_empty());
        let path = given.or_else(|| from_environment().map(PathBuf::from));
        Self { path: path.unwrap_or_else(|| PathBuf::from(".sessionlog")), allow_network_fs }
    }

    /// The store in `path` instead.
    pub(crate) fn at(&self, path: PathBuf) -> Self {
        Self { path, allow_network_fs: self.allow_network_fs }
    }

    /// Whether a network file system may be written to.
    pub(crate) fn allow_network_fs(&self) -> bool {
        self.allow_network_fs
    }

    /// Its directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// For writing; a missing store is created.
    pub(crate) fn open_or_create(&self) -> Result<SessionStore> {
        self.options().create(true).open(&self.path)
    }

    /// For writing; a missing store is an error.
    pub(crate) fn open(&self) -> Result<SessionStore> {
        self.options().create(false).open(&self.path).map_err(|error| self.explain(error))
    }

    /// For reading, beside any writer.
    pub(crate) fn read(&self) -> Result<SessionStore> {
        self.options().open_read_only(&self.path).map_err(|error| self.explain(error))
    }

    /// What to do where there is nothing to open.
    fn explain(&self, error: Error) -> Error {
        if !error.is_not_found() || self.path.exists() {
            return error;
        }
        error.wrap(ErrorKind::NotFound, "there is no store yet; import and record create one")
    }

    fn options(&self) -> StoreOptions {
        StoreOptions::new().allow_network_fs(self.allow_network_fs)
    }
}
