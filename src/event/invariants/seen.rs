//! Which seqs a log has had: one range as long as they are contiguous, one more for each gap.

/// Ranges of seqs, ascending, apart from one another; ends excluded.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen(Vec<(u64, u64)>);

impl Seen {
    /// The seq behind the highest one.
    pub(super) fn next(&self) -> u64 {
        self.0.last().map_or(0, |range| range.1)
    }

    pub(super) fn contains(&self, seq: u64) -> bool {
        let behind = self.0.partition_point(|range| range.0 <= seq);
        behind.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|range| seq < range.1)
    }

    /// A seq below the highest is let go: it was reported, and a log that has it twice still has it once.
    pub(super) fn add(&mut self, seq: u64) {
        let after = seq.saturating_add(1);
        match self.0.last_mut() {
            Some(range) if range.1 == seq => range.1 = after,
            Some(range) if range.1 > seq => {}
            _ => self.0.push((seq, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_not_seen() {
        let mut seen = Seen::default();
        assert_eq!((seen.next(), seen.contains(0)), (0, false));
        for seq in [0, 1, 2, 5, 6, 1, 9] {
            seen.add(seq);
        }
        let found: Vec<u64> = (0..12).filter(|&seq| seen.contains(seq)).collect();
        assert_eq!(found, [0, 1, 2, 5, 6, 9]);
        assert_eq!((seen.next(), seen.0.len()), (10, 3));
        seen.add(u64::MAX);
        assert_eq!(seen.next(), u64::MAX);
    }
}
