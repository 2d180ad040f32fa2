//! The rows of one session, in the order of their seqs.
//!
//! What always holds: memory is one batch, which is one row when that is large; each row is behind the one before it,
//! so a damaged index cannot lead round in circles.

use std::collections::VecDeque;

use super::cell::Cell;
use super::database::Tables;
use super::fault::{failed, is_damage, words};
use super::row::{Row, query};
use crate::Error;

/// Rows of a batch.
const BATCH: usize = 256;
/// A batch ends early when it has grown to this many bytes.
const BATCH_BYTES: usize = 1 << 20;

pub(super) struct Rows<'a> {
    tables: Tables<'a>,
    id: String,
    sql: String,
    last: Cell,
    batch: VecDeque<Row>,
    /// What ended the batch; it comes behind its rows.
    fault: Option<RowsFault>,
    ended: bool,
}

/// Why there are no more rows.
pub(super) enum RowsFault {
    /// The database is damaged there.
    Damage(String),
    /// It could not be read now.
    Failed(Error),
}

impl<'a> Rows<'a> {
    pub(super) fn new(tables: Tables<'a>, id: &str) -> Self {
        let (id, sql) = (id.to_owned(), query(tables.has_lines()));
        // Every number is behind it.
        let last = Cell::Real(f64::NEG_INFINITY);
        Self { tables, id, sql, last, batch: VecDeque::new(), fault: None, ended: false }
    }

    fn fill(&mut self) -> rusqlite::Result<()> {
        let mut query = self.tables.connection.prepare(&self.sql)?;
        let mut rows = query.query((&self.id, &self.last))?;
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            let row = Row::read(row)?;
            bytes += row.bytes();
            self.batch.push_back(row);
            if bytes >= BATCH_BYTES || self.batch.len() >= BATCH {
                return Ok(());
            }
        }
        self.ended = true;
        Ok(())
    }

    pub(super) fn next_row(&mut self) -> Result<Option<Row>, RowsFault> {
        if self.batch.is_empty()
            && !self.ended
            && let Err(error) = self.fill()
        {
            self.ended = true;
            self.fault = Some(if is_damage(&error) {
                RowsFault::Damage(words(&error))
            } else {
                RowsFault::Failed(failed("read events of", self.tables.path, error))
            });
        }
        let Some(row) = self.batch.pop_front() else {
            return self.fault.take().map_or(Ok(None), Err);
        };
        if !row.seq.is_behind(&self.last) {
            self.ended = true;
            self.batch.clear();
            return Err(RowsFault::Damage(
                "its index of events is damaged: the rows are not in order".to_owned(),
            ));
        }
        self.last = row.seq.clone();
        Ok(Some(row))
    }
}
