//! Makes a failing script smaller: lives, ops, actors, faults and options that the failure does not need are dropped.
//!
//! Delta debugging: halves first, then smaller pieces, as long as what is left still fails. Any failure counts, as one
//! fault of an engine often shows in several ways.

use super::script::{Op, Script};
use super::{Failure, run_script};
use crate::testing::FaultPlan;

/// More runs than this are not made.
const MOST_RUNS: u64 = 600;

/// The smallest script found that fails with this seed, and how; `None` if `script` itself does not.
#[must_use]
pub fn minimise(seed: u64, script: &Script) -> Option<(Script, Failure)> {
    let mut search = Search { seed, runs: 0, best: script.clone(), failure: None };
    // More places of crashes make up for calls that a smaller script does not make.
    let denser = Script { crashes: script.crashes.max(3000), ..script.clone() };
    if !search.fails(&denser) && !search.fails(script) {
        return None;
    }
    loop {
        let before = search.best.clone();
        search.drop_lives();
        search.drop_faults();
        search.drop_ops();
        search.join_actors();
        search.plain_options();
        if search.best == before || search.runs >= MOST_RUNS {
            break;
        }
    }
    search.failure.map(|failure| (search.best, failure))
}

struct Search {
    seed: u64,
    runs: u64,
    best: Script,
    failure: Option<Failure>,
}

impl Search {
    /// Whether `script` fails; then it is the best so far.
    fn fails(&mut self, script: &Script) -> bool {
        if self.runs >= MOST_RUNS {
            return false;
        }
        self.runs += 1;
        let outcome = run_script(self.seed, script, false);
        let Some(failure) = outcome.failure else { return false };
        self.best = script.clone();
        self.failure = Some(failure);
        true
    }

    fn drop_lives(&mut self) {
        let mut place = self.best.lives.len();
        while place > 0 && self.best.lives.len() > 1 {
            place -= 1;
            let mut smaller = self.best.clone();
            smaller.lives.remove(place);
            self.fails(&smaller);
        }
    }

    fn drop_faults(&mut self) {
        let kinds: Vec<_> = self.best.faults.kinds().collect();
        for kind in kinds {
            let mut smaller = self.best.clone();
            smaller.faults = smaller.faults.without(kind);
            if smaller.faults.kinds().next().is_none() {
                smaller.faults = FaultPlan::none();
            }
            self.fails(&smaller);
        }
    }

    /// Pieces of ops, over all lives, half as long each time.
    fn drop_ops(&mut self) {
        let mut piece = self.best.ops().div_ceil(2);
        while piece > 0 {
            let mut from = 0;
            while from < self.best.ops() {
                let smaller = without(&self.best, from, piece);
                if !self.fails(&smaller) {
                    from += piece;
                }
            }
            piece /= 2;
        }
    }

    /// Fewer threads: one actor does what another one did.
    fn join_actors(&mut self) {
        for actor in (1..8).rev() {
            let mut smaller = self.best.clone();
            let mut ops = smaller.lives.iter_mut().flat_map(|life| &mut life.ops);
            ops.by_ref().filter(|op| op.actor == actor).for_each(|op| op.actor = 0);
            if smaller != self.best {
                self.fails(&smaller);
            }
        }
    }

    fn plain_options(&mut self) {
        let changes: [fn(&mut Script); 7] = [
            |script| script.space = 0,
            |script| script.padded = false,
            |script| script.maps = false,
            |script| script.files = 16,
            |script| script.depth = 2048,
            |script| script.unflushed = 8 << 20,
            |script| script.crashes = 0,
        ];
        for change in changes {
            let mut smaller = self.best.clone();
            change(&mut smaller);
            if smaller != self.best {
                self.fails(&smaller);
            }
        }
    }
}

/// The script without `count` ops from the `from`th on.
fn without(script: &Script, from: usize, count: usize) -> Script {
    let mut smaller = script.clone();
    let mut number = 0;
    let mut keeps = |_: &Op| {
        let dropped = (from..from + count).contains(&number);
        number += 1;
        !dropped
    };
    smaller.lives.iter_mut().for_each(|life| life.ops.retain(&mut keeps));
    smaller
}
