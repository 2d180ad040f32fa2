//! How a store is opened.
//!
//! Every field has a default that is right for an agent on a local disk. Nothing is read or written before
//! [`open`](StoreOptions::open).

use std::path::Path;
use std::sync::Arc;

use crate::disk::{Disk, RealDisk};
use crate::error::{Error, ErrorKind, Result};
use crate::log::{Log, LogOptions};
use crate::rt::{RealRuntime, Runtime};

use super::engine::Engine;
use super::fork::MAX_FORK_DEPTH;
use super::stage::STAGED_PAST;
use super::store::SessionStore;

/// What to do with an append that breaks only rules I5 to I10. They never refuse an append by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Invariants {
    /// Do not look.
    #[default]
    Off,
    /// Append, and report by `tracing` and by [`Counters::violations`](crate::Counters).
    Report,
    /// Refuse the append with [`ErrorKind::Invariant`]; nothing changes.
    Refuse,
}

pub(super) type OnCloseError = dyn Fn(&Error) + Send + Sync;

/// Options for opening a store. See each method for the default.
#[derive(Clone)]
pub struct StoreOptions {
    create: bool,
    log: LogOptions,
    segment_bytes: u64,
    invariants: Invariants,
    fork_depth: usize,
    staged_past: usize,
    on_close_error: Option<Arc<OnCloseError>>,
    disk: Option<Arc<dyn Disk>>,
    runtime: Option<Arc<dyn Runtime>>,
}

/// The smallest segment, in bytes.
pub const MIN_SEGMENT_BYTES: u64 = 64 << 10;
/// The largest segment, in bytes: offsets inside a segment have 32 bits.
pub const MAX_SEGMENT_BYTES: u64 = 1 << 30;

impl Default for StoreOptions {
    fn default() -> Self {
        let log = LogOptions::default();
        Self {
            create: true,
            segment_bytes: u64::from(log.segment_bytes),
            log,
            invariants: Invariants::Off,
            fork_depth: MAX_FORK_DEPTH,
            staged_past: STAGED_PAST,
            on_close_error: None,
            disk: None,
            runtime: None,
        }
    }
}

impl StoreOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the store when there is none (default), or not.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// The capacity of new segments in bytes, 64 KiB to 1 GiB (default 64 MiB).
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// How many bytes may be accepted and not yet written, over all sessions (default 8 MiB). Past it, an append
    /// gets [`ErrorKind::Backpressure`].
    #[must_use]
    pub fn unflushed_bytes(mut self, bytes: usize) -> Self {
        self.log.unflushed_bytes = bytes;
        self
    }

    /// Pads each commit to a multiple of 4096 bytes, so that no acknowledged page is written again (default off).
    #[must_use]
    pub fn padded(mut self, padded: bool) -> Self {
        self.log.padded = padded;
        self
    }

    /// Maps index and directory files (default), or reads them.
    #[must_use]
    pub fn maps(mut self, maps: bool) -> Self {
        self.log.maps = maps;
        self
    }

    /// How many segment files are kept open at a time (default 16).
    #[must_use]
    pub fn open_files(mut self, files: usize) -> Self {
        self.log.open_files = files;
        self
    }

    /// Lets a writer onto a network or FUSE-like file system (default off): locks and syncs often mean less there
    /// than the guarantees need.
    #[must_use]
    pub fn allow_network_fs(mut self, allow: bool) -> Self {
        self.log.allow_network = allow;
        self
    }

    /// What to do with appends that break rules I5 to I10 (default [`Invariants::Off`]).
    #[must_use]
    pub fn invariants(mut self, policy: Invariants) -> Self {
        self.invariants = policy;
        self
    }

    /// How many sessions a fork may read through, 1 to [`MAX_FORK_DEPTH`] (the default). The events of a deeper one are
    /// copied into the child.
    #[must_use]
    pub fn fork_depth(mut self, sessions: usize) -> Self {
        self.fork_depth = sessions.clamp(1, MAX_FORK_DEPTH);
        self
    }

    /// How many encoded bytes a new session, or what an import adds to a stored one, may have to be written as one batch
    /// (default 1 MiB). Past it they are written in pieces that nobody sees before the last one is there. It bounds what
    /// is held in memory meanwhile.
    #[must_use]
    pub fn staged_past(mut self, bytes: usize) -> Self {
        self.staged_past = bytes;
        self
    }

    /// Called when the last handle is dropped without [`SessionStore::close`] and the flush then fails.
    #[must_use]
    pub fn on_close_error(mut self, call: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.on_close_error = Some(Arc::new(call));
        self
    }

    /// Uses this disk instead of the directory that is passed to [`open`](Self::open).
    #[must_use]
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = Some(disk);
        self
    }

    /// Uses these threads, waits, clock and random numbers instead of the operating system's.
    #[must_use]
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Opens the store in `directory` for writing, recovering it where that is needed. There is one writer per
    /// store over all processes.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] names the process that holds the store; [`ErrorKind::NotFound`] without a store and
    /// without [`create`](Self::create); [`ErrorKind::Version`] for a newer format, which is left untouched;
    /// [`ErrorKind::Unsupported`] for a network file system; errors of the file system.
    pub fn open(self, directory: impl AsRef<Path>) -> Result<SessionStore> {
        let log_options = self.checked()?;
        let runtime = self.runtime.clone().unwrap_or_else(|| Arc::new(RealRuntime::new()));
        let disk = match &self.disk {
            Some(disk) => Arc::clone(disk),
            None => Arc::new(RealDisk::open(directory.as_ref(), self.create)?),
        };
        let (log, report) = Log::open_writer(disk, Arc::clone(&runtime), log_options, self.create)?;
        let engine = Engine::new(log, runtime, self.invariants, self.fork_depth, self.staged_past);
        Ok(SessionStore::assemble(engine, report, self.on_close_error))
    }

    /// Opens the store in `directory` for reading, beside any writer. It takes no lock and writes nothing.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] without a store; [`ErrorKind::Version`] for a newer format; errors of the file
    /// system.
    pub fn open_read_only(self, directory: impl AsRef<Path>) -> Result<SessionStore> {
        let log_options = self.checked()?;
        let runtime = self.runtime.clone().unwrap_or_else(|| Arc::new(RealRuntime::new()));
        let disk = match &self.disk {
            Some(disk) => Arc::clone(disk),
            None => Arc::new(RealDisk::open(directory.as_ref(), false)?),
        };
        let (log, report) = Log::open_reader(disk, Arc::clone(&runtime), log_options)?;
        let engine = Engine::new(log, runtime, self.invariants, self.fork_depth, self.staged_past);
        Ok(SessionStore::assemble(engine, report, self.on_close_error))
    }

    fn checked(&self) -> Result<LogOptions> {
        if !(MIN_SEGMENT_BYTES..=MAX_SEGMENT_BYTES).contains(&self.segment_bytes) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "segment_bytes is {}, expected {MIN_SEGMENT_BYTES} to {MAX_SEGMENT_BYTES}",
                    self.segment_bytes
                ),
            ));
        }
        let mut options = self.log.clone();
        options.segment_bytes = u32::try_from(self.segment_bytes).unwrap_or(u32::MAX);
        Ok(options)
    }
}

impl std::fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreOptions")
            .field("create", &self.create)
            .field("segment_bytes", &self.segment_bytes)
            .field("invariants", &self.invariants)
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}
