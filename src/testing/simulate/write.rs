//! What actors do that changes sessions. Each attempt is in the model before the store hears of it, and out of it again
//! when the store refused.

use std::sync::Arc;

use crate::testing::model::Deletion;
use crate::testing::{FaultKind, Random};
use crate::{
    CreateOptions, Durability, Error, ErrorKind, ForkOptions, NewEvent, Result, Session, SurfaceOp, Time,
};

use super::history::{History, Made};
use super::script::{Op, Verb};
use super::world::World;

/// How often an append waits for room before it gives up.
const PATIENCE: usize = 20;

/// Refusals that need no reason beyond what other actors do meanwhile.
const GONE: [ErrorKind; 1] = [ErrorKind::Closed];

impl Made {
    pub(super) fn new_event(&self) -> Result<NewEvent> {
        let millis = i64::try_from(self.time).unwrap_or(0);
        let mut event = NewEvent::raw(self.kind, &self.data)?.with_time(Time::from_millis(millis));
        if let Some(sources) = &self.sources {
            event = event.with_sources(sources.clone());
        }
        Ok(match self.replaces {
            Some((start, end)) => event.with_surface_op(SurfaceOp::Replace { start, end }),
            None if self.is_message => event.with_surface_op(SurfaceOp::Append),
            None => event,
        })
    }
}

impl World {
    pub(super) fn create(&self) {
        let Some(store) = self.store() else { return };
        let id = self.new_id("made");
        self.parts().model.attempt_session(&id, Vec::new());
        let options = CreateOptions::new().id(&id).cwd("/somewhere").created_at(Time::from_millis(1));
        let made = store.create(options);
        self.entered(&id, made);
    }

    fn new_id(&self, kind: &str) -> String {
        let mut parts = self.parts();
        parts.made += 1;
        format!("{kind}-{}", parts.made)
    }

    fn entered(&self, id: &str, made: Result<Session>) {
        let mut parts = self.parts();
        match made {
            Ok(session) => {
                parts.model.accept(id);
                parts.usable.push(id.to_owned());
                parts.live.insert(id.to_owned(), session);
            }
            Err(error) => {
                parts.model.sessions.remove(id);
                drop(parts);
                let meanwhile = [ErrorKind::NotFound, ErrorKind::Conflict];
                let expected = if id.starts_with("fork") { &meanwhile[..] } else { &[] };
                self.judge_error(&format!("creation of {id}"), &error, expected);
            }
        }
    }

    pub(super) fn fork(&self, op: Op) {
        let (Some(store), Some(parent)) = (self.store(), self.pick(op.which)) else { return };
        let mut lines = self.lines(&parent);
        if lines.is_empty() {
            return;
        }
        let at = Random::new(op.salt).index(lines.len());
        lines.truncate(at + 1);
        let closers = History::of(&lines).closers();
        lines.extend(closers.into_iter().map(Arc::from));
        let id = self.new_id("fork");
        let length = lines.len() as u64;
        self.parts().model.attempt_session(&id, lines);
        let options = ForkOptions::new().at(at as u64).id(&id).close_open_turn(true);
        let made = store.fork(&parent, options.created_at(Time::from_millis(2)));
        if let Ok(session) = &made
            && session.seq() != length
        {
            self.fail(format!(
                "{id}, a fork of {parent} at {at}, has {} events, not {length}",
                session.seq()
            ));
        }
        let kept = self.is_kept(&parent);
        if let Err(error) = &made
            && error.is_not_found()
            && kept
        {
            self.judge_error(&format!("fork of {parent}"), error, &[]);
        }
        self.entered(&id, made);
    }

    pub(super) fn delete(&self, op: Op) {
        let (Some(store), Some(id)) = (self.store(), self.pick(op.which)) else { return };
        let session = {
            let mut parts = self.parts();
            if parts.usable.len() < 3 {
                return;
            }
            parts.usable.retain(|usable| *usable != id);
            parts.model.attempt_delete(&id);
            parts.live.remove(&id)
        };
        let done = store.delete(&id);
        let mut parts = self.parts();
        let Some(known) = parts.model.sessions.get_mut(&id) else { return };
        match done {
            Ok(()) => known.removed = true,
            Err(error) => {
                known.deletion = Deletion::No;
                parts.usable.push(id.clone());
                parts.live.extend(session.map(|session| (id.clone(), session)));
                drop(parts);
                self.judge_error(&format!("deletion of {id}"), &error, &[ErrorKind::Conflict]);
            }
        }
    }

    pub(super) fn detach(&self, op: Op) {
        let Some(id) = self.pick(op.which) else { return };
        let session = self.parts().live.remove(&id);
        if let Some(session) = session {
            session.detach();
        }
    }

    /// Appends of all sorts.
    pub(super) fn append(&self, op: Op) {
        let Some(id) = self.pick(op.which) else { return };
        let Some(session) = self.session(&id) else { return };
        let size = usize::try_from(op.size).unwrap_or(0);
        let expected = match op.verb {
            Verb::Race => {
                let seq = session.seq();
                self.scheduler_yield();
                Some(seq)
            }
            _ => None,
        };
        for _ in 0..PATIENCE {
            let mut random = Random::new(op.salt);
            let make = |history: &History| match op.verb {
                Verb::Batch => batch(history, size, &mut random),
                Verb::Replace => history.replace(size, &mut random).into_iter().collect(),
                _ => vec![history.next(size, &mut random)],
            };
            let off = if op.verb == Verb::Expect { Some(op.salt % 3) } else { None };
            match self.append_once(&id, &session, expected, off, make) {
                Some(error) if error.is_backpressure() => {
                    let Some(store) = self.store() else { return };
                    if let Err(error) = store.wait_for_room(size + 4096) {
                        return self.judge_error("waiting for room", &error, &GONE);
                    }
                }
                Some(error) => {
                    let gone = !session.is_live();
                    let expected: &[ErrorKind] = if gone { &GONE } else { &[] };
                    return self.judge_error(&format!("append to {id}"), &error, expected);
                }
                None => return,
            }
        }
    }

    fn scheduler_yield(&self) {
        crate::rt::Runtime::yield_now(&self.scheduler);
    }

    /// One try, in which nobody else goes on: an append waits for nothing (A1). The error, unless it was to come.
    fn append_once(
        &self,
        id: &str,
        session: &Session,
        expected: Option<u64>,
        off: Option<u64>,
        make: impl FnOnce(&History) -> Vec<Made>,
    ) -> Option<Error> {
        let lines = self.lines(id);
        let made = make(&History::of(&lines));
        if made.is_empty() {
            return None;
        }
        let events: Result<Vec<NewEvent>> = made.iter().map(Made::new_event).collect();
        let events = match events {
            Ok(events) => events,
            Err(error) => {
                self.fail(format!("an event that is none: {error}"));
                return None;
            }
        };
        let first = lines.len() as u64;
        let expected = expected.or_else(|| off.map(|off| (first + off).saturating_sub(1)));
        let poisoned = self.store().is_some_and(|store| store.fault().is_some());
        self.parts().model.attempt(id, made.into_iter().map(|made| made.line));
        let done = self.scheduler.steady(|| match (expected, events) {
            (Some(seq), mut one) if one.len() == 1 => {
                one.pop().map(|event| session.append_expecting(seq, event).map(|done| done.seq))
            }
            (Some(seq), all) => Some(session.append_batch_expecting(seq, all).map(|range| range.start)),
            (None, mut one) if one.len() == 1 => {
                one.pop().map(|event| session.append(event).map(|done| done.seq))
            }
            (None, all) => Some(session.append_batch(all).map(|range| range.start)),
        })?;
        let meets = expected.is_none_or(|seq| seq == first);
        match done {
            Ok(seq) => {
                self.parts().model.accept(id);
                if poisoned {
                    self.fail(format!("an append to {id} was taken after the writer failed (G5)"));
                }
                if seq != first || !meets {
                    self.fail(format!("{id} gave seq {seq} to event {first}, expected {expected:?} (A7)"));
                }
                None
            }
            Err(error) => {
                self.parts().model.retract(id);
                if error.is_conflict() && !meets {
                    return None;
                }
                if error.is_conflict() {
                    self.fail(format!("{id}: a conflict at {first}, which was expected: {error}"));
                }
                Some(error)
            }
        }
    }

    /// Flushes of all sorts.
    pub(super) fn flush(&self, op: Op) {
        let Some(store) = self.store() else { return };
        let Some(id) = self.pick(op.which) else { return };
        let all = op.verb == Verb::FlushAll || op.verb == Verb::Ticket && op.salt.is_multiple_of(2);
        let session = if all { None } else { self.session(&id) };
        if session.is_none() && !all {
            return;
        }
        let mark = self.parts().model.mark(session.as_ref().map(|_| id.as_str()));
        let done = match (&session, op.verb) {
            (Some(session), Verb::Ticket) => session.flush_ticket().and_then(|ticket| ticket.wait()),
            (Some(session), Verb::Write) => session.flush_to(Durability::Written),
            (Some(session), _) => session.flush(),
            (None, Verb::Ticket) => store.flush_ticket().and_then(|ticket| ticket.wait()),
            (None, _) => store.flush(),
        };
        match done {
            Ok(()) if op.verb == Verb::Write => {}
            Ok(()) => self.parts().model.acknowledge_mark(&mark),
            Err(error) => {
                let gone = session.is_some_and(|session| !session.is_live());
                let expected: &[ErrorKind] = if gone { &GONE } else { &[] };
                self.judge_error("a flush", &error, expected);
            }
        }
    }

    pub(super) fn close(&self) {
        let (store, mark) = {
            let mut parts = self.parts();
            let Some(store) = parts.store.take() else { return };
            parts.closed = true;
            parts.live.clear();
            (store, parts.model.mark(None))
        };
        let poisoned = store.fault().is_some();
        match store.close() {
            Ok(()) => {
                let mut parts = self.parts();
                parts.model.acknowledge_mark(&mark);
                parts.closed_well = parts.next_disk.is_none();
                drop(parts);
                if poisoned {
                    self.fail("a store whose writer had failed closed without a word (G5)".to_owned());
                }
            }
            Err(error) => {
                let struck = self.parts().disk.struck();
                let loud = struck.keys().any(|kind| !kind.is_harmless() && *kind != FaultKind::Eviction);
                if !loud && self.parts().next_disk.is_none() {
                    self.fail(format!("the close failed: {error:?}"));
                }
            }
        }
    }

    pub(super) fn kill(&self) {
        let mut parts = self.parts();
        if parts.next_disk.is_none() {
            parts.next_disk = Some(parts.disk.kill());
        }
    }
}

fn batch(history: &History, count: usize, random: &mut Random) -> Vec<Made> {
    let mut history = history.clone();
    let mut made = Vec::new();
    for _ in 0..count.clamp(1, 8) {
        let next = history.next(random.index(60), random);
        history.take(&next.line);
        made.push(next);
    }
    made
}
