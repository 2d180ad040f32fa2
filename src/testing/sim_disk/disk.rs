//! The simulated disk as the engine sees it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::SimDisk;
use super::fault::{DiskOp, Effect};
use super::file::SimFile;
use super::names::Entry;
use super::state::{Held, State};
use crate::disk::{Disk, DiskCounters, DiskFile, DiskLock, FsKind, OpenMode, check_path};
use crate::{Error, ErrorKind, Result};

impl SimDisk {
    fn full(&self, path: &str) -> std::path::PathBuf {
        self.shared.root.join(path)
    }

    /// A call that changes names: noted, struck by faults, done.
    fn change(
        &self,
        op: DiskOp,
        path: &str,
        detail: &str,
        act: impl FnOnce(&mut State) -> io::Result<()>,
    ) -> Result<()> {
        check_path(path)?;
        let tried = self.begin(op, format_args!("{path}{detail}")).and_then(|strike| match strike {
            Some(strike) if strike.effect != Effect::Whole => Err(strike.io_error()),
            strike => {
                act(&mut self.state())?;
                strike.map_or(Ok(()), |strike| Err(strike.io_error()))
            }
        });
        self.pause(op);
        tried.map_err(|e| Error::io(&format!("{op}{detail}"), self.full(path), e))
    }

    /// A call that looks at something.
    fn look<T>(&self, op: DiskOp, path: &str, see: impl FnOnce(&State) -> io::Result<T>) -> Result<T> {
        check_path(path)?;
        let tried = self.begin_plain(op, format_args!("{path}")).and_then(|()| see(&self.state()));
        tried.map_err(|e| Error::io(&op.to_string(), self.full(path), e))
    }

    fn handle(&self, number: u64, path: &str, mode: OpenMode) -> Arc<dyn DiskFile> {
        self.shared.counters.opened();
        Arc::new(SimFile::new(self.clone(), number, path, mode))
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn DiskFile>> {
        check_path(path)?;
        let open = || {
            self.begin_plain(DiskOp::Open, format_args!("{path}"))?;
            let mut state = self.state();
            let number = state.find(path)?;
            if state.read_only && mode == OpenMode::ReadWrite {
                return Err(io::ErrorKind::ReadOnlyFilesystem.into());
            }
            state.opened(number);
            Ok(number)
        };
        let number = open().map_err(|e| Error::io("open", self.full(path), e))?;
        Ok(self.handle(number, path, mode))
    }

    fn create_excl(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        let mut number = 0;
        self.change(DiskOp::Create, path, "", |state| {
            number = state.create(path)?;
            state.opened(number);
            Ok(())
        })?;
        Ok(self.handle(number, path, OpenMode::ReadWrite))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_path(to)?;
        self.change(DiskOp::Rename, from, &format!(" to {to}"), |state| state.rename(from, to))
    }

    fn unlink(&self, path: &str) -> Result<()> {
        self.change(DiskOp::Unlink, path, "", |state| state.unlink(path))
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.shared.counters.dir_synced();
        // A failed sync leaves the names as they are: the journal may write them yet, or not.
        self.change(DiskOp::SyncDir, dir, "", |state| {
            is_dir(state, dir)?;
            let now = state.now();
            state.names.synced(now, dir);
            state.forget_unreachable();
            Ok(())
        })
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.look(DiskOp::List, dir, |state| {
            is_dir(state, dir)?;
            Ok(state.names.list(dir))
        })
    }

    fn create_dir(&self, dir: &str) -> Result<()> {
        self.change(DiskOp::CreateDir, dir, "", |state| state.create_dir(dir))
    }

    fn exists(&self, path: &str) -> Result<bool> {
        self.look(DiskOp::Exists, path, |state| Ok(state.names.get(path).is_some()))
    }

    fn lock(&self, path: &str, info: &str) -> Result<Box<dyn DiskLock>> {
        check_path(path)?;
        self.begin_plain(DiskOp::Lock, format_args!("{path}"))
            .map_err(|e| Error::io("lock", self.full(path), e))?;
        let mut state = self.state();
        let there = state.names.get(path);
        let named = |held: &Held| !state.lock_follows_name || there == Some(Entry::File(held.file));
        if let Some(held) = state.held.as_ref().filter(|held| named(held)) {
            let text =
                format!("lock {}: the store has a writer already: {}", self.full(path).display(), held.info);
            return Err(Error::new(ErrorKind::Locked, text));
        }
        let found = state.find(path).or_else(|_| state.create(path));
        let file = found.map_err(|e| Error::io("lock", self.full(path), e))?;
        // As the real one: on a full disk the lock holds without its text.
        let _ = state.set_len(file, 0).and_then(|()| state.write(file, info.as_bytes(), 0));
        let owner = state.next_owner;
        state.next_owner += 1;
        state.held = Some(Held { owner, process: self.process.number, file, info: info.to_owned() });
        Ok(Box::new(SimLock { disk: self.clone(), owner, file, name: path.to_owned() }))
    }

    fn query_lock(&self, path: &str) -> Result<Option<String>> {
        self.look(DiskOp::QueryLock, path, |state| Ok(state.held.as_ref().map(|held| held.info.clone())))
    }

    fn free_space(&self) -> Result<u64> {
        self.look(DiskOp::FreeSpace, "", |state| Ok(state.free_space()))
    }

    fn fs_kind(&self) -> Result<FsKind> {
        self.look(DiskOp::FsKind, "", |state| Ok(state.fs_kind.clone()))
    }

    fn path(&self) -> &Path {
        &self.shared.root
    }

    fn counters(&self) -> DiskCounters {
        self.shared.counters.snapshot()
    }
}

fn is_dir(state: &State, dir: &str) -> io::Result<()> {
    match state.names.get(dir) {
        Some(Entry::Dir) => Ok(()),
        Some(Entry::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    owner: u64,
    file: u64,
    name: String,
}

impl DiskLock for SimLock {
    fn still_valid(&self) -> Result<bool> {
        self.disk.look(DiskOp::QueryLock, &self.name, |state| {
            let held =
                state.held.as_ref().is_some_and(|held| held.owner == self.owner && held.file == self.file);
            Ok(held && state.names.get(&self.name) == Some(Entry::File(self.file)))
        })
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.held.as_ref().is_some_and(|held| held.owner == self.owner) {
            state.held = None;
        }
    }
}
