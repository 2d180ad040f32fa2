//! Index files, and the parts of an index in the log.

use super::forge::{self, BINDING, INDEX};
use super::input::Input;
use crate::format::index::{IndexFile, SegmentKey, SegmentTable, part};
use crate::format::segment_header::Ending;

/// The longest file that is made of an input, as a multiple of it: counts are cheap to write.
pub(super) const STRETCH: usize = 4;

/// What it is u8 (bit 0: an index part, else an index file; bit 1: to be mended), the bytes.
pub fn index_open(input: &[u8]) {
    let mut input = Input::new(input);
    let what = input.u8();
    if what & 1 != 0 {
        return parts(input);
    }
    let mut bytes = input.rest().to_vec();
    let key = if what & 2 != 0 {
        let longest = bytes.len().saturating_mul(STRETCH).saturating_add(512);
        forge::block_file(&mut bytes, &INDEX, longest);
        key_of(&bytes)
    } else {
        key()
    };
    if let Ok(file) = IndexFile::open(bytes.as_slice(), &key) {
        look_through(&file);
    }
}

fn key() -> SegmentKey {
    SegmentKey { store: BINDING.store, segment: forge::SEGMENT, salt: BINDING.salt }
}

/// The key that the file itself names, so that it is taken.
fn key_of(bytes: &[u8]) -> SegmentKey {
    use crate::format::index::layout::header;
    use crate::format::lsn::StoreId;
    SegmentKey {
        store: StoreId(header::STORE.array(bytes)),
        segment: header::SEGMENT.u32(bytes),
        salt: header::SALT.u64(bytes),
    }
}

/// Asks everything that a file can be asked. After a good `verify` every answer must come.
pub(super) fn look_through(file: &IndexFile<&[u8]>) {
    let good = file.verify().is_ok();
    for part in file.sessions() {
        let Ok(part) = part else {
            assert!(!good, "a verified file has a bad session");
            continue;
        };
        let found = file.session(part.dense);
        assert!(!good || matches!(found, Ok(Some(other)) if other == part), "a session is found by its id");
        let offsets = file.offsets(&part, 0..part.count).map(Iterator::count);
        assert!(!good || matches!(offsets, Ok(count) if count == part.count as usize));
        let _ = file.event_offset(&part, part.count.saturating_sub(1));
        let _ = file.event_offset(&part, u32::MAX);
        let entries = file.structure(&part).map(|entries| entries.filter(Result::is_ok).count());
        assert!(!good || matches!(entries, Ok(count) if count == part.structure_count as usize));
    }
    let others = (file.controls().map(Iterator::count), file.damage().map(Iterator::count));
    assert!(!good || (others.0.is_ok() && others.1.is_ok()), "a verified file gives all it has");
}

/// Parts, each `length u16, bytes, distance in the segment u16`, one after the other. What they add up to makes a sound index file.
fn parts(mut input: Input<'_>) {
    let (mut table, mut at) = (SegmentTable::new(key()), 0u32);
    while !input.is_empty() {
        let len = usize::from(input.u16());
        let payload = input.take(len);
        at = at.saturating_add(input.u16().into());
        let decoded = part::decode(payload);
        let applied = table.apply_part(payload, at);
        assert!(decoded.is_ok() || applied.is_err(), "a part that does not decode is not applied");
    }
    let file = table.to_index(u32::MAX, 1, Ending::Sealed);
    let open = IndexFile::open(file.as_slice(), &key()).expect("what a table writes opens");
    assert_eq!(open.info().events, table.event_count());
    look_through(&open);
}
