//! The surface against a list: the fold of S1-S5 in the plainest way.

use std::collections::BTreeMap;

use super::input::Input;
use crate::event::{ReplaceError, Surface, SurfaceOp};

/// The nodes in their order, and who shadows whom.
#[derive(Default)]
struct Plain {
    nodes: Vec<u64>,
    by: BTreeMap<u64, u64>,
    shadows: BTreeMap<u64, Vec<u64>>,
}

impl Plain {
    fn place(&self, seq: u64) -> Option<usize> {
        self.nodes.iter().position(|node| *node == seq)
    }

    /// The range of places that a replace names (A5, the first four tests).
    fn range(&self, start: u64, end: u64, next: u64) -> Result<(usize, usize), ReplaceError> {
        let known = |seq: u64| self.nodes.contains(&seq) || self.by.contains_key(&seq);
        if let Some(seq) = [start, end].into_iter().find(|seq| *seq >= next) {
            return Err(ReplaceError::UnknownSeq { seq });
        }
        if let Some(seq) = [start, end].into_iter().find(|seq| !known(*seq)) {
            return Err(ReplaceError::NotSurface { seq });
        }
        for seq in [start, end] {
            if let Some(by) = self.by.get(&seq) {
                return Err(ReplaceError::AlreadyShadowed { seq, by: *by });
            }
        }
        match (self.place(start), self.place(end)) {
            (Some(first), Some(last)) if first <= last => Ok((first, last)),
            _ => Err(ReplaceError::Reversed { start, end }),
        }
    }

    /// As [`range`](Self::range), and the sources cover it.
    fn check(&self, start: u64, end: u64, sources: &[u64], next: u64) -> Result<(), ReplaceError> {
        let (first, last) = self.range(start, end, next)?;
        let inside = self.nodes.iter().skip(first).take(last - first + 1);
        match inside.copied().find(|seq| !sources.contains(seq)) {
            Some(seq) => Err(ReplaceError::Uncovered { seq }),
            None => Ok(()),
        }
    }

    fn replace(&mut self, (first, last): (usize, usize), seq: u64) {
        let gone: Vec<u64> = self.nodes.splice(first..=last, [seq]).collect();
        self.by.extend(gone.iter().map(|shadowed| (*shadowed, seq)));
        self.shadows.insert(seq, gone);
    }
}

const MOST_OPS: usize = 400;

/// Ops, each: what u8 (0..128 an append, 255 an undo of the last ones), and for a replace: ends u8 u8, sources u8.
pub fn surface_fold(input: &[u8]) {
    let mut input = Input::new(input);
    let (mut surface, mut plain, mut next) = (Surface::new(), Plain::default(), 0u64);
    for _ in 0..MOST_OPS {
        if input.is_empty() {
            break;
        }
        let what = input.u8();
        // Events that are no messages stand between.
        next += u64::from(what >> 4 & 3);
        match what {
            0..128 => {
                surface.apply(next, &SurfaceOp::Append).expect("an append behind all others is taken");
                plain.nodes.push(next);
                next += 1;
            }
            255 => undo(&mut surface, next, &mut input),
            _ => replace(&mut surface, &mut plain, &mut next, &mut input),
        }
        if let Some(last) = next.checked_sub(1).filter(|last| surface.is_surface_seq(*last)) {
            assert!(surface.apply(last, &SurfaceOp::Append).is_err(), "a seq is folded once");
        }
    }
    compare(&surface, &plain, next);
}

/// Folds some more and takes it back: the surface is as before.
fn undo(surface: &mut Surface, next: u64, input: &mut Input<'_>) {
    let before = surface.clone();
    let mark = surface.mark();
    for seq in next..next + u64::from(input.u8() % 4) {
        let (start, end) = (u64::from(input.u8()), u64::from(input.u8()));
        let op = if start < 64 { SurfaceOp::Append } else { SurfaceOp::Replace { start: start - 64, end } };
        let _ = surface.apply(seq, &op);
    }
    surface.roll_back(mark);
    assert!(surface.nodes().eq(before.nodes()), "an undo brings the nodes back");
    assert_eq!((surface.len(), surface.head(), surface.tail()), (before.len(), before.head(), before.tail()));
}

fn replace(surface: &mut Surface, plain: &mut Plain, next: &mut u64, input: &mut Input<'_>) {
    let mut end_of = || match input.u8() {
        // Mostly nodes, sometimes whatever there is.
        at @ 0..224 => {
            usize::from(at).checked_rem(plain.nodes.len()).and_then(|at| plain.nodes.get(at)).copied()
        }
        other => Some(next.saturating_sub(u64::from(other - 224))),
    };
    let (start, end) = (end_of().unwrap_or(0), end_of().unwrap_or(0));
    let skipped = usize::from(input.u8());
    let mut sources: Vec<u64> = plain.nodes.clone();
    if skipped < 64 && skipped < sources.len() {
        sources.remove(skipped);
    }
    let told = surface.check_replace(start, end, &sources, *next);
    assert_eq!(told, plain.check(start, end, &sources, *next), "replace {start}..{end} of {:?}", plain.nodes);
    let (before, range) = (surface.len(), plain.range(start, end, *next));
    match (surface.apply(*next, &SurfaceOp::Replace { start, end }), range) {
        (Ok(()), Ok(range)) => {
            plain.replace(range, *next);
            *next += 1;
        }
        (Err(_), Err(_)) => assert_eq!(surface.len(), before, "a refused op changes nothing"),
        (found, wanted) => {
            assert_eq!(
                found.is_ok(),
                wanted.is_ok(),
                "replace {start}..{end}: {found:?}, a list says {wanted:?}"
            );
        }
    }
}

fn compare(surface: &Surface, plain: &Plain, next: u64) {
    let found: Vec<u64> = surface.nodes().map(|node| node.seq).collect();
    assert_eq!(found, plain.nodes);
    assert_eq!((surface.len(), surface.is_empty()), (plain.nodes.len(), plain.nodes.is_empty()));
    assert_eq!((surface.head(), surface.tail()), (plain.nodes.first().copied(), plain.nodes.last().copied()));
    let before = std::iter::once(None).chain(plain.nodes.iter().copied().map(Some));
    assert!(surface.nodes().map(|node| node.prev).eq(before.take(found.len())));
    for seq in 0..next {
        assert_eq!(surface.shadowed_by(seq), plain.by.get(&seq).copied(), "who shadows {seq}");
        assert_eq!(surface.contains(seq), plain.nodes.contains(&seq));
        let shadows: Vec<u64> = surface.shadows(seq).collect();
        assert_eq!(&shadows, plain.shadows.get(&seq).unwrap_or(&Vec::new()), "what {seq} shadows");
    }
}
