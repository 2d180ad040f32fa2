//! An open file of a simulated disk.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use super::fault::{DiskOp, Effect};
use super::{SimDisk, Strike};
use crate::disk::{DiskFile, HeapMap, Mapped, OpenMode, whole};
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
        self.disk.begin_plain(DiskOp::Read, format_args!("{} {off}+{}", self.name, buf.len()))?;
        whole::read(buf, off, |buf, off| {
            let mut state = self.disk.state();
            let node = state.file(self.number)?;
            if node.is_bad(off, buf.len() as u64) {
                return Err(io::Error::other("input/output error (simulated)"));
            }
            let got = node.read(off, buf);
            if let Some(seen) = buf.get_mut(..got).filter(|_| !state.planned.is_idle()) {
                state.interrupted()?;
                state.read_planned(self.number, seen, off)?;
            }
            Ok(got)
        })
    }

    fn try_write(&self, bytes: &[u8], off: u64) -> io::Result<()> {
        let strike = self.disk.begin(DiskOp::Write, format_args!("{} {off}+{}", self.name, bytes.len()))?;
        self.check_writable()?;
        match strike {
            // As the real one does it, so that short and interrupted calls are gone on from by the same code.
            None => whole::write(&[bytes], off, |slices, at| {
                let bytes = slices.first().map_or(&[][..], |slice| slice);
                self.disk.state().write_planned(self.number, bytes, at)
            }),
            Some(strike) => {
                self.disk.state().write_part(self.number, bytes, off, strike.effect)?;
                Err(strike.io_error())
            }
        }
    }

    fn try_sync(&self) -> io::Result<()> {
        let strike = self.disk.begin(DiskOp::Sync, format_args!("{}", self.name))?;
        let mut state = self.disk.state();
        let begun = state.now();
        state.file_mut(self.number)?.syncing += 1;
        state.syncs_waiting += 1;
        self.disk.shared.changed.notify_all();
        drop(state);
        self.disk.pause(DiskOp::Sync);
        let mut state = self.disk.state();
        let remembers = state.remembers();
        while state.syncs_blocked && self.disk.check_alive().is_ok() {
            self.disk.shared.changed.wait(&mut state);
        }
        state.syncs_waiting -= 1;
        let node = state.file_mut(self.number)?;
        node.syncing -= 1;
        self.disk.check_alive()?;
        match strike {
            None | Some(Strike { effect: Effect::Whole, .. }) => node.synced(begun, remembers),
            Some(Strike { effect: Effect::Part, .. }) => node.sync_dropped(),
            Some(Strike { effect: Effect::Nothing, .. }) => {}
        }
        state.keep_version(self.number);
        strike.map_or(Ok(()), |strike| Err(strike.io_error()))
    }

    fn try_set_len(&self, len: u64) -> io::Result<()> {
        let strike = self.disk.begin(DiskOp::SetLen, format_args!("{} {len}", self.name))?;
        self.check_writable()?;
        self.unless_struck(strike, || self.disk.state().set_len(self.number, len))
    }

    fn try_reserve(&self, off: u64, len: u64) -> io::Result<()> {
        let strike = self.disk.begin(DiskOp::Allocate, format_args!("{} {off}+{len}", self.name))?;
        self.check_writable()?;
        self.unless_struck(strike, || {
            whole::call(|| {
                let mut state = self.disk.state();
                state.interrupted()?;
                state.reserve(self.number, off, len)
            })
        })
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
        self.disk.begin_plain(DiskOp::Map, format_args!("{}", self.name))?;
        let state = self.disk.state();
        let node = state.file(self.number)?;
        if node.is_bad(0, node.len) {
            // A real map would end the process at the first touch.
            return Err(io::Error::other("input/output error (simulated)"));
        }
        Ok(node.live_bytes())
    }

    fn try_len(&self) -> io::Result<u64> {
        self.disk.begin_plain(DiskOp::Stat, format_args!("{}", self.name))?;
        Ok(self.disk.state().file(self.number)?.len)
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buf: &mut [u8], off: u64) -> Result<usize> {
        let got = self.try_read(buf, off);
        self.disk.pause(DiskOp::Read);
        self.disk.shared.counters.read(*got.as_ref().unwrap_or(&0));
        got.map_err(self.failed(format_args!("read {} bytes at {off} of", buf.len())))
    }

    fn write_at(&self, bufs: &[&[u8]], off: u64) -> Result<()> {
        let bytes = match bufs {
            [one] => Cow::Borrowed(*one),
            several => Cow::Owned(several.concat()),
        };
        self.disk.shared.counters.wrote(bytes.len() as u64);
        let done = self.try_write(&bytes, off);
        self.disk.pause(DiskOp::Write);
        done.map_err(self.failed(format_args!("write {} bytes at {off} of", bytes.len())))
    }

    fn sync_data(&self) -> Result<()> {
        self.disk.shared.counters.synced();
        let done = self.try_sync();
        self.disk.pause(DiskOp::Sync);
        done.map_err(self.failed("sync"))
    }

    fn sync_file(&self) -> Result<()> {
        self.sync_data()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.try_set_len(len).map_err(self.failed(format_args!("set the length {len} of")))
    }

    fn allocate(&self, off: u64, len: u64) -> Result<bool> {
        let reserved = self.try_reserve(off, len).map(|()| true);
        reserved.map_err(self.failed(format_args!("reserve {len} bytes at {off} of")))
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
        self.disk
            .begin_plain(DiskOp::Stat, format_args!("{}", self.name))
            .map_err(self.failed("identify"))?;
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
