//! Small stores to damage: made once, of every kind of record, and copied for each input.

use std::sync::{Arc, LazyLock};

use crate::event::{Event, JsonText, NewEvent};
use crate::testing::{SeededRuntime, SimDisk};
use crate::{
    CreateOptions, Durability, ForkOptions, MIN_SEGMENT_BYTES, Result, Session, SessionStore, StoreOptions,
};

/// A session with a turn, chunks, tools, a message and a replacement.
const LINES: &str = include_str!("session.jsonl");

/// What a session holds: its id, and its events' lines.
pub(super) type Held = (String, Vec<String>);

/// A store to damage.
pub(super) struct SmallStore {
    pub(super) disk: SimDisk,
    /// Its sessions as written.
    pub(super) sessions: Vec<Held>,
}

/// Each kind once: closed; left open by a process that died; with sealed segments and indexes.
static STORES: LazyLock<[SmallStore; 3]> = LazyLock::new(|| [closed(), left_open(), sealed()]);

/// The store number `which`, modulo how many there are.
pub(super) fn small_store(which: u8) -> &'static SmallStore {
    let [closed, left_open, sealed] = &*STORES;
    match which % 3 {
        0 => closed,
        1 => left_open,
        _ => sealed,
    }
}

/// How all stores here are opened: the smallest segments and buffers, no threads, one seed.
fn options(disk: Arc<SimDisk>) -> StoreOptions {
    StoreOptions::new()
        .segment_bytes(MIN_SEGMENT_BYTES)
        .unflushed_bytes(64 << 10)
        .runtime(Arc::new(SeededRuntime::new(1)))
        .disk(disk)
}

/// Opens the store on `disk` for writing, or makes one.
pub(super) fn open(disk: Arc<SimDisk>) -> Result<SessionStore> {
    options(disk).open("")
}

/// Opens the store on `disk` for reading.
pub(super) fn open_read_only(disk: Arc<SimDisk>) -> Result<SessionStore> {
    options(disk).open_read_only("")
}

/// What the text of a fixed session becomes: the events to append.
fn events() -> impl Iterator<Item = NewEvent> {
    LINES
        .lines()
        .map(|line| NewEvent::from_event(Event::parse_line(line).expect("the bundled lines are events")))
}

fn record(session: &Session) {
    let events: Vec<NewEvent> = events().collect();
    let (first, rest) = events.split_at_checked(3).unwrap_or_default();
    session.append_batch(first.to_vec()).expect("the bundled events keep the rules");
    session.flush_to(Durability::Durable).expect("a sound disk takes all");
    for event in rest {
        session.append(event.clone()).expect("the bundled events keep the rules");
    }
    session.flush_to(Durability::Durable).expect("a sound disk takes all");
}

fn create(store: &SessionStore, id: &str) -> Session {
    store.create(CreateOptions::new().id(id)).expect("a sound store takes a new session")
}

/// Some sessions, one of them a fork, one deleted, one with a line that is kept word for word.
fn fill(store: &SessionStore) {
    let first = create(store, "first");
    record(&first);
    let gone = create(store, "gone");
    record(&gone);
    drop(gone);
    store.delete("gone").expect("it is there");
    let fork = store.fork("first", ForkOptions::new().at(7).id("fork")).expect("no turn is open there");
    let odd = r#"{"seq":8, "type":"odd","time":1.50,"data":[1, "\ud800"],"more":null}"#;
    let odd = NewEvent::from_event(Event::parse_line(odd).expect("it is an event"));
    fork.append(odd).expect("any type is taken");
    create(store, "empty");
    store.flush().expect("a sound disk takes all");
}

fn of_disk(disk: SimDisk) -> SmallStore {
    let store = open_read_only(Arc::new(disk.snapshot())).expect("a sound store opens");
    let mut sessions = Vec::new();
    for stat in store.stored().expect("a sound store lists") {
        let id = stat.expect("a sound store lists").id;
        let events = store.open(&id).expect("it was listed").events();
        let lines = events.map(|event| event.expect("a sound store reads").to_line()).collect();
        sessions.push((id, lines));
    }
    SmallStore { disk, sessions }
}

fn closed() -> SmallStore {
    let disk = Arc::new(SimDisk::new());
    let store = open(Arc::clone(&disk)).expect("a new store opens");
    fill(&store);
    store.close().expect("a sound disk takes all");
    of_disk(disk.snapshot())
}

fn left_open() -> SmallStore {
    let disk = Arc::new(SimDisk::new());
    let store = open(Arc::clone(&disk)).expect("a new store opens");
    fill(&store);
    let late = create(&store, "late");
    events().take(5).for_each(|event| drop(late.append(event)));
    late.flush_to(Durability::Written).expect("a sound disk takes all");
    of_disk(disk.snapshot().kill())
}

fn sealed() -> SmallStore {
    let disk = Arc::new(SimDisk::new());
    let store = open(Arc::clone(&disk)).expect("a new store opens");
    fill(&store);
    let long = create(&store, "long");
    for number in 0..12u32 {
        let text = format!("{{\"n\":{number},\"text\":\"{}\"}}", "a long text ".repeat(800));
        let data = JsonText::parse(&text).expect("it is JSON");
        while let Err(error) = long.append(NewEvent::new("note", data.clone())) {
            assert!(error.is_backpressure(), "{error}");
            store.wait_for_room(data.len()).expect("there is room on a sound disk");
        }
        long.flush().expect("a sound disk takes all");
    }
    record(&create(&store, "second"));
    store.close().expect("a sound disk takes all");
    of_disk(disk.snapshot())
}
