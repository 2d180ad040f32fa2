//! What goes wrong on purpose, and when.

use std::fmt;
use std::io;

/// The kinds of call that a simulated disk counts and can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiskOp {
    /// [`Disk::open`](crate::disk::Disk::open)
    Open,
    /// [`Disk::create_excl`](crate::disk::Disk::create_excl)
    Create,
    /// [`Disk::rename`](crate::disk::Disk::rename)
    Rename,
    /// [`Disk::unlink`](crate::disk::Disk::unlink)
    Unlink,
    /// [`Disk::sync_dir`](crate::disk::Disk::sync_dir)
    SyncDir,
    /// [`Disk::list`](crate::disk::Disk::list)
    List,
    /// [`Disk::create_dir`](crate::disk::Disk::create_dir)
    CreateDir,
    /// [`Disk::exists`](crate::disk::Disk::exists)
    Exists,
    /// [`Disk::lock`](crate::disk::Disk::lock)
    Lock,
    /// [`Disk::query_lock`](crate::disk::Disk::query_lock) and
    /// [`DiskLock::still_valid`](crate::disk::DiskLock::still_valid)
    QueryLock,
    /// [`Disk::free_space`](crate::disk::Disk::free_space)
    FreeSpace,
    /// [`Disk::fs_kind`](crate::disk::Disk::fs_kind)
    FsKind,
    /// [`DiskFile::read_at`](crate::disk::DiskFile::read_at)
    Read,
    /// [`DiskFile::write_at`](crate::disk::DiskFile::write_at)
    Write,
    /// [`DiskFile::sync_data`](crate::disk::DiskFile::sync_data) and
    /// [`DiskFile::sync_file`](crate::disk::DiskFile::sync_file)
    Sync,
    /// [`DiskFile::set_len`](crate::disk::DiskFile::set_len)
    SetLen,
    /// [`DiskFile::allocate`](crate::disk::DiskFile::allocate)
    Allocate,
    /// [`DiskFile::len`](crate::disk::DiskFile::len) and
    /// [`DiskFile::identity`](crate::disk::DiskFile::identity)
    Stat,
    /// [`DiskFile::map`](crate::disk::DiskFile::map)
    Map,
}

impl fmt::Display for DiskOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Create => "create",
            Self::Rename => "rename",
            Self::Unlink => "remove",
            Self::SyncDir => "sync directory",
            Self::List => "list",
            Self::CreateDir => "create directory",
            Self::Exists => "look for",
            Self::Lock => "lock",
            Self::QueryLock => "query the lock",
            Self::FreeSpace => "get the free space of",
            Self::FsKind => "get the kind of file system of",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::SetLen => "set the length of",
            Self::Allocate => "reserve space in",
            Self::Stat => "get the length of",
            Self::Map => "map",
        })
    }
}

impl DiskOp {
    /// Whether the call changes what is on the disk.
    #[must_use]
    pub fn is_change(self) -> bool {
        matches!(
            self,
            Self::Create
                | Self::Rename
                | Self::Unlink
                | Self::CreateDir
                | Self::Lock
                | Self::Write
                | Self::SetLen
                | Self::Allocate
        )
    }

    /// Whether the call makes changes durable.
    #[must_use]
    pub fn is_sync(self) -> bool {
        matches!(self, Self::Sync | Self::SyncDir)
    }
}

/// What a failing call does before it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing. A failed sync leaves everything to the next one.
    Nothing,
    /// Half of it: a write reaches half of its sectors. A failed sync drops what it should have written: no later sync
    /// writes it, though that one succeeds (what Linux does; the default of [`fail_nth`](super::SimDisk::fail_nth)
    /// for syncs).
    Part,
    /// All of it: only the answer is wrong.
    Whole,
}

#[derive(Debug, Clone)]
pub(super) struct Fault {
    /// `None` is any kind.
    pub(super) op: Option<DiskOp>,
    /// How many matching calls still pass.
    pub(super) passes: u64,
    /// Stays after it struck.
    pub(super) lasting: bool,
    pub(super) error: io::ErrorKind,
    pub(super) effect: Effect,
}

/// A fault that strikes the call at hand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strike {
    pub(super) error: io::ErrorKind,
    pub(super) effect: Effect,
}

impl Strike {
    pub(super) fn io_error(self) -> io::Error {
        io::Error::new(self.error, format!("{} (simulated)", self.error))
    }
}

/// The fault that strikes a call of the kind `op`, if one does.
pub(super) fn strike(faults: &mut Vec<Fault>, op: DiskOp) -> Option<Strike> {
    let mut struck = None;
    faults.retain_mut(|fault| {
        if fault.op.is_some_and(|wanted| wanted != op) {
            return true;
        }
        if fault.passes > 0 {
            fault.passes -= 1;
            return true;
        }
        if struck.is_some() {
            return true;
        }
        struck = Some(Strike { error: fault.error, effect: fault.effect });
        fault.lasting
    });
    struck
}
