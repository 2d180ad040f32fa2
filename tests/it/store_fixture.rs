//! What the tests of the store share: stores on a simulated disk, and small events.

use std::sync::Arc;

use sessionlog::testing::{SeededRuntime, SimDisk};
use sessionlog::{
    CreateOptions, Event, Message, NewEvent, Session, SessionStore, StoreOptions, SurfaceOp, Time,
};

/// A simulated disk with a store on it, used by one thread: waits run the background tasks.
pub(crate) struct Sim {
    pub(crate) disk: SimDisk,
    pub(crate) runtime: Arc<SeededRuntime>,
}

impl Sim {
    pub(crate) fn new(seed: u64) -> Self {
        Self { disk: SimDisk::new(), runtime: Arc::new(SeededRuntime::new(seed)) }
    }

    /// What is on the disk, opened in another process.
    pub(crate) fn on(disk: SimDisk, seed: u64) -> Self {
        Self { disk, runtime: Arc::new(SeededRuntime::new(seed)) }
    }

    pub(crate) fn options(&self) -> StoreOptions {
        StoreOptions::new().disk(Arc::new(self.disk.clone())).runtime(self.runtime.clone())
    }

    pub(crate) fn open(&self) -> SessionStore {
        self.options().open("/sim").unwrap()
    }

    pub(crate) fn read(&self) -> SessionStore {
        self.options().open_read_only("/sim").unwrap()
    }
}

/// A store on a simulated disk, with real threads.
pub(crate) fn threaded() -> (SimDisk, SessionStore) {
    let disk = SimDisk::new();
    let store = threaded_options(&disk).open("/sim").unwrap();
    (disk, store)
}

pub(crate) fn threaded_options(disk: &SimDisk) -> StoreOptions {
    StoreOptions::new().disk(Arc::new(disk.clone()))
}

pub(crate) fn create(store: &SessionStore, id: &str) -> Session {
    store.create(CreateOptions::new().id(id)).unwrap()
}

pub(crate) fn raw(event_type: &str, data: &str) -> NewEvent {
    NewEvent::raw(event_type, data).unwrap()
}

pub(crate) fn user(text: &str) -> NewEvent {
    let data = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"source":{{"kind":"user"}}}}"#);
    raw("user/message", &data).with_surface_op(SurfaceOp::Append)
}

pub(crate) fn replace(start: u64, end: u64, sources: &[u64]) -> NewEvent {
    user("summary").with_surface_op(SurfaceOp::Replace { start, end }).with_sources(sources.to_vec())
}

pub(crate) fn turn_start(turn: u64) -> NewEvent {
    raw("turn/start", &format!(r#"{{"turn":{turn},"trigger":{{"kind":"continuation"}}}}"#))
}

pub(crate) fn turn_end(turn: u64) -> NewEvent {
    raw("turn/end", &format!(r#"{{"turn":{turn},"reason":{{"kind":"completed"}}}}"#))
}

pub(crate) fn step_start(turn: u64, step: u64) -> NewEvent {
    raw("step/start", &format!(r#"{{"turn":{turn},"step":{step}}}"#))
}

pub(crate) fn step_end(turn: u64, step: u64) -> NewEvent {
    raw("step/end", &format!(r#"{{"turn":{turn},"step":{step}}}"#))
}

pub(crate) fn chunk(turn: u64, step: u64, text: &str) -> NewEvent {
    let data = format!(
        r#"{{"turn":{turn},"step":{step},"chunk":{{"type":"text-delta","index":0,"text":"{text}"}}}}"#
    );
    raw("assistant/chunk", &data)
}

/// An assistant/message that calls the tools `calls`.
pub(crate) fn assistant(turn: u64, step: u64, calls: &[&str]) -> NewEvent {
    let blocks: Vec<String> = calls
        .iter()
        .map(|id| format!(r#"{{"type":"tool-call","id":"{id}","name":"ls","arguments":"{{}}"}}"#))
        .collect();
    let text = r#"{"type":"text","text":"hm"}"#.to_owned();
    let content: Vec<String> = std::iter::once(text).chain(blocks).collect();
    let data = format!(r#"{{"turn":{turn},"step":{step},"content":[{}]}}"#, content.join(","));
    raw("assistant/message", &data).with_surface_op(SurfaceOp::Append).with_sources(vec![])
}

pub(crate) fn tool_call(turn: u64, step: u64, id: &str) -> NewEvent {
    let data = format!(r#"{{"turn":{turn},"step":{step},"callId":"{id}","name":"ls","arguments":"{{}}"}}"#);
    raw("tool/call", &data)
}

/// `count` events of one turn whose step streams chunks; it stays open.
pub(crate) fn open_turn(chunks: usize) -> Vec<NewEvent> {
    let mut events = vec![turn_start(1), user("go"), step_start(1, 1)];
    events.extend((0..chunks).map(|n| chunk(1, 1, &format!(" w{n}"))));
    events.push(assistant(1, 1, &["c1", "c2"]));
    events.push(tool_call(1, 1, "c1"));
    events
}

pub(crate) fn at(millis: i64) -> Time {
    Time::from_millis(millis)
}

pub(crate) fn lines(events: impl IntoIterator<Item = sessionlog::Result<Event>>) -> Vec<String> {
    events.into_iter().map(|event| event.unwrap().to_line()).collect()
}

pub(crate) fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(Message::to_line).collect()
}

pub(crate) fn nodes(session: &Session) -> Vec<u64> {
    session.surface().iter().map(|node| node.seq).collect()
}

/// Events as lines of a seed, from new events.
pub(crate) fn seed(events: Vec<NewEvent>) -> Vec<Event> {
    events
        .into_iter()
        .zip(0u64..)
        .map(|(new, seq)| {
            let sources = new.sources().map(<[u64]>::to_vec);
            let mut line = format!(r#"{{"type":"{}","seq":{seq},"time":{}"#, new.event_type(), 1000 + seq);
            line += &format!(r#","data":{}"#, new.data());
            if let Some(sources) = sources {
                line += &format!(r#","sourceEventSeqs":{sources:?}"#).replace(' ', "");
            }
            if let Some(op) = new.surface_op() {
                line += &format!(r#","surfaceOp":{op}"#);
            }
            Event::parse_line(&(line + "}")).unwrap()
        })
        .collect()
}

/// Appends as one batch, waiting for room as long as there is none.
pub(crate) fn append_waiting(store: &SessionStore, session: &Session, batch: &[NewEvent]) {
    let bytes = batch.iter().map(|event| event.data().len() + 64).sum();
    while let Err(error) = session.append_batch(batch.to_vec()) {
        assert!(error.is_backpressure(), "{error}");
        store.wait_for_room(bytes).unwrap();
    }
}
