//! What all handles, the leader and the background tasks of one log share.
//!
//! One short lock guards the commit state and the in-memory index together. It is never held at a disk call or
//! a wait (T3): debug builds assert it at every disk call that goes through [`Shared::unlocked`].

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::disk::{Disk, DiskLock};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{ControlSlot, LiveDamage, LiveSet, Lsn, SegmentHeader};
use crate::rt::{Bell, Runtime, point};

use super::commit_state::CommitState;
use super::counters::Counters;
use super::files::Files;
use super::follow::Follow;
use super::live::LiveIndex;
use super::segments::{EndOf, SegmentFacts, Segments, read_header};
use super::types::LogOptions;

/// Wake-up words: waiters of group g watch word g modulo this.
const WORDS: usize = 4;

/// What the short lock guards.
pub(crate) struct State {
    /// None in a log that was opened for reading.
    pub commit: Option<CommitState>,
    pub live: LiveIndex,
    /// The writer token: held by whoever carries out disk operations of the log.
    pub leading: bool,
    pub wakers: Vec<(Lsn, Waker)>,
    /// Since when something accepted is not written.
    pub unwritten_since: Option<Duration>,
    pub last_ack: Duration,
    /// The keeper was told that much is unwritten.
    pub drain_rung: bool,
    /// The keeper sleeps until somebody rings.
    pub keeper_rests: bool,
    /// Ended segments that have no index yet.
    pub unindexed: Vec<u32>,
    /// Derived files that nothing needs any more.
    pub doomed: Vec<String>,
    /// Background tasks are to finish.
    pub stopping: bool,
}

pub(crate) struct Shared {
    pub disk: Arc<dyn Disk>,
    pub rt: Arc<dyn Runtime>,
    pub options: LogOptions,
    pub process: u32,
    pub files: Files,
    pub segments: RwLock<Arc<Segments>>,
    pub counters: Counters,
    state: Mutex<State>,
    words: [AtomicU32; WORDS],
    /// Bumped when room may have appeared.
    room: AtomicU32,
    room_waiters: AtomicU64,
    pub keeper: OnceLock<Bell>,
    pub indexer: OnceLock<Bell>,
    pub lock: Mutex<Option<Box<dyn DiskLock>>>,
    live_set: Mutex<LiveSet>,
    control: Mutex<ControlSlot>,
    /// Of a reader: how far it has read.
    pub follow: Mutex<Option<Follow>>,
}

thread_local! {
    static LOCKED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Whether locks are counted: in debug builds, and for the simulation's sake in its release builds too.
const COUNTED: bool = cfg!(any(debug_assertions, feature = "testing"));

/// Says, as long as it lives, that this thread holds a lock under which no disk call or wait may happen (T3).
pub(crate) struct LockScope(());

impl LockScope {
    pub(crate) fn enter() -> Self {
        if COUNTED {
            LOCKED.with(|held| held.set(held.get().saturating_add(1)));
        }
        Self(())
    }

    /// This thread holds none, as far as they are counted.
    #[cfg(feature = "testing")]
    pub(crate) fn is_free() -> bool {
        LOCKED.with(std::cell::Cell::get) == 0
    }
}

impl Drop for LockScope {
    fn drop(&mut self) {
        if COUNTED {
            LOCKED.with(|held| held.set(held.get().saturating_sub(1)));
        }
    }
}

/// The held short lock.
pub(crate) struct Held<'a> {
    guard: MutexGuard<'a, State>,
    _scope: LockScope,
}

impl std::ops::Deref for Held<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        &self.guard
    }
}

impl std::ops::DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.guard
    }
}

impl State {
    pub(crate) fn writer(&mut self) -> Result<&mut CommitState> {
        self.commit.as_mut().ok_or_else(read_only)
    }
}

fn read_only() -> Error {
    Error::new(ErrorKind::ReadOnly, "the store was opened for reading; open it for writing to change it")
}

/// What a log is made of before it is recovered.
pub(crate) struct Parts {
    pub disk: Arc<dyn Disk>,
    pub rt: Arc<dyn Runtime>,
    pub options: LogOptions,
    pub lock: Option<Box<dyn DiskLock>>,
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Self {
        let now = parts.rt.monotonic();
        Self {
            process: parts.rt.process_id(),
            files: Files::new(Arc::clone(&parts.disk), parts.options.open_files),
            segments: RwLock::new(Arc::new(Segments::new(Vec::new()))),
            counters: Counters::default(),
            state: Mutex::new(State {
                commit: None,
                live: LiveIndex::new(Arc::default(), 1),
                leading: false,
                wakers: Vec::new(),
                unwritten_since: None,
                last_ack: now,
                drain_rung: false,
                keeper_rests: false,
                unindexed: Vec::new(),
                doomed: Vec::new(),
                stopping: false,
            }),
            words: Default::default(),
            room: AtomicU32::new(0),
            room_waiters: AtomicU64::new(0),
            keeper: OnceLock::new(),
            indexer: OnceLock::new(),
            lock: Mutex::new(parts.lock),
            live_set: Mutex::default(),
            control: Mutex::default(),
            follow: Mutex::new(None),
            disk: parts.disk,
            rt: parts.rt,
            options: parts.options,
        }
    }

    /// The live set as it was last read or written.
    pub(crate) fn live_set(&self) -> LiveSet {
        self.live_set.lock().clone()
    }

    pub(crate) fn set_live_set(&self, live: LiveSet) {
        *self.live_set.lock() = live;
    }

    /// Remembers damage that a reader found, in memory alone: sessions that it puts in doubt are not to pass for whole.
    pub(crate) fn note_damage(&self, damage: LiveDamage) {
        let damage_of = &mut self.live_set.lock().damage;
        let place = damage_of
            .binary_search_by_key(&(damage.segment, damage.from), |known| (known.segment, known.from));
        let Err(place) = place else { return };
        // Neighbours are one: a segment full of bad records must not take more memory than it has bytes.
        let before = place.checked_sub(1).and_then(|before| damage_of.get_mut(before));
        match before.filter(|known| known.segment == damage.segment && known.to >= damage.from) {
            Some(known) => known.to = known.to.max(damage.to),
            None => damage_of.insert(place, damage),
        }
    }

    /// CONTROL as it was when the store was opened or last looked at.
    pub(crate) fn control(&self) -> ControlSlot {
        *self.control.lock()
    }

    pub(crate) fn set_control(&self, slot: ControlSlot) {
        *self.control.lock() = slot;
    }

    pub(crate) fn state(&self) -> Held<'_> {
        // Under a session's lock nobody else is let in: who came might want it.
        if cfg!(debug_assertions) && LOCKED.with(std::cell::Cell::get) == 0 {
            point();
        }
        Held { guard: self.state.lock(), _scope: LockScope::enter() }
    }

    /// Asserts T3 in debug builds; called before disk operations and waits.
    pub(crate) fn unlocked() {
        debug_assert!(
            LOCKED.with(std::cell::Cell::get) == 0,
            "a disk call or wait under a lock of the log or a session"
        );
    }

    pub(crate) fn word(&self, group: u64) -> &AtomicU32 {
        let index = usize::try_from(group % WORDS as u64).unwrap_or(0);
        self.words.get(index).unwrap_or(&self.room)
    }

    /// Wakes the waiters of the groups in `from..=to`.
    pub(crate) fn wake_groups(&self, from: u64, to: u64) {
        let span = to.saturating_sub(from).min(WORDS as u64 - 1);
        for group in to.saturating_sub(span)..=to {
            let word = self.word(group);
            point();
            word.fetch_add(1, Ordering::Release);
            point();
            self.rt.wake_all(word);
        }
    }

    pub(crate) fn wake_everyone(&self) {
        self.wake_groups(0, WORDS as u64);
        self.wake_room();
    }

    pub(crate) fn wake_room(&self) {
        point();
        self.room.fetch_add(1, Ordering::Release);
        point();
        if self.room_waiters.load(Ordering::Acquire) > 0 {
            self.rt.wake_all(&self.room);
        }
    }

    /// Waits until room may have appeared since `seen`.
    pub(crate) fn await_room(&self, seen: u32) {
        Self::unlocked();
        point();
        self.room_waiters.fetch_add(1, Ordering::AcqRel);
        point();
        self.rt.wait(&self.room, seen);
        self.room_waiters.fetch_sub(1, Ordering::AcqRel);
    }

    pub(crate) fn room_seen(&self) -> u32 {
        point();
        self.room.load(Ordering::Acquire)
    }

    pub(crate) fn ring_keeper(&self) {
        if let Some(bell) = self.keeper.get() {
            bell.ring();
        }
    }

    pub(crate) fn ring_indexer(&self) {
        if let Some(bell) = self.indexer.get() {
            bell.ring();
        }
    }

    /// Refuses use in a process that was forked off: two writers would share one lock and one file position.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.rt.process_id() == self.process {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Forked,
            "this store was opened by the parent process; open it again in the child after the parent closed it",
        ))
    }

    /// Whether `number` is a segment already, and not only prepared to become one.
    pub(crate) fn is_segment(&self, number: u32) -> bool {
        self.state().live.table(number).is_some() || self.segments.read().contains(number)
    }

    /// The segment before `header.number` has ended as `header` says.
    pub(crate) fn segment_started(&self, header: &SegmentHeader) -> Result<()> {
        let (previous, header_crc) = read_header(self, header.previous)?;
        let end = EndOf { end: header.previous_end, chain: header.previous_chain, why: header.previous_why };
        let facts = SegmentFacts { header: previous, header_crc, end };
        self.segments.read().add_ended(header.previous, facts);
        self.files.ended(header.previous);
        Ok(())
    }
}
