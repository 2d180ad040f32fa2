//! `record`: the engine for programs in any language, over standard input and output.
//!
//! What always holds: answers come in the order of the requests; a flush is answered only when everything it
//! covers is durable; create, fork and delete are answered once they survive the death of this process. All lines
//! that have arrived are taken before a flush is waited for, so that flushes which arrive together share a sync.
//! What is never done: answering that there is no room. Reading stops until there is.

mod answer;
mod input;
mod perform;
mod request;

use std::path::Path;

use sessionlog::{Error, ErrorKind, FlushTicket, Session, SessionStore};

use crate::failure::{Ended, Failure, Outcome};
use crate::output::Output;
use crate::stores::Stores;
use answer::{Members, done, refused};
use input::{Input, MAX_LINE_BYTES, Next};
use perform::Done;
use request::Request;

/// Answers that are held back at most while more lines are there to be read.
const HELD_ANSWERS: usize = 4096;
/// Bytes of such answers.
const HELD_BYTES: usize = 1 << 20;

/// Runs until the input ends.
pub(crate) fn run(stores: &Stores, out: Output) -> Ended {
    let opened = stores.open_or_create();
    let mut recorder = match opened {
        Ok(store) => Recorder { store, out, held: Vec::new(), held_bytes: 0 },
        Err(error) => return unopened(stores.path(), &error, out),
    };
    let talked = recorder.talk();
    let Recorder { store, mut out, .. } = recorder;
    // A client that is gone is no reason to lose what it sent.
    let closed = store.close();
    talked?;
    closed?;
    out.flush()?;
    Ok(Outcome::Fine)
}

fn unopened(path: &Path, error: &Error, mut out: Output) -> Ended {
    let error = error.clone().wrap(error.kind(), format!("open the store {}", path.display()));
    out.line(refused(None, &error))?;
    out.flush()?;
    Ok(Outcome::Findings)
}

/// An answer that waits for its turn.
enum Held {
    Line(String),
    /// A flush of one session, or of all.
    Flush(Option<String>, Option<Session>),
}

struct Recorder {
    store: SessionStore,
    out: Output,
    held: Vec<Held>,
    held_bytes: usize,
}

impl Recorder {
    fn talk(&mut self) -> Result<(), Failure> {
        let mut input = Input::standard().map_err(|error| unreadable(&error))?;
        loop {
            match input.next(self.held.is_empty()).map_err(|error| unreadable(&error))? {
                Next::Line(line) => self.take(line)?,
                Next::TooLong(length) => {
                    let why = format!("the line has {length} bytes; at most {MAX_LINE_BYTES} are taken");
                    self.hold(refused(None, &Error::new(ErrorKind::BadLine, why)));
                }
                Next::Nothing => self.settle()?,
                Next::End => return self.settle(),
            }
            if self.held.len() >= HELD_ANSWERS || self.held_bytes >= HELD_BYTES {
                self.settle()?;
            }
        }
    }

    fn take(&mut self, line: Vec<u8>) -> Result<(), Failure> {
        let Some(parsed) = request::parse(&line) else { return Ok(()) };
        // A large payload is not held twice while it is appended.
        drop(line);
        let tag = parsed.tag.as_deref();
        let done_or_not = match parsed.request {
            Ok(request) => {
                // A flush that was asked for before its session goes must find it.
                if matches!(request, Request::Delete { .. }) {
                    self.settle()?;
                }
                self.perform(request)?
            }
            Err(error) => Err(error),
        };
        match done_or_not {
            Ok(Done::Now(members)) => self.hold(done(tag, &members)),
            Ok(Done::WhenFlushed(session)) => self.held.push(Held::Flush(parsed.tag, session)),
            Err(error) => self.hold(refused(tag, &error)),
        }
        Ok(())
    }

    fn hold(&mut self, line: String) {
        self.held_bytes += line.len();
        self.held.push(Held::Line(line));
    }

    /// Waits for the flushes and sends all answers.
    fn settle(&mut self) -> Result<(), Failure> {
        let held = std::mem::take(&mut self.held);
        self.held_bytes = 0;
        // All flushes are under way before the first is waited for.
        let mut started = Vec::with_capacity(held.len());
        for answer in held {
            started.push(match answer {
                Held::Line(line) => (None, Held::Line(line)),
                Held::Flush(tag, session) => {
                    let ticket = match &session {
                        Some(session) => session.flush_ticket(),
                        None => self.store.flush_ticket(),
                    };
                    (Some(ticket), Held::Flush(tag, session))
                }
            });
        }
        for (ticket, answer) in started {
            match answer {
                Held::Line(line) => self.out.line(line)?,
                Held::Flush(tag, session) => {
                    let flushed = ticket.map_or(Ok(()), |started| started.and_then(FlushTicket::wait));
                    let line = match flushed {
                        Ok(()) => done(tag.as_deref(), &flushed_members(session.as_ref())),
                        Err(error) => refused(tag.as_deref(), &error),
                    };
                    self.out.line(line)?;
                }
            }
        }
        self.out.flush()?;
        Ok(())
    }
}

fn unreadable(error: &std::io::Error) -> Failure {
    Failure::Words(format!("standard input: {error}"))
}

fn flushed_members(session: Option<&Session>) -> Members {
    let Some(session) = session else { return Members::default() };
    let members = Members::default().text("session", session.id());
    match session.durable_seq() {
        Some(seq) => members.number("seq", seq),
        None => members,
    }
}
