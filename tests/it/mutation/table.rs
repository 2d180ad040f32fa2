//! Which campaign catches which fault.

use sessionlog::mutation::Mutation::{self, *};

/// Faults, and what catches them.
pub(super) struct Case {
    /// Switched on together. More than one where another mechanism covers for the first.
    pub(super) faults: &'static [Mutation],
    pub(super) campaign: &'static str,
    /// Which of them the same campaign does not catch: that the others cover for these.
    pub(super) harmless: &'static [&'static [Mutation]],
}

impl Case {
    /// As the specification writes them.
    pub(super) fn names(&self) -> String {
        self.faults.iter().map(|fault| format!("{fault:?}")).collect::<Vec<_>>().join(" + ")
    }
}

const fn one(faults: &'static [Mutation], campaign: &'static str) -> Case {
    Case { faults, campaign, harmless: &[] }
}

pub(super) static CASES: &[Case] = &[
    one(&[NoDirSyncAtRotation], "rotations"),
    one(&[NoDirSyncAtBegin], "power cuts"),
    Case {
        faults: &[NoDirSyncAtRecovery, NoDirSyncAtBegin],
        campaign: "creations",
        harmless: &[&[NoDirSyncAtRecovery]],
    },
    one(&[NoDirSyncOfLive], "cut recoveries from damage"),
    Case {
        faults: &[NoDirSyncOfIndex, NoDirSyncAtBegin],
        campaign: "cut recoveries from damage",
        harmless: &[&[NoDirSyncOfIndex]],
    },
    one(&[NoDirSyncOfRun], "known by runs"),
    one(&[NoDirSyncAtQuarantine], "power cuts"),
    Case {
        faults: &[NoDirSyncAtCreation, NoDirSyncOfControl, NoDirSyncOfLive],
        campaign: "creations",
        harmless: &[
            &[NoDirSyncAtCreation, NoDirSyncOfControl],
            &[NoDirSyncAtCreation, NoDirSyncOfLive],
            &[NoDirSyncOfControl, NoDirSyncOfLive],
        ],
    },
    one(&[NoDataSync], "power cuts"),
    one(&[SyncBeforeWrite], "power cuts"),
    one(&[NoSyncAtRotation], "rotations"),
    one(&[NoSyncAtBegin], "power cuts"),
    one(&[NoSyncBeforeRename], "cut recoveries from damage"),
    one(&[NoSyncAtRecovery], "failed syncs"),
    one(&[NoSyncOfContinue], "power cuts"),
    one(&[StartBeforeSync], "rotations"),
    one(&[NoPromiseInFrames], "zeroed sectors"),
    one(&[NoWatermarkInControl], "zeroed sectors"),
    one(&[NoWitnessFrame], "zeroed sectors"),
    one(&[PromiseAfterSync], "appends beside syncs"),
    one(&[ControlAfterWake], "follower"),
    one(&[AckBeforeSync], "power cuts"),
    one(&[RetryFailedSync], "failed syncs"),
    one(&[GoOnAfterFailure], "failed syncs"),
    one(&[NoRewriteAtRecovery], "failed syncs"),
    one(&[EndNotRecorded], "kills"),
    one(&[ReuseEpoch], "power cuts"),
    one(&[TornTailNotKept], "power cuts"),
    one(&[TornFrameCounts], "power cuts"),
    one(&[LaterFrameProves], "drained logs"),
    one(&[NoZeroSectorRule], "flipped bits behind a cut"),
    one(&[DamageNotRecorded], "zeroed sectors"),
    one(&[OldLiveBelieved], "older live sets"),
    one(&[SeqReusedAfterLoss], "zeroed sectors"),
    one(&[DenseReused], "zeroed sectors"),
    one(&[DoubtIgnored], "zeroed sectors"),
    one(&[HoleSkipped], "zeroed sectors"),
    one(&[ContinueOverResidue], "bytes behind the end"),
    one(&[TombstoneNotInRun], "lives"),
    one(&[TombstoneMergedAway], "lives"),
    one(&[TombstoneNotReplayed], "lives"),
    one(&[ForgottenTooEarly], "lives"),
    one(&[IgnoreRecordCrc], "flipped bits"),
    one(&[IgnoreHeaderCrc], "flipped bits"),
    Case {
        faults: &[IgnoreFramePlace, IgnoreChain],
        campaign: "misdirected frames",
        harmless: &[&[IgnoreFramePlace], &[IgnoreChain]],
    },
    Case {
        faults: &[UnboundRecords, AnyRecordCounts],
        campaign: "misdirected records",
        harmless: &[&[UnboundRecords], &[AnyRecordCounts]],
    },
    one(&[IgnoreEpoch], "mirror: stale epochs"),
    one(&[IgnoreChain], "mirror: alternatives"),
    Case {
        faults: &[IgnoreSalt, IgnoreChain],
        campaign: "mirror: segments",
        harmless: &[&[IgnoreSalt], &[IgnoreChain]],
    },
    one(&[IgnoreBlockCrc], "flipped bits of derived files"),
    one(&[IgnoreControlCrc], "flipped bits"),
    one(&[IgnoreLiveCrc], "flipped bits"),
    one(&[StopAtBadIndexFrame], "index frames"),
    one(&[StagedVisible], "staged imports"),
    one(&[RepairOneByOne], "resumes"),
    one(&[LockNotChecked], "two writers"),
    one(&[NoReservation], "full disks"),
    one(&[NoReservation], "interleaved rotations"),
    one(&[AckBeforeSync], "interleaved flushes"),
    one(&[WordSeenLate], "interleaved flushes"),
    one(&[NoHandOver], "interleaved flushes"),
    one(&[UnwindingUntold], "fallen leaders"),
    Case {
        faults: &[LeadTwice, TwoInFlight],
        campaign: "interleaved flushes",
        harmless: &[&[LeadTwice], &[TwoInFlight]],
    },
    one(&[NoBallast], "no space at all"),
    one(&[FollowerReadsAhead], "follower, drained"),
];
