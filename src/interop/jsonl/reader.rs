//! Reads one session file as a stream (rule X1).
//!
//! What always holds: events come in order and each is the one of its place; the first hole ends them; what the
//! hole means (torn tail or damage) is known when the rest of the file has been looked at. Memory is one line.
//! What is never done: continuing behind a hole, changing the file.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::lines::{Line, Lines, MAX_LINE_BYTES};
use super::packed::{PackedRow, is_packed_type};
use serde_json::value::RawValue;

use super::super::hole::{Hole, HoleReason, Place};
use super::super::offer::Offer;
use super::super::verdict::{Ending, Verdict};
use crate::event::{Checker, Event, Header, HeaderNote, JsonKind, JsonRef, Violation};
use crate::{Error, ErrorKind, Result};

/// Bytes of a file that are read at once: most lines lie within them.
const WINDOW: usize = 128 << 10;

/// The events of one file.
#[derive(Debug)]
pub struct Reader<R> {
    path: PathBuf,
    lines: Lines<R>,
    header: Header,
    notes: Vec<HeaderNote>,
    next_seq: u64,
    kept_bytes: u64,
    line: u64,
    row: Option<PackedRow>,
    packed_rows: u64,
    packed_events: u64,
    /// Events that are not of their place are handed out too.
    any_place: bool,
    stop: Option<Stop>,
}

#[derive(Debug)]
enum Stop {
    End,
    Hole(Hole, /* the line itself ends a turn */ bool),
    /// An error was handed out.
    Failed,
}

/// What a line is.
enum Item {
    Event(Event),
    Row(PackedRow),
    Hole(HoleReason, bool),
    Broken(Broken),
}

/// What the reader comes to next.
enum Entry {
    Event(Event),
    Broken(Broken),
}

/// An object of its place whose envelope or values break a rule.
struct Broken {
    text: String,
    error: Error,
}

impl Reader<BufReader<File>> {
    /// Opens the file at `path` and reads its header.
    ///
    /// # Errors
    /// Failed reads; otherwise as [`Reader::new`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
        Self::new(BufReader::with_capacity(WINDOW, file), path)
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads the header from `source`; `path` is what errors name.
    ///
    /// # Errors
    /// A header that is missing, has no LF, is no session header, or is of another version (kinds `Corrupt`,
    /// `InvalidJson`, `InvalidValue`, `Version`), and failed reads.
    pub fn new(source: R, path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let mut lines = Lines::new(source, MAX_LINE_BYTES);
        let first = lines.next_line().map_err(|error| Error::io("read", &path, error))?;
        let (header, notes) = match first {
            Some(line) => read_header(&line, &path)?,
            None => return Err(Error::corrupt(&path, 0, "an empty file: there is no header line")),
        };
        let kept_bytes = lines.offset();
        Ok(Self {
            path,
            lines,
            header,
            notes,
            next_seq: 0,
            kept_bytes,
            line: 1,
            row: None,
            packed_rows: 0,
            packed_events: 0,
            any_place: false,
            stop: None,
        })
    }

    /// Hands out events that are out of their place as well, for a checker that says so (I1). They are no holes then.
    #[must_use]
    pub fn in_any_place(mut self) -> Self {
        self.any_place = true;
        self
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What was odd about the header and kept as it is.
    #[must_use]
    pub fn header_notes(&self) -> &[HeaderNote] {
        &self.notes
    }

    /// The line of the file that was read last, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The next event, or `None` at the first hole or the end.
    ///
    /// # Errors
    /// Failed reads, and an event in its place whose envelope or values break a rule: the message names line and
    /// offset. After an error there is nothing more.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        match self.next_entry()? {
            None => Ok(None),
            Some(Entry::Event(event)) => Ok(Some(event)),
            Some(Entry::Broken(Broken { error, .. })) => {
                self.stop = Some(Stop::Failed);
                let place =
                    format!("{} line {}, event {}", self.path.display(), self.line, self.next_seq - 1);
                Err(error.clone().wrap(error.kind(), place))
            }
        }
    }

    /// Hands the next event to `checker`, whatever its envelope is like, and returns what it violates; `None` at
    /// the first hole or the end.
    ///
    /// # Errors
    /// Failed reads.
    pub fn check_next<'c>(&mut self, checker: &'c mut Checker) -> Result<Option<&'c [Violation]>> {
        Ok(match self.next_entry()? {
            None => None,
            Some(Entry::Event(event)) => Some(checker.observe(&event)),
            Some(Entry::Broken(Broken { text, .. })) => Some(checker.observe_line(&text)),
        })
    }

    fn next_entry(&mut self) -> Result<Option<Entry>> {
        loop {
            if self.stop.is_some() {
                return Ok(None);
            }
            if let Some(event) = self.next_member()? {
                return Ok(Some(Entry::Event(event)));
            }
            if let Some(entry) = self.next_line()? {
                return Ok(Some(entry));
            }
        }
    }

    /// The next member of the packed row that is being expanded.
    fn next_member(&mut self) -> Result<Option<Event>> {
        let Some(row) = &mut self.row else { return Ok(None) };
        match row.next_member() {
            Some(Ok(event)) => {
                self.next_seq += 1;
                self.packed_events += 1;
                Ok(Some(event))
            }
            Some(Err(error)) => {
                self.stop = Some(Stop::Failed);
                Err(error.wrap(ErrorKind::Internal, format!("expand the row in line {}", self.line)))
            }
            None => {
                self.row = None;
                self.kept_bytes = self.lines.offset();
                Ok(None)
            }
        }
    }

    fn next_line(&mut self) -> Result<Option<Entry>> {
        let line = match self.lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => {
                self.stop = Some(Stop::End);
                return Ok(None);
            }
            Err(error) => {
                self.stop = Some(Stop::Failed);
                return Err(Error::io("read", &self.path, error));
            }
        };
        self.line = line.number;
        let (offset, end) = (line.offset, line.offset + line.length);
        let item = read_line(&line, Some(self.next_seq).filter(|_| !self.any_place));
        self.lines.forget();
        match item {
            Item::Event(event) => {
                self.next_seq += 1;
                self.kept_bytes = end;
                return Ok(Some(Entry::Event(event)));
            }
            Item::Broken(broken) => {
                self.next_seq += 1;
                self.kept_bytes = end;
                return Ok(Some(Entry::Broken(broken)));
            }
            Item::Row(row) => {
                self.packed_rows += 1;
                self.row = Some(row);
            }
            Item::Hole(reason, ends_turn) => {
                let at = Place::Line { number: self.line, offset };
                let hole = Hole { at, seq: self.next_seq, reason };
                self.stop = Some(Stop::Hole(hole, ends_turn));
            }
        }
        Ok(None)
    }

    /// Looks at the rest of the file and says how the events end. Events that were not asked for are passed over.
    ///
    /// # Errors
    /// Failed reads.
    pub fn finish(mut self) -> Result<Verdict> {
        self.judge()
    }

    fn judge(&mut self) -> Result<Verdict> {
        while self.next_entry()?.is_some() {}
        let mut lost_entries = 0;
        let ending = match self.stop.take() {
            Some(Stop::Hole(hole, ends_turn)) => {
                let later = self.rest()?;
                lost_entries = later.lines.saturating_add(1);
                if ends_turn || later.ends_turn { Ending::Damaged(hole) } else { Ending::Torn(hole) }
            }
            _ => Ending::Whole,
        };
        Ok(Verdict {
            events: self.next_seq,
            kept_bytes: self.kept_bytes,
            total_bytes: self.lines.offset(),
            lost_entries,
            ending,
            packed_rows: self.packed_rows,
            packed_events: self.packed_events,
        })
    }

    /// Reads to the end of the file.
    fn rest(&mut self) -> Result<Rest> {
        let mut rest = Rest { lines: 0, ends_turn: false };
        while let Some(line) = self.lines.next_line().map_err(|error| Error::io("read", &self.path, error))? {
            rest.lines += 1;
            rest.ends_turn = rest.ends_turn || ends_turn(&line);
        }
        Ok(rest)
    }
}

/// What stands behind a hole.
struct Rest {
    lines: u64,
    ends_turn: bool,
}

impl<R: BufRead> Offer for Reader<R> {
    fn header(&self) -> &Header {
        self.header()
    }

    fn header_notes(&self) -> &[HeaderNote] {
        self.header_notes()
    }

    fn next_event(&mut self) -> Result<Option<Event>> {
        Self::next_event(self)
    }

    fn place(&self) -> String {
        format!("{} line {}", self.path.display(), self.line)
    }

    fn consumed(&self) -> u64 {
        self.lines.offset()
    }

    fn finish(&mut self) -> Result<Verdict> {
        self.judge()
    }
}

fn read_header(line: &Line<'_>, path: &Path) -> Result<(Header, Vec<HeaderNote>)> {
    let Some(bytes) = line.bytes else {
        let text = format!("the header line has {} bytes; at most {MAX_LINE_BYTES} are read", line.length);
        return Err(Error::corrupt(path, 0, text));
    };
    if !line.terminated {
        return Err(Error::corrupt(path, 0, "the header line has no LF: its writer may have died in it"));
    }
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return Err(Error::corrupt(path, 0, "the file starts with a byte order mark; remove it"));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Error::corrupt(path, count(error.valid_up_to()), "the header line is not UTF-8"))?;
    Header::parse_line(text)
        .map_err(|error| error.clone().wrap(error.kind(), format!("{} line 1", path.display())))
}

/// What the line is at the place `seq`, or at any.
fn read_line(line: &Line<'_>, seq: Option<u64>) -> Item {
    let Some(bytes) = line.bytes else {
        return Item::Hole(HoleReason::TooLong { length: line.length }, false);
    };
    if !line.terminated {
        return Item::Hole(HoleReason::Unterminated, false);
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Item::Hole(HoleReason::NotUtf8 { at: error.valid_up_to() }, false),
    };
    match Event::parse_line(text) {
        Ok(event) if seq.is_none_or(|seq| event.seq() == seq) => Item::Event(event),
        Ok(event) => {
            let found = Some(event.seq().to_string());
            Item::Hole(HoleReason::Place { found }, event.event_type() == "turn/end")
        }
        Err(error) => explain(text, seq, error),
    }
}

/// Why a line is no event: a hole, a packed row, or an event that breaks a rule.
fn explain(text: &str, seq: Option<u64>, error: Error) -> Item {
    if text.bytes().all(|byte| byte.is_ascii_whitespace()) {
        return Item::Hole(HoleReason::Blank, false);
    }
    // J's limits are no holes, so this asks about the syntax alone.
    if let Err(problem) = serde_json::from_str::<&RawValue>(text) {
        return Item::Hole(HoleReason::NotJson(problem.to_string()), false);
    }
    let value = JsonRef::new_validated(text);
    if value.kind() != JsonKind::Object {
        return Item::Hole(HoleReason::NotAnObject, false);
    }
    let event_type =
        value.get("type").and_then(|name| name.as_str()).map(|name| name.to_utf8_lossy().into_owned());
    let event_type = event_type.unwrap_or_default();
    if is_packed_type(&event_type) && value.get("seq").is_none() {
        return match PackedRow::parse(value, &event_type) {
            Ok(row) if seq.is_none_or(|seq| row.first_seq() == seq) => Item::Row(row),
            Ok(row) => Item::Hole(HoleReason::Place { found: Some(row.first_seq().to_string()) }, false),
            Err(why) => Item::Hole(HoleReason::PackedRow(why), false),
        };
    }
    let found = value.get("seq");
    if seq.is_some() && found.and_then(|seq| seq.as_u64()) != seq {
        let found =
            found.filter(|found| found.kind() == JsonKind::Number).map(|found| found.raw().to_owned());
        return Item::Hole(HoleReason::Place { found }, event_type == "turn/end");
    }
    Item::Broken(Broken { text: text.to_owned(), error })
}

/// Whether a line behind a hole proves that a turn had ended there.
fn ends_turn(line: &Line<'_>) -> bool {
    let Some(text) = line.bytes.filter(|_| line.terminated).and_then(|bytes| std::str::from_utf8(bytes).ok())
    else {
        return false;
    };
    // Nearly every line is a chunk: the search is cheaper than reading it.
    if !text.contains("turn/end") && !text.contains('\\') {
        return false;
    }
    if serde_json::from_str::<&RawValue>(text).is_err() {
        return false;
    }
    let event_type = JsonRef::new_validated(text).get("type").and_then(|name| name.as_str());
    event_type.is_some_and(|name| name.eq_str("turn/end"))
}

fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
