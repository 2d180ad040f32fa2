//! The store: the live sessions of this process and everything that is stored.
//!
//! Always: one writer per store over all processes, any number of readers; an id is live at most once. Never: a lock
//! of the store is held at a disk call, a wait or a listener (T3).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::disk::{Disk, RealDisk};
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, Header};
use crate::log::{BackupReport, Durability, Finding, RecoveryReport, VerifySummary};

use super::core::Ended;
use super::counters::Counters;
use super::create::{self, CreateOptions};
use super::delete;
use super::engine::Engine;
use super::fork::{self, ForkOptions};
use super::import::Import;
use super::lifecycle::{self, DetachGuard, Prepared};
use super::listeners::{Flushing, ListenerId, Origin};
use super::live::LiveTable;
use super::options::OnCloseError;
use super::reader::SessionReader;
use super::resume::{self, ResumeOptions, Resumed};
use super::session::Session;
use super::stat::{Stat, Stored};
use super::ticket::{FlushTicket, Round};

/// A store of sessions. Handles are cheap to clone and can be used from many threads; the last one closes the store.
#[derive(Clone)]
pub struct SessionStore {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Arc<Engine>,
    live: Arc<LiveTable>,
    recovery: RecoveryReport,
    on_close_error: Option<Arc<OnCloseError>>,
    closed: AtomicBool,
}

impl SessionStore {
    pub(super) fn assemble(
        engine: Engine,
        recovery: RecoveryReport,
        on_close_error: Option<Arc<OnCloseError>>,
    ) -> Self {
        let engine = Arc::new(engine);
        let live = Arc::new(LiveTable::default());
        let closed = AtomicBool::new(false);
        Self { inner: Arc::new(Inner { engine, live, recovery, on_close_error, closed }) }
    }

    /// Opens the store in `directory` for writing with the default options, creating it if there is none.
    ///
    /// # Errors
    /// Those of [`StoreOptions::open`](crate::StoreOptions::open).
    pub fn open_writer(directory: impl AsRef<Path>) -> Result<Self> {
        super::options::StoreOptions::new().open(directory)
    }

    /// A new session: [`prepare`](Self::prepare), [`enter`](Self::enter) and [`announce`](DetachGuard::announce)
    /// together. It waits for room when there is none, and is not flushed.
    ///
    /// # Errors
    /// [`Exists`](ErrorKind::Exists) when the id is live or stored; a seed that breaks rules I1 to I4, by event;
    /// [`Listener`](ErrorKind::Listener) when a `created` listener failed; what the log says. Nothing is left then.
    pub fn create(&self, options: CreateOptions) -> Result<Session> {
        self.bring_in(self.prepare(options)?)
    }

    /// Validates and builds a new session. Writes nothing, and does not take the id.
    ///
    /// # Errors
    /// A malformed header, or a seed that breaks rules I1 to I4, by event.
    pub fn prepare(&self, options: CreateOptions) -> Result<Prepared> {
        self.check_writer()?;
        create::prepare(self.engine(), options)
    }

    /// Wires a prepared session and puts it into the live set. Nothing is written until it is announced; dropping
    /// the guard takes it out again.
    ///
    /// # Errors
    /// [`Exists`](ErrorKind::Exists) when the id is live, or stored by now; [`Conflict`](ErrorKind::Conflict) when a
    /// stored session changed since it was prepared.
    pub fn enter(&self, prepared: Prepared) -> Result<DetachGuard> {
        self.check_writer()?;
        lifecycle::enter(self.engine(), &self.inner.live, prepared)
    }

    /// Announces a session that entered: see [`DetachGuard::announce`].
    ///
    /// # Errors
    /// Those of [`DetachGuard::announce`].
    pub fn announce(&self, guard: &DetachGuard) -> Result<()> {
        guard.announce()
    }

    /// Brings a session in event by event, for seeds that do not fit in memory. It does not become live. Of a session
    /// that is stored already only what is new is added, and a child of a stored parent refers to the events that it
    /// inherited: see [`Published`](super::Published). However much it is, it appears at once when it is published; who has
    /// the session open for reading keeps what was there, and finds the rest after
    /// [`refresh`](SessionReader::refresh).
    ///
    /// # Errors
    /// [`Exists`](ErrorKind::Exists) when the id is live; [`Conflict`](ErrorKind::Conflict) when another session of
    /// that id is stored; [`Corrupt`](ErrorKind::Corrupt) when the stored one is not whole.
    pub fn import(&self, header: Header) -> Result<Import> {
        self.check_writer()?;
        Import::begin(self.engine(), &self.inner.live, header)
    }

    /// What [`import`](Self::import) would do, and refuse: nothing is written, also in a store that was opened for
    /// reading.
    ///
    /// # Errors
    /// As [`import`](Self::import).
    pub fn rehearse_import(&self, header: &Header) -> Result<Import> {
        self.check_open()?;
        Import::rehearse(self.engine(), &self.inner.live, header)
    }

    /// The live session of this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Session> {
        self.inner.live.get(id)
    }

    /// The live sessions in the order in which they came in.
    #[must_use]
    pub fn list(&self) -> Vec<Session> {
        self.inner.live.list()
    }

    /// What the store holds, in the order of creation.
    ///
    /// # Errors
    /// Errors of reading the index.
    pub fn stored(&self) -> Result<Stored> {
        self.check_open()?;
        let log = self.engine().log.clone();
        let sessions = log.sessions()?.into_iter();
        Ok(Stored { log, sessions })
    }

    /// A stored session in numbers, without reading an event (L5).
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound); errors of reading the index.
    pub fn stat(&self, id: &str) -> Result<Stat> {
        self.check_open()?;
        let engine = self.engine();
        Stat::of(&engine.log, &engine.stored(id)?)
    }

    /// The stored sessions that were forked off `id` itself, oldest first (D2). Deleted ones are left out.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound); errors of reading the index.
    pub fn forks(&self, id: &str) -> Result<Vec<Stat>> {
        self.check_open()?;
        let engine = self.engine();
        let forks = engine.log.forks(&engine.stored(id)?)?;
        forks.iter().map(|entry| Stat::of(&engine.log, entry)).collect()
    }

    /// Opens a stored session for reading, live or not.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound); errors of reading the index.
    pub fn open(&self, id: &str) -> Result<SessionReader> {
        self.check_open()?;
        SessionReader::new(self.engine(), self.engine().stored(id)?)
    }

    /// Opens a stored session for writing. What a crash left open is closed by one batch of closers (R3).
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound); [`Exists`](ErrorKind::Exists) when it is live;
    /// [`Corrupt`](ErrorKind::Corrupt) when it is not proven whole; what the log says.
    pub fn resume(&self, id: &str) -> Result<Resumed> {
        self.resume_with(id, ResumeOptions::new())
    }

    /// As [`resume`](Self::resume), with options.
    ///
    /// # Errors
    /// As [`resume`](Self::resume).
    pub fn resume_with(&self, id: &str, options: ResumeOptions) -> Result<Resumed> {
        loop {
            if self.get(id).is_some() {
                return Err(Error::new(
                    ErrorKind::Exists,
                    format!(
                        "session {id:?} is live in this store already; use that handle, or detach it first"
                    ),
                ));
            }
            let prepared = self.prepare_resume(id, options)?;
            let closers = prepared.closers().to_vec();
            match self.bring_in(prepared) {
                Ok(session) => return Ok(Resumed { session, closers }),
                // Somebody resumed it, appended and detached it meanwhile.
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The part of [`resume`](Self::resume) that writes nothing; [`enter`](Self::enter) and announce it.
    ///
    /// # Errors
    /// As [`resume`](Self::resume).
    pub fn prepare_resume(&self, id: &str, options: ResumeOptions) -> Result<Prepared> {
        self.check_writer()?;
        resume::prepare(self.engine(), id, options)
    }

    /// The closers that a resume would append (R2). Writes nothing.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound); [`Corrupt`](ErrorKind::Corrupt) when events were lost to damage.
    pub fn repair_plan(&self, id: &str) -> Result<Vec<Event>> {
        self.open(id)?.closers()
    }

    /// A new session that begins with the events of `parent`, by reference (L4).
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) for the parent or the event; [`OpenTurn`](ErrorKind::OpenTurn) when a turn
    /// is open at the cut and nobody asked to close it; those of [`create`](Self::create).
    pub fn fork(&self, parent: &str, options: ForkOptions) -> Result<Session> {
        self.bring_in(self.prepare_fork(parent, options)?)
    }

    /// The part of [`fork`](Self::fork) that writes nothing; [`enter`](Self::enter) and announce it. The parent
    /// cannot be deleted until then.
    ///
    /// # Errors
    /// As [`fork`](Self::fork).
    pub fn prepare_fork(&self, parent: &str, options: ForkOptions) -> Result<Prepared> {
        self.check_writer()?;
        fork::prepare(self.engine(), &self.inner.live, parent, options)
    }

    /// Removes a session, live or not; its forks keep what they need. Handles to it get
    /// [`Closed`](ErrorKind::Closed). As durable as an append: flush to be sure.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound); [`Conflict`](ErrorKind::Conflict) while it is being forked, or has entered
    /// and was not announced; what the log says.
    pub fn delete(&self, id: &str) -> Result<()> {
        self.check_writer()?;
        delete::delete(self.engine(), &self.inner.live, id)
    }

    /// Makes everything that was appended to any session durable, and runs the store's flush listeners beside that.
    ///
    /// # Errors
    /// The failure of the log, else the first one of a listener, after all have settled.
    pub fn flush(&self) -> Result<()> {
        self.flush_ticket()?.wait()
    }

    /// Starts a flush of everything, to be waited for or awaited.
    ///
    /// # Errors
    /// As [`flush`](Self::flush), for what can be known at once.
    pub fn flush_ticket(&self) -> Result<FlushTicket> {
        self.check_writer()?;
        super::inside::refuse_flush(super::inside::STORE)?;
        let engine = self.engine();
        engine.log.check_fault()?;
        let calls = engine.listeners.flush_calls(&Flushing { session: None, seq: 0 });
        let upto = engine.log.tail();
        Ok(FlushTicket::new(engine.log.ticket(upto), Round::start(&engine.runtime, calls), None))
    }

    /// Brings everything that was appended to `how`, without the flush listeners.
    ///
    /// # Errors
    /// The failure of the log.
    pub fn flush_to(&self, how: Durability) -> Result<()> {
        self.check_writer()?;
        self.engine().log.check_fault()?;
        self.engine().log.flush(self.engine().log.tail(), how)
    }

    /// Waits until an append of about `bytes` may go through again after [`ErrorKind::Backpressure`].
    ///
    /// # Errors
    /// The lasting reason why it will not, such as [`Full`](ErrorKind::Full).
    pub fn wait_for_room(&self, bytes: usize) -> Result<()> {
        self.check_writer()?;
        self.engine().log.wait_for_room(bytes)
    }

    /// What was done since the store was opened.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let engine = self.engine();
        Counters::gather(engine.log.counters(), &engine.tallies, self.inner.live.len())
    }

    /// What opening found, and what it did about it.
    #[must_use]
    pub fn recovery(&self) -> &RecoveryReport {
        &self.inner.recovery
    }

    /// Why writing is over until the store is opened again, if so (G5).
    #[must_use]
    pub fn fault(&self) -> Option<Error> {
        self.engine().log.fault()
    }

    /// Reads and checks everything, and tells `found` of each finding as it comes.
    ///
    /// # Errors
    /// Errors that keep it from going on; damage is a finding.
    pub fn verify(&self, found: &mut dyn FnMut(Finding)) -> Result<VerifySummary> {
        self.check_open()?;
        self.engine().log.verify(found)
    }

    /// Copies the store, as far as it is durable, into the empty directory `target`, which is created if missing.
    ///
    /// # Errors
    /// [`Exists`](ErrorKind::Exists) when the directory is not empty; errors of either file system.
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<BackupReport> {
        self.backup_to(Arc::new(RealDisk::open(target.as_ref(), true)?))
    }

    /// As [`backup`](Self::backup), to a disk.
    ///
    /// # Errors
    /// As [`backup`](Self::backup).
    pub fn backup_to(&self, target: Arc<dyn Disk>) -> Result<BackupReport> {
        self.check_open()?;
        self.engine().log.backup(target)
    }

    /// Takes in what the writer in another process made durable since; whether there was anything. For stores that
    /// were opened read-only; a writer has nothing to take in.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn refresh(&self) -> Result<bool> {
        self.check_open()?;
        if self.is_writer() { Ok(false) } else { self.engine().log.refresh() }
    }

    /// Whether the store was opened for writing.
    #[must_use]
    pub fn is_writer(&self) -> bool {
        self.engine().log.is_writer()
    }

    /// Calls `listener` for each session that is announced, before anything of it is written, on the thread that
    /// announces it. If it fails, the session is gone again without a trace (A8).
    pub fn on_created(
        &self,
        listener: impl Fn(&Session, Origin) -> Result<()> + Send + Sync + 'static,
    ) -> ListenerId {
        self.engine().listeners.on_created(listener)
    }

    /// Calls `listener` after each append to any session, in seq order per session, on the thread of an appender.
    /// Its errors and panics reach nobody (A8). A seed fires none. Be quick in it; for slow work
    /// [subscribe](Session::subscribe).
    pub fn on_event(
        &self,
        listener: impl Fn(&Session, &Event) -> Result<()> + Send + Sync + 'static,
    ) -> ListenerId {
        self.engine().listeners.on_event(listener)
    }

    /// Calls `listener` at each flush of a session or of the store, beside the other flush listeners; the flush
    /// waits for it and returns its failure.
    pub fn on_flush(&self, listener: impl Fn(&Flushing) -> Result<()> + Send + Sync + 'static) -> ListenerId {
        self.engine().listeners.on_flush(listener)
    }

    /// Removes a listener of the store; whether it was there.
    pub fn remove_listener(&self, id: ListenerId) -> bool {
        self.engine().listeners.remove(id)
    }

    /// Flushes and closes the store for every handle: later use gets [`Closed`](ErrorKind::Closed).
    ///
    /// # Errors
    /// The failure of the last flush, or of the close mark. The store is closed nevertheless.
    pub fn close(self) -> Result<()> {
        self.inner.close()
    }

    fn engine(&self) -> &Arc<Engine> {
        &self.inner.engine
    }

    fn bring_in(&self, prepared: Prepared) -> Result<Session> {
        let guard = self.enter(prepared)?;
        guard.announce()?;
        Ok(guard.keep())
    }

    fn check_open(&self) -> Result<()> {
        if self.inner.closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "the store was closed; open it again"));
        }
        Ok(())
    }

    fn check_writer(&self) -> Result<()> {
        self.check_open()?;
        if self.is_writer() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::ReadOnly,
            "the store was opened for reading; open it for writing to change it",
        ))
    }
}

impl Inner {
    /// Ends every live session, flushes what was accepted and closes the log. A second call does nothing.
    fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        for session in self.live.close() {
            session.core().end(Ended::StoreClosed);
        }
        self.engine.log.close()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Err(error) = self.close() else { return };
        // A forked child must leave the parent's store alone, also in what it says (C4).
        if error.kind() == ErrorKind::Forked {
            return;
        }
        tracing::error!(%error, "the store was dropped and could not be closed");
        if let Some(call) = &self.on_close_error {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call(&error)));
        }
    }
}

impl std::fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionStore").field("live", &self.inner.live.len()).finish_non_exhaustive()
    }
}
