//! An open file of a simulated disk.

use std::io;
use std::path::{Path, PathBuf};

use super::fault::{DiskOp, Effect};
use super::{SimDisk, Strike};
use crate::disk::{DiskFile, HeapMap, Mapped, OpenMode};
use crate::{Error, Result};

#[derive(Debug)]
pub(super) struct SimFile {
    disk: SimDisk,
    number: u64,
    name: String,
    path: PathBuf,
    mode: OpenMode,
}

impl SimFile {
    /// A handle of the file `number`, which its state counts as open already.
    pub(super) fn new(disk: SimDisk, number: u64, name: &str, mode: OpenMode) -> Self {
        let path = disk.shared.root.join(name);
        Self { disk, number, name: name.to_owned(), path, mode }
    }

    fn check_writable(&self) -> io::Result<()> {
        match self.mode {
            OpenMode::ReadWrite => Ok(()),
            OpenMode::Read => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    fn failed(&self, operation: impl std::fmt::Display) -> impl Fn(io::Error) -> Error + '_ {
        let operation = operation.to_string();
        move |e| Error::io(&operation, &self.path, e)
    }

    fn try_read(&self, buf: &mut [u8], off: u64) -> io::Result<usize> {
        self.disk.begin_plain(DiskOp::Read, &format!("{} {off}+{}", self.name, buf.len()))?;
        let state = self.disk.state();
        let node = state.file(self.number)?;
        if node.is_bad(off, buf.len() as u64) {
            return Err(io::Error::other("input/output error (simulated)"));
        }
        Ok(node.read(off, buf))
    }

    fn try_write(&self, bytes: &[u8], off: u64) -> io::Result<()> {
        let strike = self.disk.begin(DiskOp::Write, &format!("{} {off}+{}", self.name, bytes.len()))?;
        self.check_writable()?;
        let mut state = self.disk.state();
        match strike {
            None => state.write(self.number, bytes, off),
            Some(strike) => {
                state.write_part(self.number, bytes, off, strike.effect)?;
                Err(strike.io_error())
            }
        }
    }

    fn try_sync(&self) -> io::Result<()> {
        let strike = self.disk.begin(DiskOp::Sync, &self.name)?;
        let mut state = self.disk.state();
        let begun = state.now();
        state.file_mut(self.number)?.syncing += 1;
        state.syncs_waiting += 1;
        self.disk.shared.changed.notify_all();
        while state.syncs_blocked && self.disk.check_alive().is_ok() {
            self.disk.shared.changed.wait(&mut state);
        }
        state.syncs_waiting -= 1;
        let node = state.file_mut(self.number)?;
        node.syncing -= 1;
        self.disk.check_alive()?;
        match strike {
            None | Some(Strike { effect: Effect::Whole, .. }) => node.synced(begun),
            Some(Strike { effect: Effect::Part, .. }) => node.sync_dropped(),
            Some(Strike { effect: Effect::Nothing, .. }) => {}
        }
        strike.map_or(Ok(()), |strike| Err(strike.io_error()))
    }

    fn try_set_len(&self, len: u64) -> io::Result<()> {
        let strike = self.disk.begin(DiskOp::SetLen, &format!("{} {len}", self.name))?;
        self.check_writable()?;
        self.unless_struck(strike, || self.disk.state().set_len(self.number, len))
    }

    fn try_reserve(&self, off: u64, len: u64) -> io::Result<()> {
        let strike = self.disk.begin(DiskOp::Allocate, &format!("{} {off}+{len}", self.name))?;
        self.check_writable()?;
        self.unless_struck(strike, || self.disk.state().reserve(self.number, off, len))
    }

    fn unless_struck(&self, strike: Option<Strike>, act: impl Fn() -> io::Result<()>) -> io::Result<()> {
        match strike {
            None => act(),
            Some(strike) => {
                if strike.effect == Effect::Whole {
                    act()?;
                }
                Err(strike.io_error())
            }
        }
    }

    fn try_map(&self) -> io::Result<Vec<u8>> {
        self.disk.begin_plain(DiskOp::Map, &self.name)?;
        let state = self.disk.state();
        let node = state.file(self.number)?;
        if node.is_bad(0, node.len) {
            // A real map would end the process at the first touch.
            return Err(io::Error::other("input/output error (simulated)"));
        }
        Ok(node.live_bytes())
    }

    fn try_len(&self) -> io::Result<u64> {
        self.disk.begin_plain(DiskOp::Stat, &self.name)?;
        Ok(self.disk.state().file(self.number)?.len)
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buf: &mut [u8], off: u64) -> Result<usize> {
        let got = self.try_read(buf, off);
        self.disk.shared.counters.read(*got.as_ref().unwrap_or(&0));
        got.map_err(self.failed(format_args!("read {} bytes at {off} of", buf.len())))
    }

    fn write_at(&self, bufs: &[&[u8]], off: u64) -> Result<()> {
        let bytes = bufs.concat();
        self.disk.shared.counters.wrote(bytes.len() as u64);
        self.try_write(&bytes, off)
            .map_err(self.failed(format_args!("write {} bytes at {off} of", bytes.len())))
    }

    fn sync_data(&self) -> Result<()> {
        self.disk.shared.counters.synced();
        self.try_sync().map_err(self.failed("sync"))
    }

    fn sync_file(&self) -> Result<()> {
        self.sync_data()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.try_set_len(len).map_err(self.failed(format_args!("set the length {len} of")))
    }

    fn allocate(&self, off: u64, len: u64) -> Result<()> {
        self.try_reserve(off, len).map_err(self.failed(format_args!("reserve {len} bytes at {off} of")))
    }

    fn len(&self) -> Result<u64> {
        self.try_len().map_err(self.failed("get the length of"))
    }

    fn map(&self) -> Result<Box<dyn Mapped>> {
        self.disk.shared.counters.mapped();
        let bytes = self.try_map().map_err(self.failed("map"))?;
        Ok(Box::new(HeapMap(bytes)))
    }

    fn identity(&self) -> Result<(u64, u64)> {
        self.disk.begin_plain(DiskOp::Stat, &self.name).map_err(self.failed("identify"))?;
        Ok((1, self.number))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.disk.state().closed(self.number);
    }
}
