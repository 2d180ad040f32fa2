//! New sessions, with or without a seed.

use crate::error::{Error, ErrorKind, Result};
use crate::event::{Checker, Event, Header, Surface, Time, Violation, check_event};

use super::engine::Engine;
use super::lifecycle::Prepared;
use super::listeners::Origin;
use super::options::Invariants;
use super::rules::{self, Rules};
use super::stage::Opening;

/// What a new session is made with. Everything is optional.
#[derive(Debug, Clone, Default)]
pub struct CreateOptions {
    header: Option<Header>,
    id: Option<String>,
    cwd: Option<String>,
    parent_session: Option<String>,
    created_at: Option<Time>,
    seed_length: Option<u64>,
    seed: Vec<Event>,
}

impl CreateOptions {
    /// A fresh UUID as id, created now, no seed.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A header that is kept as it is, also what this version does not know in it. Other header options are then
    /// ignored.
    #[must_use]
    pub fn from_header(header: Header) -> Self {
        Self { header: Some(header), ..Self::default() }
    }

    /// The id: not empty, at most [`MAX_ID_BYTES`](crate::event::MAX_ID_BYTES).
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The working directory: an absolute path.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// The session that this one continues.
    #[must_use]
    pub fn parent_session(mut self, id: impl Into<String>) -> Self {
        self.parent_session = Some(id.into());
        self
    }

    /// When it was created, for whoever reconstructs a session.
    #[must_use]
    pub fn created_at(mut self, time: Time) -> Self {
        self.created_at = Some(time);
        self
    }

    /// How many leading events of the seed were inherited from the parent. It is never guessed.
    #[must_use]
    pub fn seed_length(mut self, events: u64) -> Self {
        self.seed_length = Some(events);
        self
    }

    /// The first events, kept exactly: their seqs must be 0, 1, 2…
    #[must_use]
    pub fn seed(mut self, events: Vec<Event>) -> Self {
        self.seed = events;
        self
    }

    fn into_parts(self, engine: &Engine) -> Result<(Header, Vec<Event>)> {
        if let Some(header) = self.header {
            return Ok((header, self.seed));
        }
        let id = self.id.unwrap_or_else(|| engine.fresh_id());
        let mut header = Header::new(id, self.created_at.unwrap_or_else(|| engine.now()))?;
        if let Some(cwd) = self.cwd {
            header = header.with_cwd(cwd)?;
        }
        if let Some(parent) = self.parent_session {
            header = header.with_parent(parent);
        }
        if let Some(events) = self.seed_length {
            header = header.with_seed_length(events);
        }
        Ok((header, self.seed))
    }
}

/// The longest header, in bytes of its JSON text.
pub const MAX_HEADER_BYTES: usize = 1 << 20;

/// The limit of F10 for headers.
pub(super) fn check_header(header: &Header) -> Result<()> {
    let bytes = header.to_line().len();
    if bytes <= MAX_HEADER_BYTES {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::TooLarge,
        format!(
            "the header of session {:?} has {bytes} bytes, at most {MAX_HEADER_BYTES} are possible",
            header.id()
        ),
    ))
}

/// Validates and builds a new session. Whether the id is free is only known when it enters.
pub(super) fn prepare(engine: &Engine, options: CreateOptions) -> Result<Prepared> {
    let (header, seed) = options.into_parts(engine)?;
    check_header(&header)?;
    let mut fold = SeedFold::new(engine.invariants);
    for event in &seed {
        fold.push(event)?;
    }
    Ok(Prepared {
        origin: Origin::Created,
        header,
        opening: Opening::Create,
        base: None,
        copies: false,
        rules: fold.rules,
        violations: fold.violations,
        surface: fold.checker.into_surface(),
        events: seed,
        stored: None,
        pin: None,
    })
}

/// The checks that a seed or an import must pass, event by event: what breaks I1 to I4 is refused; what breaks
/// only I5 to I10 is reported.
pub(super) struct SeedFold {
    pub(super) next_seq: u64,
    pub(super) rules: Option<Rules>,
    pub(super) violations: Vec<Violation>,
    /// All of them: whoever collects may drop some of `violations`.
    pub(super) violation_count: u64,
    /// Its surface is the seed's: there is one in memory, not two.
    checker: Checker,
}

impl SeedFold {
    pub(super) fn new(policy: Invariants) -> Self {
        Self {
            next_seq: 0,
            rules: Rules::new(policy),
            violations: Vec::new(),
            violation_count: 0,
            checker: Checker::new(),
        }
    }

    /// Takes the next event in, or refuses it by name.
    pub(super) fn push(&mut self, event: &Event) -> Result<()> {
        let seq = event.seq();
        if seq != self.next_seq {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!(
                    "event {} of the seed has seq {seq}; seqs must be contiguous from 0 (I1)",
                    self.next_seq
                ),
            ));
        }
        super::draft::check_limits_of(event).map_err(|error| named(error, seq))?;
        check_event(seq, event, self.checker.surface()).map_err(|error| named(error, seq))?;
        self.next_seq = seq.checked_add(1).ok_or_else(|| named(no_seq_left(), seq))?;
        for one in self.checker.observe(event).iter().filter(|one| rules::is_ours(one.rule)) {
            self.violations.push(one.clone());
            self.violation_count += 1;
        }
        if let Some(rules) = &mut self.rules {
            rules.replay(event);
        }
        if event.surface_op().is_some() && !self.checker.surface().contains(seq) {
            return Err(named(Error::new(ErrorKind::TooLarge, "the surface is full"), seq));
        }
        Ok(())
    }

    /// The surface that the events make.
    pub(super) fn into_surface(self) -> Surface {
        self.checker.into_surface()
    }
}

fn no_seq_left() -> Error {
    Error::new(ErrorKind::TooLarge, "no seq is left behind it")
}

fn named(error: Error, seq: u64) -> Error {
    let kind = error.kind();
    error.wrap(kind, format!("event {seq} is refused"))
}
