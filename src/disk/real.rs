//! The real disk: a directory of the operating system.
//!
//! New files belong to their user alone (0600), new directories too (0700), as sessions hold private text. Files are
//! opened close-on-exec. Nothing is cached: each call is one of the operating system's.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::counters::CounterCells;
use super::real_file::RealFile;
use super::{Disk, DiskCounters, DiskFile, DiskLock, FsKind, OpenMode, check_path, fs_kind, lock};
use crate::{Error, ErrorKind, Result};

const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;

/// A [`Disk`] on a directory of the operating system.
#[derive(Debug, Clone)]
pub struct RealDisk {
    root: PathBuf,
    counters: Arc<CounterCells>,
}

impl RealDisk {
    /// The disk at `dir`. With `create` the directory, and those above it that are missing, are created and made
    /// durable; without, it must exist.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it is missing, [`ErrorKind::InvalidArgument`] when it is no directory, and what
    /// the operating system refuses.
    pub fn open(dir: &Path, create: bool) -> Result<Self> {
        let root = std::path::absolute(dir).map_err(|e| Error::io("open directory", dir, e))?;
        if create {
            create_dirs(&root)?;
        }
        let meta = std::fs::metadata(&root).map_err(|e| Error::io("open directory", &root, e))?;
        if !meta.is_dir() {
            let text = format!("open directory {}: it is not a directory", root.display());
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        Ok(Self { root, counters: Arc::default() })
    }

    fn full(&self, path: &str) -> Result<PathBuf> {
        check_path(path)?;
        Ok(if path.is_empty() { self.root.clone() } else { self.root.join(path) })
    }

    fn open_with(&self, operation: &str, path: &str, options: &OpenOptions) -> Result<Arc<dyn DiskFile>> {
        let full = self.full(path)?;
        let file = options.open(&full).map_err(|e| Error::io(operation, &full, e))?;
        Ok(Arc::new(RealFile::new(file, full, Arc::clone(&self.counters))))
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(mode == OpenMode::ReadWrite);
        self.open_with("open", path, &options)
    }

    fn create_excl(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(FILE_MODE);
        self.open_with("create", path, &options)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (self.full(from)?, self.full(to)?);
        std::fs::rename(&from, &to).map_err(|e| Error::io(&format!("rename to {}:", to.display()), &from, e))
    }

    fn unlink(&self, path: &str) -> Result<()> {
        let full = self.full(path)?;
        std::fs::remove_file(&full).map_err(|e| Error::io("remove", &full, e))
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.counters.dir_synced();
        sync_directory(&self.full(dir)?)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        let full = self.full(dir)?;
        let failed = |e| Error::io("list", &full, e);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&full).map_err(failed)? {
            if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir(&self, dir: &str) -> Result<()> {
        let full = self.full(dir)?;
        match DirBuilder::new().mode(DIR_MODE).create(&full) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && full.is_dir() => Ok(()),
            made => made.map_err(|e| Error::io("create directory", &full, e)),
        }
    }

    fn exists(&self, path: &str) -> Result<bool> {
        let full = self.full(path)?;
        full.try_exists().map_err(|e| Error::io("look for", &full, e))
    }

    fn lock(&self, path: &str, info: &str) -> Result<Box<dyn DiskLock>> {
        Ok(Box::new(lock::RealLock::take(self.full(path)?, info, FILE_MODE)?))
    }

    fn query_lock(&self, path: &str) -> Result<Option<String>> {
        lock::query(&self.full(path)?)
    }

    fn free_space(&self) -> Result<u64> {
        let failed = |e: io::Error| Error::io("get the free space of", &self.root, e);
        let stat = nix::sys::statvfs::statvfs(&self.root).map_err(|e| failed(e.into()))?;
        // The widths of the two fields differ between platforms; both fit 64 bits on all.
        #[allow(clippy::useless_conversion, reason = "the fields are narrower on some platforms")]
        let (blocks, size) = (u64::from(stat.blocks_available()), u64::from(stat.fragment_size()));
        Ok(blocks.saturating_mul(size))
    }

    fn fs_kind(&self) -> Result<FsKind> {
        fs_kind::of(&self.root).map_err(|e| Error::io("get the kind of file system of", &self.root, e))
    }

    fn path(&self) -> &Path {
        &self.root
    }

    fn counters(&self) -> DiskCounters {
        self.counters.snapshot()
    }
}

fn sync_directory(full: &Path) -> Result<()> {
    let synced = File::open(full).and_then(|dir| dir.sync_all());
    synced.map_err(|e| Error::io("sync directory", full, e))
}

/// Creates what is missing of `root`, and makes each new name durable in the directory above it.
fn create_dirs(root: &Path) -> Result<()> {
    let missing: Vec<&Path> = root.ancestors().take_while(|dir| !dir.exists()).collect();
    for dir in missing.into_iter().rev() {
        match DirBuilder::new().mode(DIR_MODE).create(dir) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            made => made.map_err(|e| Error::io("create directory", dir, e))?,
        }
        if let Some(above) = dir.parent() {
            sync_directory(above)?;
        }
    }
    Ok(())
}
