use std::sync::Arc;

use crate::error::ErrorKind;
use crate::event::{Event, Header, NewEvent, SurfaceOp, Time};
use crate::rt::RealRuntime;
use crate::store::{Invariants, MemorySession, Notice};

fn session() -> MemorySession {
    MemorySession::new(Header::new("m", Time::from_millis(1)).unwrap())
}

fn user(text: &str) -> NewEvent {
    let data = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"source":{{"kind":"user"}}}}"#);
    NewEvent::raw("user/message", &data).unwrap().with_surface_op(SurfaceOp::Append)
}

fn replace(start: u64, end: u64, sources: &[u64]) -> NewEvent {
    user("sum").with_surface_op(SurfaceOp::Replace { start, end }).with_sources(sources.to_vec())
}

fn nodes(session: &MemorySession) -> Vec<u64> {
    session.surface().iter().map(|node| node.seq).collect()
}

#[test]
fn positions_decide_not_seqs() {
    let session = session();
    session.append_batch((0..7).map(|n| user(&n.to_string())).collect()).unwrap();
    session.append(replace(1, 4, &[1, 2, 3, 4])).unwrap();
    assert_eq!(nodes(&session), [0, 7, 5, 6]);
    session.append(replace(7, 5, &[5, 7])).unwrap();
    assert_eq!(nodes(&session), [0, 8, 6]);
    let provenance = session.provenance(7).unwrap();
    assert_eq!(provenance.sources, [1, 2, 3, 4]);
    assert_eq!(provenance.shadows, [1, 2, 3, 4]);
    assert_eq!((provenance.shadowed_by, provenance.derived), (Some(8), vec![8]));
}

#[test]
fn a_refused_append_changes_nothing() {
    let session = session();
    session.append_batch(vec![user("a"), user("b"), NewEvent::raw("x/y", "1").unwrap()]).unwrap();
    let cases = [
        (NewEvent::raw("user/message", "{}").unwrap(), ErrorKind::Marker),
        (NewEvent::raw("x/y", "{}").unwrap().with_surface_op(SurfaceOp::Append), ErrorKind::Marker),
        (user("c").with_sources(vec![9]), ErrorKind::Sources),
        (user("c").with_sources(vec![0, 0]), ErrorKind::Sources),
        (user("c").with_sources(vec![]), ErrorKind::Sources),
        (replace(0, 9, &[0, 1]), ErrorKind::Replace),
        (replace(2, 2, &[0, 1]), ErrorKind::Replace),
        (replace(1, 0, &[0, 1]), ErrorKind::Replace),
        (replace(0, 1, &[0]), ErrorKind::Replace),
    ];
    for (event, kind) in cases {
        let error = session.append(event.clone()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        // In a batch, what came before it is taken back too, a replace included.
        let batch = vec![user("x"), replace(0, 1, &[0, 1]), event];
        assert!(session.append_batch(batch).is_err());
        assert_eq!((session.seq(), nodes(&session)), (3, vec![0, 1]));
    }
    session.append(replace(0, 1, &[0, 1])).unwrap();
    assert_eq!(nodes(&session), [3]);
}

#[test]
fn conditional_appends_conflict() {
    let session = session();
    session.append_expecting(0, user("a")).unwrap();
    assert!(session.append_expecting(0, user("b")).unwrap_err().is_conflict());
    assert!(session.append_batch_expecting(2, vec![]).unwrap_err().is_conflict());
    assert_eq!(session.append_batch_expecting(1, vec![]).unwrap(), 1..1);
    assert_eq!(session.seq(), 1);
}

#[test]
fn messages_follow_the_surface_and_are_derived_once() {
    let session = session();
    session.append_batch(vec![user("a"), user("b"), user("c")]).unwrap();
    let lines = |session: &MemorySession| -> Vec<String> {
        session.derive_messages().unwrap().iter().map(crate::event::Message::to_line).collect()
    };
    let before = lines(&session);
    assert_eq!(before[1], r#"{"role":"user","content":[{"type":"text","text":"b"}]}"#);
    session.append(replace(0, 1, &[0, 1])).unwrap();
    let after = lines(&session);
    assert_eq!(after.len(), 2);
    assert_eq!(after[1], before[2]);
    assert!(after[0].contains("sum"));
}

#[test]
fn seeds_are_refused_whole_and_by_name() {
    let header = || Header::new("m", Time::from_millis(1)).unwrap();
    let line = |text: &str| Event::parse_line(text).unwrap();
    let good = line(r#"{"type":"x/y","seq":0,"time":1,"data":{}}"#);
    let gap = line(r#"{"type":"x/y","seq":2,"time":1,"data":{}}"#);
    let error = MemorySession::with_seed(header(), vec![good.clone(), gap]).unwrap_err();
    assert!(error.to_string().contains("event 1 of the seed has seq 2"), "{error}");
    let late = line(
        r#"{"type":"user/message","seq":1,"time":1,"data":{},"sourceEventSeqs":[1],"surfaceOp":"append"}"#,
    );
    let error = MemorySession::with_seed(header(), vec![good.clone(), late]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Sources);
    assert!(error.to_string().contains("event 1 is refused"), "{error}");
    let bare = line(r#"{"type":"user/message","seq":1,"time":1,"data":{}}"#);
    assert_eq!(
        MemorySession::with_seed(header(), vec![good.clone(), bare]).unwrap_err().kind(),
        ErrorKind::Marker
    );
    // Rules I5 to I10 refuse nothing: this lies outside any turn.
    let session = MemorySession::with_seed(header(), vec![good]).unwrap();
    assert_eq!(session.seq(), 1);
}

#[test]
fn a_seed_keeps_its_lines() {
    let text = r#"{"seq":0, "type":"x/y","time":1.50,"data":{"a":1e2},"later":[1]}"#;
    let seed = vec![Event::parse_line(text).unwrap()];
    let session = MemorySession::with_seed(Header::new("m", Time::from_millis(1)).unwrap(), seed).unwrap();
    assert_eq!(session.event(0).unwrap().to_line(), text);
}

#[test]
fn invariants_refuse_only_when_asked() {
    let build = |policy| {
        let header = Header::new("m", Time::from_millis(1)).unwrap();
        MemorySession::build(header, vec![], policy, Arc::new(RealRuntime::new())).unwrap()
    };
    let end = || NewEvent::raw("turn/end", r#"{"turn":1,"reason":{"kind":"completed"}}"#).unwrap();
    let start = || NewEvent::raw("turn/start", r#"{"turn":1,"trigger":{"kind":"continuation"}}"#).unwrap();
    build(Invariants::Off).append(end()).unwrap();
    build(Invariants::Report).append(end()).unwrap();
    let strict = build(Invariants::Refuse);
    let error = strict.append(end()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invariant);
    // The whole batch is taken back from the checker too: the turn is not open afterwards.
    let error = strict.append_batch(vec![start(), start()]).unwrap_err();
    assert!(error.to_string().starts_with("I5"), "{error}");
    strict.append_batch(vec![start(), end()]).unwrap();
    assert_eq!(strict.seq(), 2);
}

#[test]
fn subscribers_hear_of_appends() {
    let session = session();
    let feed = session.subscribe(2);
    session.append_batch(vec![user("a"), user("b"), user("c")]).unwrap();
    let seqs: Vec<_> = std::iter::from_fn(|| feed.try_recv()).collect();
    assert!(
        matches!(&seqs[..], [Notice::Event(a), Notice::Event(b), Notice::Lagged(1)] if a.seq() == 0 && b.seq() == 1)
    );
}

#[test]
fn reading_takes_a_snapshot() {
    let session = session();
    session.append_batch(vec![user("a"), user("b"), user("c")]).unwrap();
    let all = session.events();
    session.append(user("d")).unwrap();
    assert_eq!(all.map(|event| event.unwrap().seq()).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(session.tail(2).map(|event| event.unwrap().seq()).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(session.read_from(9).count(), 0);
    assert!(session.event(4).unwrap_err().is_not_found());
}
