//! The rules that refuse no append by default (I5 to I10), checked on request.
//!
//! Always: events are tried out before they are committed and can be taken back. Never: rules that append checks
//! itself (I1 to I4) are reported here.

use crate::error::{Error, ErrorKind, Result};
use crate::event::{Checker, Checkpoint, Event, Rule, Violation};

use super::options::Invariants;

pub(super) struct Rules {
    checker: Checker,
    refuse: bool,
}

/// Events that were tried out.
pub(super) struct Trial {
    checkpoint: Checkpoint,
    pub(super) violations: Vec<Violation>,
}

impl Rules {
    /// The rules of an empty session; none when nobody wants them checked.
    pub(super) fn new(policy: Invariants) -> Option<Self> {
        match policy {
            Invariants::Off => None,
            Invariants::Report => Some(Self { checker: Checker::new(), refuse: false }),
            Invariants::Refuse => Some(Self { checker: Checker::new(), refuse: true }),
        }
    }

    /// Takes in what was stored before, without complaint. Chunks change no state and may be left out.
    pub(super) fn replay(&mut self, event: &Event) {
        self.checker.observe(event);
    }

    /// Takes in events that are about to be committed.
    pub(super) fn try_out(&mut self, events: &[Event]) -> Result<Trial> {
        let checkpoint = self.checker.checkpoint();
        let mut violations = Vec::new();
        for event in events {
            violations.extend(self.checker.observe(event).iter().filter(|one| is_ours(one.rule)).cloned());
        }
        match violations.first() {
            Some(first) if self.refuse => {
                let error = Error::new(
                    ErrorKind::Invariant,
                    format!("{first}; the store refuses what breaks rules I5 to I10"),
                );
                self.checker.roll_back(checkpoint);
                Err(error)
            }
            _ => Ok(Trial { checkpoint, violations }),
        }
    }

    /// Takes back what was tried out.
    pub(super) fn take_back(&mut self, trial: Trial) {
        self.checker.roll_back(trial.checkpoint);
    }
}

/// Rules that an event may break and still be stored.
pub(super) fn is_ours(rule: Rule) -> bool {
    !matches!(rule, Rule::I1 | Rule::I2 | Rule::I3 | Rule::I4)
}
