//! JSONL files: judged, imported into a store, and read back.

use std::sync::Arc;

use super::small_store::open;
use crate::Durability;
use crate::event::Checker;
use crate::interop::Ending;
use crate::interop::jsonl::Reader;
use crate::testing::SimDisk;

/// A session's file.
pub fn jsonl_import(input: &[u8]) {
    let Ok(mut reader) = Reader::new(input, "input.jsonl") else { return };
    let header = reader.header().clone();
    let mut checker = Checker::new();
    while let Ok(Some(_)) = reader.check_next(&mut checker) {}
    let Ok(verdict) = reader.finish() else { return };
    assert!(verdict.kept_bytes <= verdict.total_bytes && verdict.total_bytes == input.len() as u64);
    let mut reader = Reader::new(input, "input.jsonl").expect("it was read before");
    let store = open(Arc::new(SimDisk::new())).expect("a new store opens");
    let Ok(mut import) = store.import(header.clone()) else { return };
    let mut lines = vec![header.to_line()];
    while let Ok(Some(event)) = reader.next_event() {
        if import.push(&event).is_err() {
            return;
        }
        lines.push(event.to_line());
    }
    if lines.len() as u64 != verdict.events + 1 {
        return;
    }
    import.publish(Durability::Durable).expect("what was pushed is published");
    let session = store.open(header.id()).expect("what was published is there");
    let stored = std::iter::once(session.header().to_line())
        .chain(session.events().map(|event| event.expect("what was published is read").to_line()));
    assert!(stored.eq(lines.iter().cloned()), "a session comes back as it was");
    let _ = (session.surface(), session.derive_messages(), session.closers());
    if verdict.packed_rows == 0 && verdict.ending == Ending::Whole {
        let file: Vec<u8> = lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect();
        assert_eq!(file, input, "a whole file comes back byte for byte");
    }
}
