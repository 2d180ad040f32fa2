//! Where a session's events are: its lineage over forks, and the segments that hold each stretch.
//!
//! Resolution is iterative (D6): a chain of forks is a list, never a recursion. Nothing here reads an event.

use crate::error::{Error, ErrorKind, Result};
use crate::format::index::{SessionPart, StructureEntry};
use crate::format::{Binding, names};

use super::segments::Index;
use super::shared::Shared;
use super::types::{SessionEntry, Structure};

/// Longest chain of forks that is followed (D6).
pub(crate) const MAX_LINEAGE: usize = 65_536;

/// A run of seqs that one session physically holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub entry: SessionEntry,
    pub from: u64,
    pub to: u64,
}

/// A run of seqs in one segment, or one that is not there.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Part {
        segment: u32,
        part: SessionPart,
        from: u64,
        to: u64,
    },
    /// Seqs below `to` that no segment holds.
    Hole {
        to: u64,
        error: Error,
    },
}

impl Shared {
    /// The sessions that hold `[from, to)` of `entry`, oldest seqs first.
    pub(crate) fn lineage(&self, entry: &SessionEntry, from: u64, to: u64) -> Result<Vec<Span>> {
        let mut spans = Vec::new();
        let mut entry = entry.clone();
        let mut to = to.min(entry.next_seq);
        // Sessions are counted, not spans: one that holds nothing of the range adds none, and may lead to itself.
        let mut passed = 0usize;
        while from < to {
            if entry.own_first < to {
                spans.push(Span { from: from.max(entry.own_first), to, entry: entry.clone() });
            }
            let Some(fork) = entry.fork.filter(|fork| from < fork.cut) else { break };
            to = to.min(fork.cut);
            passed += 1;
            if passed > MAX_LINEAGE {
                return Err(Error::new(
                    ErrorKind::Corrupt,
                    format!("the chain of forks of {} does not end", entry.id),
                ));
            }
            let (own, before) = self.before(&entry, fork, to)?;
            if let Some(span) = own {
                to = span.from;
                let from = span.from.max(from);
                spans.extend((from < span.to).then_some(Span { from, ..span }));
            }
            entry = before;
        }
        spans.reverse();
        Ok(spans)
    }

    /// The segments that hold a span, oldest first, with holes named.
    pub(crate) fn pieces(&self, span: &Span) -> Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut to = span.to;
        let mut segment = Some(span.entry.last_segment).filter(|segment| *segment > 0);
        let mut trouble = None;
        while let Some(number) = segment
            && to > span.from
        {
            match self.part_in(number, span.entry.dense) {
                Ok(Some(part)) => {
                    let end = part.end_seq().min(to);
                    if end < to && part.first_seq < to {
                        pieces.push(hole(span, end, to, trouble.take()));
                    }
                    if part.first_seq < end {
                        let from = part.first_seq.max(span.from);
                        if from < end {
                            pieces.push(Piece::Part { segment: number, from, to: end, part });
                        }
                        to = part.first_seq.min(to);
                    }
                    if part.first_seq <= span.entry.own_first {
                        break;
                    }
                    segment = self.at_or_before(part.prev_segment.min(number.saturating_sub(1)));
                }
                Ok(None) => segment = self.at_or_before(number.saturating_sub(1)),
                Err(error) => {
                    trouble.get_or_insert(error);
                    segment = self.at_or_before(number.saturating_sub(1));
                }
            }
        }
        if to > span.from {
            pieces.push(hole(span, span.from, to, trouble));
        }
        pieces.reverse();
        Ok(pieces)
    }

    /// The newest segment of at most this number. One that is about to end is known by its table only: its last
    /// events are being written while newer ones are accepted into the next segment.
    fn at_or_before(&self, number: u32) -> Option<u32> {
        let open = self.state().live.table_at_or_before(number);
        let ended = self.segments.read().before(number.saturating_add(1));
        open.max(ended).filter(|_| number > 0)
    }

    /// What `segment` holds of a session.
    pub(crate) fn part_in(&self, segment: u32, dense: u64) -> Result<Option<SessionPart>> {
        {
            let state = self.state();
            if let Some(table) = state.live.table(segment) {
                return Ok(table.session(dense).map(|session| session.part()));
            }
        }
        let segments = self.segments.read().clone();
        match segments.index(self, segment)?.session(dense) {
            Ok(part) => Ok(part),
            Err(error) => {
                tracing::warn!(%error, segment, "an index block is damaged; rebuilding the index");
                segments.replace_index(self, segment)?.session(dense)
            }
        }
    }

    /// Offsets of the part's events `[from, to)`, counted within the part; 0 is a hole.
    pub(crate) fn offsets_in(
        &self,
        segment: u32,
        part: &SessionPart,
        from: u32,
        to: u32,
    ) -> Result<Vec<u32>> {
        {
            let state = self.state();
            if let Some(table) = state.live.table(segment) {
                let offsets = table.session(part.dense).map_or(&[][..], |session| session.offsets());
                let (from, to) = (as_index(from), as_index(to).min(offsets.len()));
                return Ok(offsets.get(from..to).unwrap_or(&[]).to_vec());
            }
        }
        self.with_index(segment, part, |index, part| index.offsets(part, from, to))
    }

    /// Asks an index about a session. The part that the caller has may stem from a table that is gone, so it is looked
    /// up anew; a damaged index is rebuilt once.
    fn with_index<T>(
        &self,
        segment: u32,
        part: &SessionPart,
        ask: impl Fn(&Index, &SessionPart) -> Result<T>,
    ) -> Result<T> {
        let segments = self.segments.read().clone();
        let answer = |index: &Index| {
            let here = index.session(part.dense)?;
            let here = here.ok_or_else(|| lost_event(segment, part.dense, part.first_seq))?;
            ask(index, &here)
        };
        let index = segments.index(self, segment)?;
        match answer(&index) {
            Err(error) if matches!(*index, Index::File(_)) => {
                tracing::warn!(%error, segment, "an index block is damaged; rebuilding the index");
                answer(segments.replace_index(self, segment)?.as_ref())
            }
            answer => answer,
        }
    }

    fn structure_in(
        &self,
        segment: u32,
        part: &SessionPart,
        from: u64,
        to: u64,
        out: &mut Vec<Structure>,
    ) -> Result<()> {
        let mut push = |entry: &StructureEntry| {
            if entry.seq >= from && entry.seq < to {
                out.push(Structure { seq: entry.seq, class: entry.class, op: entry.op });
            }
        };
        {
            let state = self.state();
            if let Some(table) = state.live.table(segment) {
                let entries = table.session(part.dense).map_or(&[][..], |session| session.structure());
                entries.iter().for_each(&mut push);
                return Ok(());
            }
        }
        let entries = self.with_index(segment, part, Index::structure)?;
        entries.iter().for_each(&mut push);
        Ok(())
    }

    /// All events of `entry` below `to` that are no chunks, in seq order, inherited ones included, and the first
    /// hole on the way.
    pub(crate) fn structure(&self, entry: &SessionEntry, to: u64) -> Result<(Vec<Structure>, Option<Error>)> {
        let mut out = Vec::new();
        let mut first_hole = None;
        for span in self.lineage(entry, 0, to)? {
            for piece in self.pieces(&span)? {
                match piece {
                    Piece::Part { segment, part, from, to } => {
                        if part.has_holes && first_hole.is_none() {
                            first_hole = self.hole_in(segment, &part, from, to)?;
                        }
                        self.structure_in(segment, &part, from, to, &mut out)?;
                    }
                    Piece::Hole { error, .. } => {
                        first_hole.get_or_insert(error);
                    }
                }
            }
        }
        Ok((out, first_hole))
    }

    fn hole_in(&self, segment: u32, part: &SessionPart, from: u64, to: u64) -> Result<Option<Error>> {
        let (Some(first), Some(last)) = (part.position(from), part.position(to.saturating_sub(1))) else {
            return Ok(None);
        };
        let offsets = self.offsets_in(segment, part, first, last.saturating_add(1))?;
        let hole = offsets.iter().position(|offset| *offset == 0);
        Ok(hole.map(|at| lost_event(segment, part.dense, from.saturating_add(at as u64))))
    }

    /// What record checksums in `segment` are bound to.
    pub(crate) fn binding(&self, segment: u32) -> Result<Binding> {
        if let Some(binding) = self.state().live.binding(segment) {
            return Ok(binding);
        }
        let segments = self.segments.read().clone();
        Ok(segments.facts(self, segment)?.binding())
    }
}

/// The damage error for an event whose record is gone.
pub(crate) fn lost_event(segment: u32, dense: u64, seq: u64) -> Error {
    let text = format!(
        "the record of seq {seq} (session number {dense}) is damaged or missing; `verify` lists the damage"
    );
    Error::corrupt_in(names::segment(segment), text)
}

fn hole(span: &Span, from: u64, to: u64, trouble: Option<Error>) -> Piece {
    let what = format!("session {}: seq {from} to {} are lost", span.entry.id, to.saturating_sub(1));
    let error = match trouble {
        Some(error) => error.wrap(ErrorKind::Corrupt, what),
        None => Error::new(ErrorKind::Corrupt, format!("{what}; no segment holds them")),
    };
    Piece::Hole { to, error }
}

fn as_index(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
