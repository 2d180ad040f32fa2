//! Does what a request asks for.

use sessionlog::event::{Event, NewEvent, SurfaceNode};
use sessionlog::{CreateOptions, Durability, Error, ErrorKind, ForkOptions, Result, Session, Stat};

use super::Recorder;
use super::answer::Members;
use super::request::Request;
use crate::failure::Failure;
use crate::ls::Figures;

/// The most an answer to `events` may have, in bytes. What is more is asked for in parts.
const MOST_ANSWERED: usize = 256 << 20;

/// What there is to answer.
pub(crate) enum Done {
    /// At once.
    Now(Members),
    /// When the session, or everything, is flushed.
    WhenFlushed(Option<Session>),
}

impl Recorder {
    /// The outer error ends the recorder, the inner one is the answer.
    pub(super) fn perform(&mut self, request: Request) -> Result<Result<Done>, Failure> {
        let done = match request {
            Request::Append { session, event, expect } => return self.append(&session, event, expect),
            Request::Batch { session, events, expect } => return self.batch(&session, events, expect),
            Request::Create { id, cwd, parent, created_at } => {
                let mut options = CreateOptions::new();
                options = with(options, id, CreateOptions::id);
                options = with(options, cwd, CreateOptions::cwd);
                options = with(options, parent, CreateOptions::parent_session);
                self.create(with(options, created_at, CreateOptions::created_at))
            }
            Request::Resume { session } => self.resume(&session),
            Request::Flush { session } => self.flush(session),
            Request::Messages { session } => self.messages(&session),
            Request::Surface { session } => self.surface(&session),
            Request::Events { session, from, limit } => self.events(&session, from, limit),
            Request::Fork { session, at, id, close_open_turn } => {
                let mut options = ForkOptions::new().close_open_turn(close_open_turn);
                options = with(options, at, ForkOptions::at);
                self.fork(&session, with(options, id, ForkOptions::id))
            }
            Request::Delete { session } => self.delete(&session),
            Request::Stat { session } => self.stat(&session),
        };
        Ok(done)
    }

    fn live(&self, id: &str) -> Result<Session> {
        self.store.get(id).ok_or_else(|| {
            let text = format!("session {id:?} was neither created nor resumed here");
            Error::new(ErrorKind::NotFound, text)
        })
    }

    fn create(&self, options: CreateOptions) -> Result<Done> {
        let session = self.store.create(options)?;
        session.flush_to(Durability::Written)?;
        Ok(Done::Now(opened(&session)))
    }

    fn resume(&self, id: &str) -> Result<Done> {
        let resumed = self.store.resume(id)?;
        let closers = resumed.closers.iter().map(Event::to_line);
        Ok(Done::Now(opened(&resumed.session).array("closers", closers)))
    }

    fn append(&mut self, id: &str, event: NewEvent, expect: Option<u64>) -> Result<Result<Done>, Failure> {
        let session = match self.live(id) {
            Ok(session) => session,
            Err(error) => return Ok(Err(error)),
        };
        let appended = self.when_there_is_room(room(&event), || match expect {
            Some(seq) => session.append_expecting(seq, event.clone()),
            None => session.append(event.clone()),
        })?;
        Ok(appended.map(|appended| {
            let members = Members::default().text("session", id).number("seq", appended.seq);
            Done::Now(members.raw("time", &appended.time.spelling()))
        }))
    }

    fn batch(
        &mut self,
        id: &str,
        events: Vec<NewEvent>,
        expect: Option<u64>,
    ) -> Result<Result<Done>, Failure> {
        let session = match self.live(id) {
            Ok(session) => session,
            Err(error) => return Ok(Err(error)),
        };
        let bytes = events.iter().fold(0, |sum: usize, event| sum.saturating_add(room(event)));
        let appended = self.when_there_is_room(bytes, || match expect {
            Some(seq) => session.append_batch_expecting(seq, events.clone()),
            None => session.append_batch(events.clone()),
        })?;
        Ok(appended.map(|seqs| {
            let members = Members::default().text("session", id).number("seq", seqs.start);
            // An empty batch has no last event.
            match seqs.end.checked_sub(1).filter(|last| *last >= seqs.start) {
                Some(last) => Done::Now(members.number("last", last)),
                None => Done::Now(members),
            }
        }))
    }

    /// Tries until there is room for some `bytes`. What was answered so far is sent before the first wait: the
    /// client may need it to go on.
    fn when_there_is_room<T>(
        &mut self,
        bytes: usize,
        append: impl Fn() -> Result<T>,
    ) -> Result<Result<T>, Failure> {
        loop {
            match append() {
                Err(error) if error.is_backpressure() => {
                    self.settle()?;
                    if let Err(error) = self.store.wait_for_room(bytes) {
                        return Ok(Err(error));
                    }
                }
                done => return Ok(done),
            }
        }
    }

    fn flush(&self, session: Option<String>) -> Result<Done> {
        Ok(Done::WhenFlushed(session.map(|id| self.live(&id)).transpose()?))
    }

    fn messages(&self, id: &str) -> Result<Done> {
        let messages = match self.store.get(id) {
            Some(session) => session.derive_messages()?,
            None => self.store.open(id)?.derive_messages()?,
        };
        let lines = messages.iter().map(sessionlog::event::Message::to_line);
        Ok(Done::Now(Members::default().text("session", id).array("messages", lines)))
    }

    fn surface(&self, id: &str) -> Result<Done> {
        let nodes: Vec<SurfaceNode> = match self.store.get(id) {
            Some(session) => session.surface(),
            None => self.store.open(id)?.surface()?,
        };
        let nodes =
            nodes.iter().map(|node| format!("[{},{},{}]", node.seq, or_null(node.prev), or_null(node.next)));
        Ok(Done::Now(Members::default().text("session", id).array("nodes", nodes)))
    }

    fn events(&self, id: &str, from: u64, limit: Option<u64>) -> Result<Done> {
        let events = match self.store.get(id) {
            Some(session) => session.read_from(from),
            None => self.store.open(id)?.read_from(from),
        };
        let mut lines = Vec::new();
        let mut bytes = 0;
        for event in events.take(limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)) {
            let line = event?.to_line();
            bytes += line.len();
            if bytes > MOST_ANSWERED {
                let text =
                    format!("the events have over {MOST_ANSWERED} bytes; ask for parts with from and limit");
                return Err(Error::new(ErrorKind::TooLarge, text));
            }
            lines.push(line);
        }
        Ok(Done::Now(Members::default().text("session", id).array("events", lines)))
    }

    fn fork(&self, parent: &str, options: ForkOptions) -> Result<Done> {
        let session = self.store.fork(parent, options)?;
        session.flush_to(Durability::Written)?;
        Ok(Done::Now(opened(&session)))
    }

    fn delete(&self, id: &str) -> Result<Done> {
        self.store.delete(id)?;
        self.store.flush_to(Durability::Written)?;
        Ok(Done::Now(Members::default().text("session", id)))
    }

    fn stat(&self, id: &str) -> Result<Done> {
        let stat: Stat = self.store.stat(id)?;
        let figures = Figures::of(&stat).ok().and_then(|figures| serde_json::to_string(&figures).ok());
        let figures = figures.ok_or_else(|| Error::new(ErrorKind::Internal, "the figures are no JSON"))?;
        Ok(Done::Now(Members::default().text("session", id).number("seq", stat.events).raw("stat", &figures)))
    }
}

/// About the room that an event takes: what it brings, and something for the record around it.
fn room(event: &NewEvent) -> usize {
    const RECORD: usize = 256;
    let sources = event.sources().map_or(0, <[u64]>::len);
    let brought = event.data().len() + event.event_type().len() + event.extra().map_or(0, str::len);
    brought.saturating_add(sources.saturating_mul(10)).saturating_add(RECORD)
}

/// `options` with what was given.
fn with<O, T>(options: O, given: Option<T>, set: impl FnOnce(O, T) -> O) -> O {
    match given {
        Some(value) => set(options, value),
        None => options,
    }
}

fn opened(session: &Session) -> Members {
    Members::default().text("session", session.id()).number("seq", session.seq())
}

fn or_null(seq: Option<u64>) -> String {
    seq.map_or_else(|| "null".to_owned(), |seq| seq.to_string())
}
