//! One finding of `check`: which rule, which event, what is wrong.

use std::fmt;

/// The rule that is broken.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Seqs are contiguous from 0.
    I1,
    /// Surface metadata is on the five surface types and on no other.
    I2,
    /// Sources are earlier events, each once (A4).
    I3,
    /// A replace is legal by position (A5) and `surfaceOp` has its shape.
    I4,
    /// A turn starts when none is open; turns are numbered 1, 2, 3…
    I5,
    /// A turn ends under its own number with no step open.
    I6,
    /// A step starts inside the open turn when none is open; steps are numbered 1, 2…
    I7,
    /// What belongs to a step names exactly the open turn and step.
    I8,
    /// A tool/result answers a tool/call of its step that is not yet answered.
    I9,
    /// Everything else lies inside an open turn.
    I10,
    /// A surface event's data makes a message.
    M,
    /// The envelope has its fields.
    V,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A rule that an event breaks.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The event's seq as recorded; the expected one where it has none.
    pub seq: u64,
    /// The event's place in the log, from 0. It differs from `seq` only behind a break of I1.
    pub place: u64,
    /// What was found and what was expected.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at event {}: {}", self.rule, self.seq, self.message)
    }
}
