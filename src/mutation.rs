//! Mutation switches: deliberate faults of the engine, so that the crash tests can be shown to fail (T5).
//!
//! Always: without the feature `mutation` every switch is off, known when compiling, and nothing of this is in a build.
//! With it a switch is on only in the threads and for as long as a test says. Never: a test asks a switch whether the
//! engine went wrong; what was lost must show in what the store hands out.
//!
//! The lowest layer: `format`, `log` and `store` have switches, each at the line where such a fault would be made.
//! `format-spec/mutations.md` says what catches each.

macro_rules! mutations {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A fault that can be switched on.
        #[derive(Clone, Copy)]
        #[cfg_attr(feature = "mutation", derive(Debug, PartialEq, Eq, PartialOrd, Ord))]
        pub enum Mutation {
            $($(#[doc = $doc])+ $name,)+
        }

        #[cfg(feature = "mutation")]
        impl Mutation {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];
        }
    };
}

mutations! {
    /// The folder is not synced when a prepared segment was renamed: the segment, with what was acknowledged in it, is
    /// gone after a power cut.
    NoDirSyncAtRotation,
    /// The folder is not synced when opening made a new segment: the same.
    NoDirSyncAtBegin,
    /// Recovery does not sync the folder of the segment it goes on from (P1).
    NoDirSyncAtRecovery,
    /// The folder is not synced when LIVE was replaced: known damage may be forgotten.
    NoDirSyncOfLive,
    /// The folder is not synced when CONTROL was made anew: the watermark may be gone.
    NoDirSyncOfControl,
    /// The folder is not synced when an index file was renamed.
    NoDirSyncOfIndex,
    /// The folder is not synced when a run of the directory was renamed; older runs may be removed after it.
    NoDirSyncOfRun,
    /// The folder is not synced when a torn tail was put aside: the evidence may be gone, and the bytes are cut.
    NoDirSyncAtQuarantine,
    /// The store's folder is not synced at the end of its creation.
    NoDirSyncAtCreation,
    /// No `fdatasync` at a commit: every acknowledgement is a lie until the kernel writes back.
    NoDataSync,
    /// The `fdatasync` of a commit comes before its write.
    SyncBeforeWrite,
    /// The header of a new segment is not synced before the segment has its name, at rotation.
    NoSyncAtRotation,
    /// The same when opening makes a new segment, so that its header may be gone with all that was acknowledged in it.
    NoSyncAtBegin,
    /// A file that replaces another is renamed before its bytes are durable.
    NoSyncBeforeRename,
    /// Recovery relies on bytes that it did not sync (P1).
    NoSyncAtRecovery,
    /// The continue mark is not synced before frames of its epoch follow (F11).
    NoSyncOfContinue,
    /// The next segment is started before the end of the one before it is durable (F3): its index, and a run, may then
    /// name events that a power cut takes.
    StartBeforeSync,
    /// Frame headers promise nothing (E1).
    NoPromiseInFrames,
    /// CONTROL's watermark stands still (E1).
    NoWatermarkInControl,
    /// No witness frame behind the last acknowledgement (E1).
    NoWitnessFrame,
    /// What counts as durable is sampled when a sync returns, not when it is called (E1).
    PromiseAfterSync,
    /// Waiters are woken before CONTROL is written: readers in other processes miss acknowledged events (G8).
    ControlAfterWake,
    /// A group counts as durable once it is written.
    AckBeforeSync,
    /// A failed sync is tried again, and then acknowledged: the kernel has dropped the pages (G5).
    RetryFailedSync,
    /// A failed write or sync does not stop the writer (G5).
    GoOnAfterFailure,
    /// Recovery trusts bytes that a failed sync may have left in the page cache alone, and does not write them again (P1).
    NoRewriteAtRecovery,
    /// The end that recovery found is not what the next header records (F3).
    EndNotRecorded,
    /// Opening uses the highest epoch again (F11).
    ReuseEpoch,
    /// A torn tail is cut and not kept (G4).
    TornTailNotKept,
    /// The good records of a torn frame count: batches are split (F7).
    TornFrameCounts,
    /// A whole frame behind a bad spot makes it damage; but disks reorder (E2).
    LaterFrameProves,
    /// A frame without a zero sector may pass for torn (F8).
    NoZeroSectorRule,
    /// Damage is not written down in LIVE (P2).
    DamageNotRecorded,
    /// A LIVE that is older than CONTROL knows of is believed (F4).
    OldLiveBelieved,
    /// A session goes on with seqs that lost events may have had (P2).
    SeqReusedAfterLoss,
    /// A new session gets a number that a lost one may have had (F12).
    DenseReused,
    /// Damage does not put a session in doubt: it goes on as if it were whole (P2).
    DoubtIgnored,
    /// A reader joins both sides of a hole (P2).
    HoleSkipped,
    /// The writer goes on behind a close mark although something stands behind it (F2).
    ContinueOverResidue,
    /// A run leaves deleted sessions out: what an older run says of them counts again (D6).
    TombstoneNotInRun,
    /// Merging runs leaves deleted sessions out: their children lose what they inherited (D6).
    TombstoneMergedAway,
    /// Replaying a segment does not see deletions (D6).
    TombstoneNotReplayed,
    /// A checkpoint forgets sessions that changed since (D2).
    ForgottenTooEarly,
    /// The checksum of a record is not compared (F7).
    IgnoreRecordCrc,
    /// The checksum of a frame header is not compared (F6).
    IgnoreHeaderCrc,
    /// A frame header counts wherever it stands (F7).
    IgnoreFramePlace,
    /// The checksums of records and tables are not bound to their place (F7).
    UnboundRecords,
    /// A reader takes whatever record stands where the index says that an event is (D1).
    AnyRecordCounts,
    /// A frame counts whatever its epoch (F7, F11).
    IgnoreEpoch,
    /// A frame counts whatever stood before it (F6).
    IgnoreChain,
    /// Checksums are not bound to the segment's salt (F7).
    IgnoreSalt,
    /// The checksums of blocks of index files and runs are not compared (D1, D2).
    IgnoreBlockCrc,
    /// The checksum of a slot of CONTROL is not compared (E1).
    IgnoreControlCrc,
    /// The checksum of LIVE is not compared (F4).
    IgnoreLiveCrc,
    /// A bad index frame ends what is read of them, and what the ones before it tell is missing (D1).
    StopAtBadIndexFrame,
    /// A staged session is visible before it is published (F10).
    StagedVisible,
    /// The closers of a resumed session are appended one by one (R2, G2).
    RepairOneByOne,
    /// LOCK is not looked at when a segment is started: two writers replace each other's segments (D5).
    LockNotChecked,
    /// Appends go where no space was prepared (C1): a full disk stops the writer.
    NoReservation,
    /// Nothing is held back for tombstones on a full disk (G6).
    NoBallast,
    /// A waiter looks at its wake-up word when it has let go of the lock: the wake-up may have come before, and it sleeps
    /// for ever (C2).
    WordSeenLate,
    /// A leader gives the token back and wakes nobody who could lead on (C2).
    NoHandOver,
    /// A leader that unwinds neither stops the writer nor wakes those who wait (C2).
    UnwindingUntold,
    /// Whoever flushes leads, whether somebody does already or not (C2).
    LeadTwice,
    /// The machine hands out an operation while another one is under way (T1).
    TwoInFlight,
    /// A reader beside a writer reads what is not durable yet (D4): after a power cut it has seen what never was.
    FollowerReadsAhead,
}

pub use switches::*;

#[cfg(not(feature = "mutation"))]
mod switches {
    use super::Mutation;

    /// Whether the fault is to be made: never, in a build without the feature.
    pub const fn is_on(_: Mutation) -> bool {
        false
    }

    // Known when compiling, so that what a switch guards is in no build.
    const _: () = assert!(!is_on(Mutation::NoDataSync));
}

#[cfg(feature = "mutation")]
mod switches {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Mutation;

    const _: () = assert!(Mutation::ALL.len() <= 128);

    thread_local! {
        static ON: Cell<u128> = const { Cell::new(0) };
    }

    /// How many threads have switches on. While it is 0, a switch costs one look at it.
    static SCOPES: AtomicUsize = AtomicUsize::new(0);

    /// Whether the fault is to be made in this thread.
    #[must_use]
    pub fn is_on(mutation: Mutation) -> bool {
        SCOPES.load(Ordering::Relaxed) > 0 && ON.get() & bit(mutation) != 0
    }

    /// Calls `run` with the fault switched on in this thread, besides those that are on already.
    pub fn with<T>(mutation: Mutation, run: impl FnOnce() -> T) -> T {
        Switches(ON.get() | bit(mutation)).within(run)
    }

    /// The switches of this thread, for a thread that it starts.
    #[must_use]
    pub fn current() -> Switches {
        Switches(ON.get())
    }

    /// Which faults are switched on.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Switches(u128);

    impl Switches {
        /// Calls `run` with exactly these switches on in this thread.
        pub fn within<T>(self, run: impl FnOnce() -> T) -> T {
            let _scope = Scope { before: ON.replace(self.0) };
            SCOPES.fetch_add(1, Ordering::Relaxed);
            run()
        }
    }

    impl FromIterator<Mutation> for Switches {
        fn from_iter<I: IntoIterator<Item = Mutation>>(all: I) -> Self {
            Self(all.into_iter().map(bit).fold(0, |on, bit| on | bit))
        }
    }

    /// Puts back what was on before, also when `run` unwinds.
    struct Scope {
        before: u128,
    }

    impl Drop for Scope {
        fn drop(&mut self) {
            ON.set(self.before);
            SCOPES.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn bit(mutation: Mutation) -> u128 {
        1 << mutation as u32
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use Mutation::{AckBeforeSync, NoDataSync};

        #[test]
        fn switches_are_on_in_their_scope_and_thread_alone() {
            assert!(!is_on(NoDataSync));
            with(NoDataSync, || {
                with(AckBeforeSync, || assert!(is_on(NoDataSync) && is_on(AckBeforeSync)));
                assert!(is_on(NoDataSync) && !is_on(AckBeforeSync));
                let here = current();
                std::thread::scope(|scope| {
                    scope.spawn(|| assert!(!is_on(NoDataSync)));
                    scope.spawn(move || here.within(|| assert!(is_on(NoDataSync))));
                });
                Switches::default().within(|| assert!(!is_on(NoDataSync)));
            });
            let unwound = std::panic::catch_unwind(|| with(NoDataSync, || panic!("as a test fails")));
            assert!(unwound.is_err() && !is_on(NoDataSync));
        }
    }
}
