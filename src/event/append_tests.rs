use std::error::Error as _;

use super::*;
use crate::event::ReplaceError;

fn event(name: &str) -> NewEvent {
    NewEvent::raw(name, r#"{"content":[]}"#).unwrap()
}

fn message() -> NewEvent {
    event("user/message").with_surface_op(SurfaceOp::Append)
}

fn replace(start: u64, end: u64, sources: &[u64]) -> NewEvent {
    event("context/message").with_surface_op(SurfaceOp::Replace { start, end }).with_sources(sources.to_vec())
}

fn refused(event: &NewEvent) -> ErrorKind {
    check_append(5, event, &Surface::new()).unwrap_err().kind()
}

fn order(surface: &Surface) -> Vec<u64> {
    surface.nodes().map(|node| node.seq).collect()
}

#[test]
fn markers_are_where_they_belong_and_nowhere_else() {
    assert_eq!(refused(&event("tool/result")), ErrorKind::Marker);
    assert_eq!(refused(&event("user/message").with_sources(vec![1])), ErrorKind::Marker);
    assert_eq!(refused(&event("x/note").with_surface_op(SurfaceOp::Append)), ErrorKind::Marker);
    assert_eq!(refused(&event("assistant/chunk").with_sources(vec![1])), ErrorKind::Marker);
    check_append(5, &message(), &Surface::new()).unwrap();
    check_append(5, &event("x/note"), &Surface::new()).unwrap();
}

#[test]
fn sources_are_earlier_and_each_once() {
    let check = |name, sources: &[u64]| {
        let event = event(name).with_surface_op(SurfaceOp::Append).with_sources(sources.to_vec());
        let error = check_append(5, &event, &Surface::new()).err()?;
        assert_eq!(error.kind(), ErrorKind::Sources);
        error.source()?.downcast_ref::<SourcesError>().copied()
    };
    assert_eq!(check("user/message", &[]), Some(SourcesError::Empty));
    assert_eq!(check("assistant/message", &[]), None, "an answer without chunks says so (A4)");
    assert_eq!(check("user/message", &[4, 0, 3]), None, "any order");
    assert_eq!(check("user/message", &[0, 5, 1]), Some(SourcesError::NotEarlier { source: 5, seq: 5 }));
    assert_eq!(check("user/message", &[3, 0, 3]), Some(SourcesError::Duplicate { source: 3 }));
}

#[test]
fn the_first_broken_rule_is_the_error() {
    // A replace of what is no event, with sources that are none either: A4 comes before A5.
    assert_eq!(refused(&replace(9, 9, &[9])), ErrorKind::Sources);
    assert_eq!(refused(&replace(9, 9, &[4])), ErrorKind::Replace);
    let bare = event("user/message").with_surface_op(SurfaceOp::Replace { start: 0, end: 0 });
    let mut surface = Surface::new();
    surface.apply(0, &SurfaceOp::Append).unwrap();
    let error = check_append(1, &bare, &surface).unwrap_err();
    assert_eq!(
        error.source().and_then(|source| source.downcast_ref::<ReplaceError>()),
        Some(&ReplaceError::Uncovered { seq: 0 })
    );
}

/// A compaction is one batch: its later events refer to its earlier ones (A6).
#[test]
fn a_batch_sees_its_own_events() {
    let mut surface = Surface::new();
    let mut staged = Staged::begin(&mut surface, 3);
    assert_eq!(staged.push(&message()).unwrap(), 3);
    assert_eq!(staged.push(&event("x/note")).unwrap(), 4);
    assert_eq!(staged.push(&message()).unwrap(), 5);
    assert_eq!(staged.push(&replace(3, 5, &[3, 5])).unwrap(), 6);
    assert_eq!(order(staged.surface()), [6]);
    staged.commit();
    assert_eq!(order(&surface), [6]);
    assert_eq!(surface.shadows(6).collect::<Vec<_>>(), [3, 5]);
}

#[test]
fn a_batch_that_is_not_committed_leaves_nothing() {
    let mut surface = Surface::new();
    for seq in 0..3 {
        surface.apply(seq, &SurfaceOp::Append).unwrap();
    }
    let mut staged = Staged::begin(&mut surface, 3);
    staged.push(&replace(0, 1, &[0, 1])).unwrap();
    staged.push(&message()).unwrap();
    // What was shadowed within the batch is shadowed for the batch.
    let error = staged.push(&replace(1, 2, &[1, 2])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Replace);
    drop(staged);
    assert_eq!(order(&surface), [0, 1, 2]);
    assert_eq!(surface.shadowed_by(1), None);
    assert!(!surface.is_surface_seq(4));
    // The same seqs are free again.
    let mut staged = Staged::begin(&mut surface, 3);
    staged.push(&replace(1, 2, &[1, 2])).unwrap();
    staged.commit();
    assert_eq!(order(&surface), [0, 3]);
}

#[test]
fn no_seq_is_beyond_the_last() {
    let mut surface = Surface::new();
    let error = Staged::begin(&mut surface, u64::MAX).push(&message()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(surface.is_empty());
}

#[test]
fn errors_say_what_to_do() {
    let texts = [
        check_append(5, &event("user/message"), &Surface::new()).unwrap_err().to_string(),
        check_append(5, &message().with_sources(vec![7]), &Surface::new()).unwrap_err().to_string(),
        check_append(5, &replace(2, 2, &[2]), &Surface::new()).unwrap_err().to_string(),
    ];
    assert_eq!(
        texts,
        [
            "a surface event has no surfaceOp; give it \"append\" or a replace",
            "sourceEventSeqs of event 5 names 7, which is not earlier; name earlier events",
            "replace names 2, which is not a surface event; name nodes of the surface",
        ]
    );
}
