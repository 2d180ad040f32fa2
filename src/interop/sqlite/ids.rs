//! The ids of a database, in the order of their bytes.
//!
//! What always holds: memory is one batch; each id is behind the one before it, so a damaged index cannot lead round
//! in circles. What is never done: stopping at a row whose id is none.

use std::collections::VecDeque;

use super::cell::Cell;
use super::database::Tables;
use super::fault::{failed, words};
use super::schema::Layout;
use crate::{Error, Result};

/// Ids of a batch.
const BATCH: usize = 256;
/// A batch ends early when it has grown to this many bytes.
const BATCH_BYTES: usize = 1 << 20;

/// Where ids stand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// All ids, in order.
    first: &'static str,
    /// The ids behind the parameter, in order.
    next: &'static str,
    /// Whether a row without an id is there.
    nulls: &'static str,
    /// Only ids that `sessions` does not have.
    orphans: bool,
    what: &'static str,
}

pub(super) const SESSIONS: Place = Place {
    first: "SELECT id FROM main.sessions WHERE id IS NOT NULL ORDER BY id LIMIT 256",
    next: "SELECT id FROM main.sessions WHERE id > ?1 ORDER BY id LIMIT 256",
    nulls: "SELECT EXISTS (SELECT 1 FROM main.sessions WHERE id IS NULL)",
    orphans: false,
    what: "a row of sessions",
};
/// One at a time: the rows of one session are stepped over by a search for the next one.
pub(super) const ORPHANS: Place = Place {
    first: "SELECT session_id FROM main.events WHERE session_id IS NOT NULL ORDER BY session_id LIMIT 1",
    next: "SELECT session_id FROM main.events WHERE session_id > ?1 ORDER BY session_id LIMIT 1",
    nulls: "SELECT EXISTS (SELECT 1 FROM main.events WHERE session_id IS NULL)",
    orphans: true,
    what: "a row of events",
};

/// Ids, or why a row has none.
pub struct Ids<'a> {
    tables: Tables<'a>,
    place: Place,
    /// The last value, whatever it was.
    last: Option<Cell>,
    batch: VecDeque<Cell>,
    nulls_told: bool,
    ended: bool,
}

impl<'a> Ids<'a> {
    pub(super) fn new(tables: Tables<'a>, place: Place) -> Self {
        let ended = tables.layout == Layout::Empty;
        Self { tables, place, last: None, batch: VecDeque::new(), nulls_told: false, ended }
    }

    fn fill(&mut self) -> rusqlite::Result<()> {
        let sql = if self.last.is_some() { self.place.next } else { self.place.first };
        let mut query = self.tables.connection.prepare(sql)?;
        let mut rows = query.query(rusqlite::params_from_iter(&self.last))?;
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            let cell = Cell::value(row, 0)?;
            bytes += cell.bytes();
            self.batch.push_back(cell);
            if bytes >= BATCH_BYTES || self.batch.len() >= BATCH {
                break;
            }
        }
        Ok(())
    }

    fn next_cell(&mut self) -> Result<Option<Cell>> {
        if self.batch.is_empty() {
            let filled = self.fill();
            if let Err(error) = filled
                && self.batch.is_empty()
            {
                self.ended = true;
                return Err(failed("list the sessions of", self.tables.path, error));
            }
        }
        let Some(cell) = self.batch.pop_front() else {
            self.ended = true;
            return Ok(None);
        };
        if self.last.as_ref().is_some_and(|last| !cell.is_behind(last)) {
            self.ended = true;
            let text = "its index of sessions is damaged: the ids are not in order";
            return Err(Error::corrupt_in(self.tables.path, text));
        }
        self.last = Some(cell.clone());
        Ok(Some(cell))
    }

    fn is_known(&self, id: &Cell) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM main.sessions WHERE id = ?1)";
        let found = self.tables.connection.query_row(sql, [id], |row| row.get(0));
        found.map_err(|error| failed("look for a session in", self.tables.path, error))
    }

    fn nulls(&self) -> Option<Error> {
        match self.tables.connection.query_row(self.place.nulls, [], |row| row.get::<_, bool>(0)) {
            Ok(true) => Some(self.no_id("NULL")),
            Ok(false) => None,
            Err(error) => Some(Error::corrupt_in(self.tables.path, words(&error))),
        }
    }

    fn no_id(&self, found: &str) -> Error {
        let text = format!("{} has {found} where an id belongs", self.place.what);
        Error::corrupt_in(self.tables.path, text)
    }

    fn item(&mut self) -> Result<Option<String>> {
        loop {
            let Some(cell) = self.next_cell()? else { return Ok(None) };
            if self.place.orphans && self.is_known(&cell)? {
                continue;
            }
            return match cell {
                Cell::Text(id) => Ok(Some(id)),
                other => Err(self.no_id(other.kind())),
            };
        }
    }
}

impl Iterator for Ids<'_> {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        if !self.nulls_told {
            self.nulls_told = true;
            if let Some(error) = self.nulls() {
                return Some(Err(error));
            }
        }
        self.item().transpose()
    }
}

impl std::fmt::Debug for Ids<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ids")
            .field("path", &self.tables.path)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}
