//! Sessions through their files and back: store → JSONL → store, forks included, in either order.

use std::sync::Arc;

use super::grammar;
use super::input::Input;
use super::small_store::open;
use crate::event::{Event, Header, NewEvent, Time};
use crate::interop::jsonl::Reader;
use crate::testing::SimDisk;
use crate::{CreateOptions, Durability, ForkOptions, Published, SessionStore};

const MOST_EVENTS: u64 = 120;
/// The parent, its child, and one that has nothing to do with them.
const IDS: [&str; 3] = ["parent", "child", "other"];

/// Where the fork is u8, the order of the files u8, then the grammar of events.
pub fn round_trip(input: &[u8]) {
    let mut input = Input::new(input);
    let (cut, order) = (input.u8(), input.u8());
    let store = open(Arc::new(SimDisk::new())).expect("a new store opens");
    written(&store, cut, &mut input);
    let mut files: Vec<(&str, Vec<u8>)> =
        IDS.into_iter().filter_map(|id| Some((id, file(&store, id)?))).collect();
    let turns = usize::from(order) % files.len().max(1);
    files.rotate_left(turns);
    let second = open(Arc::new(SimDisk::new())).expect("a new store opens");
    for (id, file) in &files {
        let published = import(&second, file);
        assert!(
            !matches!(published, Published::Unchanged { .. } | Published::Extended { .. }),
            "{id}: {published:?}"
        );
    }
    for (id, written) in &files {
        assert_eq!(file(&second, id).as_ref(), Some(written), "{id} comes back byte for byte");
        assert!(
            matches!(import(&second, written), Published::Unchanged { .. }),
            "{id}: once is as good as twice"
        );
        let both = [&store, &second].map(|store| store.open(id).expect("it was just read"));
        let messages = both.each_ref().map(|session| session.derive_messages().ok());
        let [one, other] = both.map(|session| session.surface().ok());
        assert_eq!(one, other, "{id}: the same surface");
        let [one, other] = messages;
        assert_eq!(one, other, "{id}: the same messages");
    }
}

/// Fills `store` with what it takes of the grammar's events.
fn written(store: &SessionStore, cut: u8, input: &mut Input<'_>) {
    let create = |id: &str| {
        let options =
            CreateOptions::new().id(id).cwd("/work").created_at(Time::from_millis(1_788_255_000_000));
        store.create(options).expect("a sound store takes a new session")
    };
    let (parent, other) = (create("parent"), create("other"));
    let mut child = None;
    for number in 0..MOST_EVENTS {
        if input.is_empty() {
            break;
        }
        if number == u64::from(cut) {
            let options = ForkOptions::new().id("child").close_open_turn(true);
            child = store.fork("parent", options.created_at(Time::from_millis(7))).ok();
        }
        let session = match input.u8() % 3 {
            0 => &other,
            1 => child.as_ref().unwrap_or(&parent),
            _ => &parent,
        };
        let Ok(event) = Event::parse_line(&grammar::event_line(input, session.seq())) else { continue };
        while let Err(error) = session.append(NewEvent::from_event(event.clone())) {
            if !error.is_backpressure() {
                break;
            }
            store.wait_for_room(event.data().len()).expect("there is room on a sound disk");
        }
    }
    store.flush().expect("a sound disk takes all");
}

/// The session's file.
fn file(store: &SessionStore, id: &str) -> Option<Vec<u8>> {
    let session = store.open(id).ok()?;
    let mut text = session.header().to_line();
    text.push('\n');
    let mut events = session.events();
    while let Some(line) = events.next_line(&mut text) {
        line.expect("a sound store reads");
        text.push('\n');
    }
    Some(text.into_bytes())
}

fn import(store: &SessionStore, file: &[u8]) -> Published {
    let mut reader = Reader::new(file, "session.jsonl").expect("a file that was written has a header");
    let header: Header = reader.header().clone();
    let mut import = store.import(header).expect("the session may come in");
    while let Some(event) = reader.next_event().expect("a file that was written reads") {
        import.push(&event).expect("what one store took, another one takes");
    }
    import.publish(Durability::Durable).expect("what was pushed is published")
}
