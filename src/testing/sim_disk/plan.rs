//! Many faults at once, each with a rate or a place, all by one seed.
//!
//! Whether a kind strikes is a function of the seed, the kind and how often it could have struck before. So kinds do
//! not disturb each other: taking one out of a plan leaves the choices of the others as they were.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::testing::random::{Random, mix};
use crate::{Error, ErrorKind, Result};

use super::fault::{DiskOp, Effect, Strike};

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// A read fails once.
    ReadFails,
    /// A read fails, and its sector stays unreadable.
    BadSector,
    /// A read, a write or a reservation is interrupted before it did anything.
    Interrupted,
    /// A write takes only a part, up to the end of a sector.
    ShortWrite,
    /// A write fails, half of it done.
    WriteFails,
    /// A sync of a file fails and drops what it should have written; a later one succeeds.
    SyncDrops,
    /// A sync of a file fails and leaves all to the next one.
    SyncFails,
    /// A call that creates, renames, removes or syncs names fails.
    NamesFail,
    /// No space for a write; half of it is done.
    FullWrite,
    /// No space for a reservation.
    FullReserve,
    /// A sync says that there is no space, and drops what it should have written.
    FullSync,
    /// No space for a change of names.
    FullNames,
    /// The cache forgets pages that a failed sync called clean: reads see the medium from now on.
    Eviction,
    /// A bit of some file turns over.
    BitRot,
    /// A page of some file becomes zero.
    ZeroedPage,
    /// A write is acknowledged and its bytes land at another sector, of this file or another one.
    Misdirected,
    /// A write is acknowledged, and synced, and never reaches the medium.
    LostWrite,
    /// A read sees an older version of a sector, once.
    StaleRead,
    /// A sector falls back to an older version.
    StaleForGood,
    /// A file vanishes.
    Vanished,
    /// A file is replaced by an older version of itself.
    Swapped,
}

use FaultKind as K;

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 21] = [
        K::ReadFails,
        K::BadSector,
        K::Interrupted,
        K::ShortWrite,
        K::WriteFails,
        K::SyncDrops,
        K::SyncFails,
        K::NamesFail,
        K::FullWrite,
        K::FullReserve,
        K::FullSync,
        K::FullNames,
        K::Eviction,
        K::BitRot,
        K::ZeroedPage,
        K::Misdirected,
        K::LostWrite,
        K::StaleRead,
        K::StaleForGood,
        K::Vanished,
        K::Swapped,
    ];

    /// How plans spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadFails => "read-fails",
            Self::BadSector => "bad-sector",
            Self::Interrupted => "interrupted",
            Self::ShortWrite => "short-write",
            Self::WriteFails => "write-fails",
            Self::SyncDrops => "sync-drops",
            Self::SyncFails => "sync-fails",
            Self::NamesFail => "names-fail",
            Self::FullWrite => "full-write",
            Self::FullReserve => "full-reserve",
            Self::FullSync => "full-sync",
            Self::FullNames => "full-names",
            Self::Eviction => "eviction",
            Self::BitRot => "bit-rot",
            Self::ZeroedPage => "zeroed-page",
            Self::Misdirected => "misdirected",
            Self::LostWrite => "lost-write",
            Self::StaleRead => "stale-read",
            Self::StaleForGood => "stale-for-good",
            Self::Vanished => "vanished",
            Self::Swapped => "swapped",
        }
    }

    /// Whether it may take acknowledged bytes without any call having failed, or for good.
    #[must_use]
    pub fn is_damage(self) -> bool {
        self >= Self::BitRot || self == Self::BadSector
    }

    /// Whether it may take the last commit so that nothing of it is left on the medium.
    #[must_use]
    pub fn may_leave_no_trace(self) -> bool {
        use FaultKind as K;
        matches!(
            self,
            K::LostWrite | K::Misdirected | K::ZeroedPage | K::StaleForGood | K::Swapped | K::Vanished
        )
    }

    /// Whether calls just go on: nobody above the disk hears of it.
    #[must_use]
    pub fn is_harmless(self) -> bool {
        matches!(self, Self::Interrupted | Self::ShortWrite)
    }

    fn number(self) -> usize {
        Self::ALL.iter().position(|kind| *kind == self).unwrap_or(0)
    }

    /// How a call of the kind `op` fails by it, if it is one that fails calls.
    fn strike(self, op: DiskOp) -> Option<Strike> {
        use std::io::ErrorKind::{Other, StorageFull};
        let names = matches!(
            op,
            DiskOp::Create | DiskOp::Rename | DiskOp::Unlink | DiskOp::SyncDir | DiskOp::CreateDir
        );
        let (error, effect) = match (self, op) {
            (Self::ReadFails, DiskOp::Read) => (Other, Effect::Nothing),
            (Self::WriteFails, DiskOp::Write) => (Other, Effect::Part),
            (Self::SyncDrops, DiskOp::Sync) => (Other, Effect::Part),
            (Self::SyncFails, DiskOp::Sync) => (Other, Effect::Nothing),
            (Self::NamesFail, _) if names => (Other, Effect::Nothing),
            (Self::FullWrite, DiskOp::Write) => (StorageFull, Effect::Part),
            (Self::FullReserve, DiskOp::Allocate) => (StorageFull, Effect::Nothing),
            (Self::FullSync, DiskOp::Sync) => (StorageFull, Effect::Part),
            (Self::FullNames, _) if names && op != DiskOp::Unlink => (StorageFull, Effect::Nothing),
            _ => return None,
        };
        Some(Strike { error, effect })
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Rates are so many of this many chances.
pub const CHANCES: u64 = 10_000;

/// The faults of a run. As text: the seed, then `kind=rate` (of 10,000 chances) or `kind@chance` (exactly that one,
/// from 0), with commas between.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// What all choices follow from.
    pub seed: u64,
    /// How many of 10,000 chances strike, by kind.
    pub rates: BTreeMap<FaultKind, u64>,
    /// Single chances that strike.
    pub places: Vec<(FaultKind, u64)>,
}

impl FaultPlan {
    /// Nothing goes wrong.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Some kinds of `from`, several at once, with rates that let a run of some hundred calls meet each a few times.
    #[must_use]
    pub fn of_seed(seed: u64, from: &[FaultKind]) -> Self {
        let mut random = Random::new(seed ^ 0xFA17);
        let mut plan = Self { seed, ..Self::default() };
        for _ in 0..1 + random.below(3) {
            if let Some(kind) = random.pick(from) {
                let most = match kind {
                    K::Interrupted | K::ShortWrite => 4000,
                    // Any call may be the one.
                    K::Eviction | K::BitRot | K::ZeroedPage | K::StaleForGood | K::Vanished | K::Swapped => {
                        100
                    }
                    K::ReadFails | K::BadSector | K::StaleRead => 200,
                    _ => 600,
                };
                let rate = 1 + random.below(most);
                plan.rates.insert(*kind, rate);
            }
        }
        plan
    }

    /// With a rate for a kind.
    #[must_use]
    pub fn with(mut self, kind: FaultKind, rate: u64) -> Self {
        self.rates.insert(kind, rate);
        self
    }

    /// With one chance of a kind that strikes.
    #[must_use]
    pub fn at(mut self, kind: FaultKind, chance: u64) -> Self {
        self.places.push((kind, chance));
        self
    }

    /// The kinds in it.
    pub fn kinds(&self) -> impl Iterator<Item = FaultKind> + '_ {
        FaultKind::ALL.into_iter().filter(|kind| self.has(*kind))
    }

    fn has(&self, kind: FaultKind) -> bool {
        self.rates.contains_key(&kind) || self.places.iter().any(|(placed, _)| *placed == kind)
    }

    /// The plan without a kind.
    #[must_use]
    pub fn without(&self, kind: FaultKind) -> Self {
        let mut plan = self.clone();
        plan.rates.remove(&kind);
        plan.places.retain(|(placed, _)| *placed != kind);
        plan
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.seed)?;
        for (kind, rate) in &self.rates {
            write!(f, ",{kind}={rate}")?;
        }
        for (kind, chance) in &self.places {
            write!(f, ",{kind}@{chance}")?;
        }
        Ok(())
    }
}

impl FromStr for FaultPlan {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::new(ErrorKind::InvalidArgument, format!("{text:?} is no plan of faults"));
        let mut parts = text.split(',');
        let seed = parts.next().and_then(|seed| seed.parse().ok()).ok_or_else(bad)?;
        let mut plan = Self { seed, ..Self::default() };
        for part in parts {
            let (name, number) = part.split_once(['=', '@']).ok_or_else(bad)?;
            let kind = FaultKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(bad)?;
            let number = number.parse().map_err(|_| bad())?;
            if part.contains('=') {
                plan.rates.insert(kind, number);
            } else {
                plan.places.push((kind, number));
            }
        }
        Ok(plan)
    }
}

/// A plan at work on a disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Planned {
    pub(super) plan: FaultPlan,
    chances: [u64; FaultKind::ALL.len()],
    /// How often each kind struck.
    pub(super) struck: BTreeMap<FaultKind, u64>,
}

impl Planned {
    /// `plan`, where so many faults have struck already.
    pub(super) fn new(plan: FaultPlan, struck: BTreeMap<FaultKind, u64>) -> Self {
        Self { plan, struck, ..Self::default() }
    }

    /// Nothing is planned.
    pub(super) fn is_idle(&self) -> bool {
        self.plan.rates.is_empty() && self.plan.places.is_empty()
    }

    pub(super) fn has(&self, kind: FaultKind) -> bool {
        self.plan.has(kind)
    }

    /// A chance for `kind`: if it strikes, a number to choose the rest by. It counts once [`hit`](Self::hit) says so.
    pub(super) fn chance(&mut self, kind: FaultKind) -> Option<u64> {
        if !self.plan.has(kind) {
            return None;
        }
        let number = kind.number();
        let count = self.chances.get_mut(number)?;
        let chance = *count;
        *count += 1;
        let draw = mix(mix(self.plan.seed ^ ((number as u64) << 56)).wrapping_add(chance));
        let rate = self.plan.rates.get(&kind).copied().unwrap_or(0);
        let placed = self.plan.places.contains(&(kind, chance));
        (placed || draw % CHANCES < rate).then(|| mix(draw))
    }

    pub(super) fn hit(&mut self, kind: FaultKind) {
        *self.struck.entry(kind).or_default() += 1;
    }

    /// How the call at hand fails, if it does.
    pub(super) fn strike(&mut self, op: DiskOp) -> Option<Strike> {
        for kind in FaultKind::ALL {
            let Some(strike) = kind.strike(op) else { continue };
            if self.chance(kind).is_some() {
                self.hit(kind);
                return Some(strike);
            }
        }
        None
    }
}
