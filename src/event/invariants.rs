//! `check`: the fold that says everything that is wrong with a log (I1-I10, M).
//!
//! It goes on after each violation, with the state that makes the fewest that only follow from the first. It
//! changes nothing and refuses nothing: what a violation means is for the caller to say.
//!
//! Memory is in proportion to the surface, the calls of the open step and the gaps between seqs, never to the log.

mod facts;
mod seen;
#[cfg(test)]
mod tests;
mod turns;
mod violation;

use facts::{Facts, Listed, Marked};
use seen::Seen;
use turns::Turns;
pub use violation::{Rule, Violation};

use super::append::{MarkerError, check_marker, check_sources};
use super::body::Body;
use super::chunk_text::recognise;
use super::derive::shape;
use super::surface::{Mark, Surface};
use super::{Class, Event, SurfaceOp};

/// The rules of one log, checked event by event.
///
/// ```
/// use sessionlog::event::{Checker, Rule};
///
/// let mut checker = Checker::new();
/// let found = checker.observe_line(r#"{"type":"turn/start","seq":0,"time":0,"data":{"turn":2}}"#);
/// assert_eq!(found.len(), 1);
/// assert_eq!(found[0].rule, Rule::I5);
/// assert_eq!(found[0].to_string(), "I5 at event 0: the turn's number is 2, expected 1");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Checker {
    place: u64,
    seen: Seen,
    surface: Surface,
    turns: Turns,
    found: Vec<Violation>,
}

/// A state of a [`Checker`] to go back to.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    place: u64,
    seen: Seen,
    surface: Mark,
    turns: Turns,
}

impl Checker {
    /// The checker of an empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event in; what it violates, in the order of the rules.
    pub fn observe(&mut self, event: &Event) -> &[Violation] {
        self.take(&Facts::of_event(event));
        &self.found
    }

    /// Takes the next line of a JSONL file in, whatever is in it. A line that is no JSON object keeps its place and
    /// breaks I1; a field of the envelope that is missing or of another type breaks V.
    pub fn observe_line(&mut self, line: &str) -> &[Violation] {
        match Facts::of_line(line) {
            Ok(facts) => self.take(&facts),
            Err(message) => {
                let seq = self.seen.next();
                self.found.clear();
                self.seen.add(seq);
                self.report(Rule::I1, seq, format!("the line is no event: {message}"));
                self.place = self.place.saturating_add(1);
            }
        }
        &self.found
    }

    /// Where the checker is now, for [`roll_back`](Self::roll_back). It costs the open step's calls.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        let (seen, turns) = (self.seen.clone(), self.turns.clone());
        Checkpoint { place: self.place, seen, surface: self.surface.mark(), turns }
    }

    /// Forgets every event that was taken in after `checkpoint`.
    pub(crate) fn roll_back(&mut self, checkpoint: Checkpoint) {
        self.surface.roll_back(checkpoint.surface);
        self.place = checkpoint.place;
        self.seen = checkpoint.seen;
        self.turns = checkpoint.turns;
        self.found.clear();
    }

    /// The surface that the events so far make.
    pub(crate) fn surface(&self) -> &Surface {
        &self.surface
    }

    pub(crate) fn into_surface(self) -> Surface {
        self.surface
    }

    fn take(&mut self, facts: &Facts<'_>) {
        self.found.clear();
        let seq = self.check_seq(facts);
        for fault in &facts.faults {
            self.report(Rule::V, seq, String::from(*fault));
        }
        self.check_metadata(facts, seq);
        self.check_sources(facts, seq);
        self.check_op(facts, seq);
        // Nearly every event of a log: it makes no message, and its turn and step are told at once.
        if facts.class == Class::Chunk
            && let Some(chunk) = facts.data.and_then(|data| recognise(data.raw()))
        {
            let place = self.place;
            let found = &mut self.found;
            self.turns.chunk(chunk.turn, chunk.step, |rule, message| {
                found.push(Violation { rule, seq, place, message });
            });
        } else if let Some(data) = facts.data {
            let mut found = std::mem::take(&mut self.found);
            let (place, class) = (self.place, facts.class);
            let body = Body::new(data);
            self.turns.take(class, &body, |rule, message| {
                found.push(Violation { rule, seq, place, message });
            });
            self.found = found;
            if let Err(message) = shape(class, &body) {
                self.report(Rule::M, seq, format!("the event makes no message: {message}"));
            }
        }
        self.place = self.place.saturating_add(1);
    }

    /// I1; the seq that the event goes by.
    fn check_seq(&mut self, facts: &Facts<'_>) -> u64 {
        let expected = self.seen.next();
        let seq = facts.seq.unwrap_or(expected);
        if facts.seq.is_none() {
            self.report(Rule::I1, seq, format!("seq is missing or no integer from 0, expected {expected}"));
        } else if seq != expected {
            self.report(Rule::I1, seq, format!("seq is {seq}, expected {expected}"));
        }
        seq
    }

    /// I2.
    fn check_metadata(&mut self, facts: &Facts<'_>, seq: u64) {
        let has_op = !matches!(facts.op, Marked::Absent);
        let has_sources = !matches!(facts.sources, Listed::Absent);
        if let Err(error) = check_marker(facts.class, has_op, has_sources) {
            self.report(Rule::I2, seq, error.to_string());
            if error == MarkerError::Op && has_sources {
                self.report(Rule::I2, seq, MarkerError::Sources.to_string());
            }
        }
    }

    /// I3. Sources where none belong are I2's matter.
    fn check_sources(&mut self, facts: &Facts<'_>, seq: u64) {
        match &facts.sources {
            Listed::Valid(list) if facts.class.is_surface() => {
                if let Err(error) = check_sources(facts.class, list, seq) {
                    self.report(Rule::I3, seq, error.to_string());
                }
                if let Some(unseen) = list.iter().find(|&&source| source < seq && !self.seen.contains(source))
                {
                    self.report(
                        Rule::I3,
                        seq,
                        format!("sourceEventSeqs names {unseen}, which is not in the log"),
                    );
                }
            }
            Listed::Malformed { reason, .. } if facts.class.is_surface() => {
                self.report(Rule::I3, seq, reason.clone());
            }
            _ => {}
        }
        self.seen.add(seq);
    }

    /// I4; and the fold of what can be folded, so that a gap in the sources has no followers.
    fn check_op(&mut self, facts: &Facts<'_>, seq: u64) {
        if !facts.class.is_surface() {
            return;
        }
        match &facts.op {
            Marked::Absent => {}
            Marked::Malformed(reason) => self.report(Rule::I4, seq, String::from(*reason)),
            Marked::Valid(op) => {
                if let SurfaceOp::Replace { start, end } = *op
                    && let Err(error) = self.surface.check_replace(start, end, facts.sources.seqs(), seq)
                {
                    self.report(Rule::I4, seq, error.to_string());
                }
                // What cannot be folded was reported: as I4, or as I1 if its seq is not behind the others.
                let _ = self.surface.apply(seq, op);
            }
        }
    }

    fn report(&mut self, rule: Rule, seq: u64, message: String) {
        self.found.push(Violation { rule, seq, place: self.place, message });
    }
}

/// Everything that is wrong with a log.
pub fn check<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<Violation> {
    let mut checker = Checker::new();
    events.into_iter().flat_map(|event| checker.observe(event).to_vec()).collect()
}
