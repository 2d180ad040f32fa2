//! What damage took from a session, named on standard error.
//!
//! What always holds: a hole is told once, with its first and last seq, however many errors reading it gave.

use sessionlog::{Error, SessionReader};

use crate::failure::Failure;
use crate::output::{printable, say};

/// Follows the events of a session as they are read, and names what is missing between them.
pub(crate) struct Holes<'a> {
    id: &'a str,
    /// The seq that comes next.
    next: u64,
    open: Option<Error>,
    any: bool,
}

impl<'a> Holes<'a> {
    /// Reading starts at `from`.
    pub(crate) fn new(id: &'a str, from: u64) -> Self {
        Self { id, next: from, open: None, any: false }
    }

    /// An event was read.
    pub(crate) fn readable(&mut self, seq: u64) {
        self.close(seq);
        self.next = seq.saturating_add(1);
    }

    /// An event could not be read; an error that is not about damage is given back.
    pub(crate) fn lost(&mut self, error: Error) -> Result<(), Failure> {
        if !error.is_corruption() {
            return Err(error.into());
        }
        self.open.get_or_insert(error);
        Ok(())
    }

    /// Reading has come to the end of a session of `end` events. Whether anything was missing.
    pub(crate) fn end(mut self, end: u64) -> bool {
        self.close(end);
        self.any
    }

    fn close(&mut self, behind: u64) {
        let Some(error) = self.open.take() else { return };
        self.any = true;
        let (id, from) = (self.id, self.next);
        let what = match behind.saturating_sub(1) {
            to if to > from => format!("{id}: events {from} to {to} are lost to damage"),
            _ => format!("{id}: event {from} is lost to damage"),
        };
        say(printable(&format!("{what}: {error}")));
    }
}

/// Names all holes of a session that was refused because of them.
pub(crate) fn name(session: &SessionReader) -> Result<bool, Failure> {
    let mut holes = Holes::new(session.id(), 0);
    for event in session.events() {
        match event {
            Ok(event) => holes.readable(event.seq()),
            Err(error) => holes.lost(error)?,
        }
    }
    Ok(holes.end(session.seq()))
}

/// Whether the newest events may be among what damage took, with no later one to prove that they are not (P2); told
/// then. What is there is right, and a prefix.
pub(crate) fn ends_in_doubt(session: &SessionReader) -> Result<bool, Failure> {
    let doubt = session.stat()?.damaged;
    if doubt {
        let (id, next) = (session.id(), session.seq());
        let text = format!(
            "{id}: events from {next} on may be lost to damage of unknown sessions; `verify` lists it"
        );
        say(printable(&text));
    }
    Ok(doubt)
}

/// `error`, after the holes that it is about were named.
pub(crate) fn explained(session: &SessionReader, error: Error) -> Failure {
    if error.is_corruption()
        && let Err(failure) = name(session)
    {
        return failure;
    }
    error.into()
}
