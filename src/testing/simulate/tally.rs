//! What simulations did, in numbers.

use std::collections::BTreeMap;
use std::fmt;

use crate::testing::FaultKind;

use super::script::Verb;

/// Counts of one run, or of many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Runs.
    pub runs: u64,
    /// Crashes that were judged, those within recoveries included.
    pub crashes: u64,
    /// Of these: power cuts during a recovery, and during the recovery from such a one.
    pub again: u64,
    /// Of these: kills.
    pub kills: u64,
    /// Of these: with damage on the disk.
    pub damaged: u64,
    /// Losses that no store could have told of: nothing durable was written after them.
    pub excused: u64,
    /// Ops done.
    pub ops: BTreeMap<Verb, u64>,
    /// Ops that were refused for a reason.
    pub refused: u64,
    /// Events that resumes appended.
    pub closers: u64,
    /// Faults that struck.
    pub faults: BTreeMap<FaultKind, u64>,
    /// Runs whose writer was poisoned.
    pub poisoned: u64,
    /// Looks at the witness, all of which found it.
    pub witnesses: u64,
    /// Switches between threads.
    pub switches: u64,
    /// Disk calls of the engine under test.
    pub calls: u64,
}

impl Tally {
    /// Takes in what another one counted.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.crashes += other.crashes;
        self.again += other.again;
        self.kills += other.kills;
        self.damaged += other.damaged;
        self.excused += other.excused;
        self.refused += other.refused;
        self.closers += other.closers;
        self.poisoned += other.poisoned;
        self.witnesses += other.witnesses;
        self.switches += other.switches;
        self.calls += other.calls;
        other.ops.iter().for_each(|(verb, count)| *self.ops.entry(*verb).or_default() += count);
        other.faults.iter().for_each(|(kind, count)| *self.faults.entry(*kind).or_default() += count);
    }

    /// All ops together.
    #[must_use]
    pub fn ops_done(&self) -> u64 {
        self.ops.values().sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} runs, {} crashes judged ({} in a recovery, {} kills, {} with damage), {} excused losses",
            self.runs, self.crashes, self.again, self.kills, self.damaged, self.excused
        )?;
        writeln!(
            f,
            "{} ops ({} refused), {} closers, {} disk calls, {} switches, {} poisoned writers; witness seen {} times",
            self.ops_done(),
            self.refused,
            self.closers,
            self.calls,
            self.switches,
            self.poisoned,
            self.witnesses
        )?;
        let ops: Vec<String> =
            self.ops.iter().map(|(verb, count)| format!("{} {count}", verb.name())).collect();
        writeln!(f, "ops: {}", ops.join(", "))?;
        let faults: Vec<String> = self.faults.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        write!(f, "faults struck: {}", faults.join(", "))
    }
}
