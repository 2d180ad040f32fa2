//! What a power cut keeps of the things that no sync has covered.
//!
//! Every choice is a function of the seed and of the thing itself, so that one seed always leaves the same disk.

use crate::testing::random::{Random, mix};

/// One power cut.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    seed: u64,
    keep: Keep,
}

#[derive(Debug, Clone, Copy)]
enum Keep {
    /// Nothing but what was synced.
    Nothing,
    /// All, as if it had been written back just before.
    Everything,
    /// Each sector, length and name by itself, this many times out of 8.
    Each(u64),
    /// Each page of the cache by itself.
    Pages,
    /// What happened up to some moment: a disk that keeps the order.
    Until(u64),
    /// What happened after some moment: the older writes are the lost ones.
    Since(u64),
}

impl Cut {
    /// The cut of `seed`, on a disk whose last change happened at `now` and the oldest unsynced one at `from`.
    pub(super) fn new(seed: u64, from: u64, now: u64) -> Self {
        let mut random = Random::new(seed);
        let moment = |random: &mut Random| from + random.below(now.saturating_sub(from) + 1);
        let keep = match random.below(10) {
            0 => Keep::Nothing,
            1 => Keep::Everything,
            2 => Keep::Each(1),
            3 => Keep::Each(7),
            4 | 5 => Keep::Each(4),
            6 => Keep::Pages,
            7 => Keep::Since(moment(&mut random)),
            _ => Keep::Until(moment(&mut random)),
        };
        Self { seed: random.next_u64(), keep }
    }

    /// Whether what was done at `time` to part `part` of the thing `number` is on the disk.
    pub(super) fn keeps(&self, number: u64, part: u64, time: u64) -> bool {
        match self.keep {
            Keep::Nothing => false,
            Keep::Everything => true,
            Keep::Each(eighths) => self.toss(number, part, time) % 8 < eighths,
            Keep::Pages => self.toss(number, part / 8, 0).is_multiple_of(2),
            Keep::Until(moment) => time <= moment,
            Keep::Since(moment) => time > moment,
        }
    }

    fn toss(&self, number: u64, part: u64, time: u64) -> u64 {
        mix(mix(mix(self.seed ^ number).wrapping_add(part)).wrapping_add(time))
    }
}
