use proptest::prelude::*;

use super::*;

fn replace(start: u64, end: u64) -> SurfaceOp {
    SurfaceOp::Replace { start, end }
}

fn appended(seqs: &[u64]) -> Surface {
    let mut surface = Surface::new();
    for &seq in seqs {
        surface.apply(seq, &SurfaceOp::Append).unwrap();
    }
    surface
}

fn order(surface: &Surface) -> Vec<u64> {
    surface.nodes().map(|node| node.seq).collect()
}

/// Links both ways, ends, length and lookups agree with the walk from the head.
fn assert_sound(surface: &Surface) {
    let nodes: Vec<SurfaceNode> = surface.nodes().collect();
    assert_eq!(nodes.len(), surface.len());
    assert_eq!(nodes.is_empty(), surface.is_empty());
    assert_eq!(surface.head(), nodes.first().map(|node| node.seq));
    assert_eq!(surface.tail(), nodes.last().map(|node| node.seq));
    for (i, node) in nodes.iter().enumerate() {
        assert_eq!(node.prev, i.checked_sub(1).map(|i| nodes[i].seq));
        assert_eq!(node.next, nodes.get(i + 1).map(|node| node.seq));
        assert_eq!(surface.node(node.seq), Some(*node));
        assert_eq!(surface.shadowed_by(node.seq), None);
        for shadowed in surface.shadows(node.seq) {
            assert_eq!(surface.shadowed_by(shadowed), Some(node.seq));
            assert_eq!(surface.node(shadowed), None);
        }
    }
    let mut last = None;
    for node in &nodes {
        let position = surface.find(node.seq).and_then(|id| surface.slot(id)).map(|slot| slot.position);
        assert!(position > last, "positions ascend along the surface");
        last = position;
    }
}

#[test]
fn an_empty_surface_has_nothing() {
    let surface = Surface::new();
    assert_sound(&surface);
    assert_eq!((surface.head(), surface.tail(), surface.node(0)), (None, None, None));
    assert_eq!(surface.shadows(0).count(), 0);
}

#[test]
fn a_replacement_stands_where_its_range_stood() {
    let mut surface = appended(&[1, 2, 4, 5, 6]);
    surface.apply(7, &replace(1, 4)).unwrap();
    assert_eq!(order(&surface), [7, 5, 6]);
    assert_eq!(surface.shadows(7).collect::<Vec<_>>(), [1, 2, 4]);
    // Legal by position though descending as numbers (A5).
    surface.check_replace(7, 5, &[5, 7], 8).unwrap();
    surface.apply(8, &replace(7, 5)).unwrap();
    assert_eq!(order(&surface), [8, 6]);
    assert_eq!(surface.shadows(8).collect::<Vec<_>>(), [7, 5]);
    assert_eq!(surface.shadows(7).collect::<Vec<_>>(), [1, 2, 4], "what a shadowed node shadows stays known");
    assert_eq!(surface.shadowed_by(2), Some(7));
    assert_eq!(surface.shadowed_by(7), Some(8));
    assert_sound(&surface);
    surface.apply(9, &replace(8, 6)).unwrap();
    assert_eq!(order(&surface), [9]);
    surface.apply(10, &SurfaceOp::Append).unwrap();
    assert_eq!(order(&surface), [9, 10]);
    assert_sound(&surface);
}

#[test]
fn refusals_come_in_the_order_of_a5() {
    let mut surface = appended(&[1, 2, 4, 5, 6]);
    surface.apply(7, &replace(2, 4)).unwrap();
    let check = |start, end, sources: &[u64]| surface.check_replace(start, end, sources, 9);
    // Each case also breaks every later rule it can.
    assert_eq!(check(3, 9, &[]), Err(ReplaceError::UnknownSeq { seq: 9 }));
    assert_eq!(check(u64::MAX, 3, &[]), Err(ReplaceError::UnknownSeq { seq: u64::MAX }));
    assert_eq!(check(2, 3, &[]), Err(ReplaceError::NotSurface { seq: 3 }));
    assert_eq!(check(8, 2, &[]), Err(ReplaceError::NotSurface { seq: 8 }));
    assert_eq!(check(6, 4, &[]), Err(ReplaceError::AlreadyShadowed { seq: 4, by: 7 }));
    assert_eq!(check(2, 1, &[]), Err(ReplaceError::AlreadyShadowed { seq: 2, by: 7 }));
    assert_eq!(check(5, 7, &[]), Err(ReplaceError::Reversed { start: 5, end: 7 }));
    assert_eq!(check(1, 5, &[5, 1]), Err(ReplaceError::Uncovered { seq: 7 }));
    assert_eq!(check(1, 5, &[]), Err(ReplaceError::Uncovered { seq: 1 }));
    assert_eq!(check(1, 5, &[0, 5, 7, 1]), Ok(()));
}

#[test]
fn a_failed_fold_changes_nothing() {
    let mut surface = appended(&[1, 2, 4]);
    surface.apply(5, &replace(1, 2)).unwrap();
    let before: Vec<SurfaceNode> = surface.nodes().collect();
    for op in [replace(9, 9), replace(3, 3), replace(1, 4), replace(4, 5)] {
        assert!(surface.apply(6, &op).is_err());
        assert_eq!(surface.nodes().collect::<Vec<_>>(), before);
        assert_eq!(surface.shadows(6).count(), 0);
        assert!(!surface.is_surface_seq(6));
    }
    for seq in [0, 5] {
        assert_eq!(surface.apply(seq, &SurfaceOp::Append), Err(SurfaceError::OutOfOrder { seq, last: 5 }));
    }
    assert_sound(&surface);
    surface.apply(6, &replace(5, 4)).unwrap();
    assert_eq!(order(&surface), [6]);
}

/// S2: neither the log nor the surface counts, only what is shadowed; refusals included.
#[test]
fn a_replace_visits_as_many_nodes_as_it_shadows() {
    const NODES: u64 = 100_000;
    let mut surface = appended(&(0..NODES).map(|n| n * 50).collect::<Vec<_>>());
    assert_eq!(surface.visited(), 0);
    let mut spent = 0;
    let mut visits = |surface: &Surface| {
        let now = surface.visited() - spent;
        spent = surface.visited();
        now
    };
    let next = NODES * 50;
    let seq = |place: u64| place * 50;
    for (first, last) in [(0, 0), (50_000, 50_009), (99_999, 99_999), (10, 1_009)] {
        let sources: Vec<u64> = (first..=last).map(seq).collect();
        surface.check_replace(seq(first), seq(last), &sources, next).unwrap();
        assert_eq!(visits(&surface), last - first + 1);
    }
    // Refused: the ends are looked up and compared without a walk, and coverage stops at the first gap.
    assert!(surface.check_replace(seq(99_999), seq(0), &[], next).is_err());
    assert!(surface.check_replace(seq(3), 51, &[], next).is_err());
    assert!(surface.check_replace(seq(3), next, &[], next).is_err());
    assert_eq!(visits(&surface), 0);
    assert!(surface.check_replace(seq(0), seq(99_999), &[0, 50], next).is_err());
    assert_eq!(visits(&surface), 3);
    assert!(surface.apply(next, &replace(seq(99_999), seq(0))).is_err());
    assert_eq!(visits(&surface), 0);
    surface.apply(next, &replace(seq(40), seq(49))).unwrap();
    assert_eq!(visits(&surface), 10);
}

#[test]
fn a_roll_back_is_exact() {
    let mut surface = appended(&[1, 2, 4, 5]);
    surface.apply(6, &replace(2, 4)).unwrap();
    let before = surface.clone();
    let mark = surface.mark();
    surface.apply(7, &SurfaceOp::Append).unwrap();
    surface.apply(8, &replace(6, 7)).unwrap();
    surface.apply(9, &replace(1, 8)).unwrap();
    surface.apply(10, &SurfaceOp::Append).unwrap();
    assert_eq!(order(&surface), [9, 10]);
    surface.roll_back(mark);
    assert_same(&surface, &before);
}

fn assert_same(surface: &Surface, other: &Surface) {
    assert_sound(surface);
    assert_eq!(surface.nodes().collect::<Vec<_>>(), other.nodes().collect::<Vec<_>>());
    for slot in &other.slots {
        assert_eq!(surface.shadowed_by(slot.seq), other.shadowed_by(slot.seq));
        assert!(surface.shadows(slot.seq).eq(other.shadows(slot.seq)));
    }
    assert_eq!(surface.slots.len(), other.slots.len());
}

#[test]
fn replace_errors_say_what_to_do() {
    let texts = [
        ReplaceError::UnknownSeq { seq: 9 }.to_string(),
        ReplaceError::NotSurface { seq: 3 }.to_string(),
        ReplaceError::AlreadyShadowed { seq: 4, by: 7 }.to_string(),
        ReplaceError::Reversed { start: 5, end: 7 }.to_string(),
        ReplaceError::Uncovered { seq: 2 }.to_string(),
    ];
    assert_eq!(
        texts,
        [
            "replace names 9, which is no event of this log yet; name nodes of the surface",
            "replace names 3, which is not a surface event; name nodes of the surface",
            "replace names 4, which is already shadowed by 7; name 7 or what stands for it now",
            "replace names 5..7, but 5 stands behind 7 on the surface; swap the ends",
            "replace shadows 2, which its sources do not name; add 2 to sourceEventSeqs",
        ]
    );
}

/// The rule of S1 and A5 written as plainly as it can be.
#[derive(Default)]
struct Model {
    next_seq: u64,
    list: Vec<u64>,
    shadowed: Vec<(u64, u64)>,
}

impl Model {
    fn replace(&mut self, start: u64, end: u64, sources: &[u64]) -> Result<(), ReplaceError> {
        let seq = self.next_seq;
        let ends = [start, end];
        let shadower = |seq| self.shadowed.iter().find(|s| s.0 == seq).map(|s| s.1);
        if let Some(&seq) = ends.iter().find(|&&end| end >= seq) {
            return Err(ReplaceError::UnknownSeq { seq });
        }
        if let Some(&seq) = ends.iter().find(|&&end| !self.list.contains(&end) && shadower(end).is_none()) {
            return Err(ReplaceError::NotSurface { seq });
        }
        if let Some((seq, by)) = ends.iter().find_map(|&end| Some((end, shadower(end)?))) {
            return Err(ReplaceError::AlreadyShadowed { seq, by });
        }
        let place = |seq| self.list.iter().position(|&node| node == seq).unwrap();
        let (first, last) = (place(start), place(end));
        if first > last {
            return Err(ReplaceError::Reversed { start, end });
        }
        if let Some(&seq) = self.list[first..=last].iter().find(|node| !sources.contains(node)) {
            return Err(ReplaceError::Uncovered { seq });
        }
        self.shadowed.extend(self.list.splice(first..=last, [seq]).map(|node| (node, seq)));
        self.next_seq += 1;
        Ok(())
    }
}

/// What a random caller does; numbers are taken modulo what is there, so that most replaces are legal.
#[derive(Debug, Clone)]
enum Step {
    Other,
    Append,
    /// Ends picked by position; `missing` leaves a source out.
    Range {
        from: usize,
        len: usize,
        missing: Option<usize>,
    },
    /// Ends picked as numbers, nearly always wrong.
    Wild {
        start: u64,
        end: u64,
    },
    /// Everything up to the next such step is rolled back.
    Stage,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Other),
        6 => Just(Step::Append),
        3 => (any::<usize>(), 0..6_usize, proptest::option::weighted(0.2, any::<usize>()))
            .prop_map(|(from, len, missing)| Step::Range { from, len, missing }),
        1 => (0..80_u64, 0..80_u64).prop_map(|(start, end)| Step::Wild { start, end }),
        1 => Just(Step::Stage),
    ]
}

proptest! {
    #[test]
    fn it_behaves_like_a_plain_list(steps in proptest::collection::vec(step(), 0..80)) {
        let mut model = Model::default();
        let mut surface = Surface::new();
        let mut staged: Option<(Model, Surface)> = None;
        for step in steps {
            let seq = model.next_seq;
            let (start, end, sources) = match step {
                Step::Other => { model.next_seq += 1; continue; }
                Step::Append => {
                    surface.apply(seq, &SurfaceOp::Append).unwrap();
                    model.list.push(seq);
                    model.next_seq += 1;
                    continue;
                }
                Step::Stage => {
                    let copy = Model {
                        next_seq: model.next_seq,
                        list: model.list.clone(),
                        shadowed: model.shadowed.clone(),
                    };
                    if let Some((before, surface_before)) = staged.replace((copy, surface.clone())) {
                        let mark = surface_before.mark();
                        surface.roll_back(mark);
                        assert_same(&surface, &surface_before);
                        model = before;
                        staged = None;
                    }
                    continue;
                }
                Step::Range { from, len, missing } => {
                    if model.list.is_empty() { continue; }
                    let from = from % model.list.len();
                    let to = (from + len).min(model.list.len() - 1);
                    let (start, end) = (model.list[from], model.list[to]);
                    let mut sources = model.list[from..=to].to_vec();
                    if let Some(missing) = missing {
                        sources.remove(missing % sources.len());
                    }
                    (start, end, sources)
                }
                Step::Wild { start, end } => (start, end, model.list.clone()),
            };
            let checked = surface.check_replace(start, end, &sources, seq);
            prop_assert_eq!(checked, model.replace(start, end, &sources));
            if checked.is_ok() {
                surface.apply(seq, &SurfaceOp::Replace { start, end }).unwrap();
            }
            prop_assert_eq!(order(&surface), model.list.clone());
            for &(shadowed, by) in &model.shadowed {
                prop_assert_eq!(surface.shadowed_by(shadowed), Some(by));
            }
            let shadows: Vec<u64> =
                model.shadowed.iter().filter(|pair| pair.1 == seq).map(|pair| pair.0).collect();
            if checked.is_ok() {
                prop_assert_eq!(surface.shadows(seq).collect::<Vec<_>>(), shadows);
            }
            assert_sound(&surface);
        }
    }
}
