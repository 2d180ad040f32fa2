//! Whole stores of arbitrary bytes: opened for reading, read, verified, opened for writing, written to, reopened.

use std::sync::Arc;

use super::forge::{self, INDEX, Mend, RUN};
use super::input::Input;
use super::small_store::{Held, open, open_read_only, small_store};
use crate::event::{JsonText, NewEvent};
use crate::format::PAGE;
use crate::testing::{Random, SimDisk};
use crate::{CreateOptions, SessionStore};

/// The files of a store that is given file by file.
const NAMES: [&str; 9] = [
    "CONTROL",
    "LIVE",
    "segments/00000001.seg",
    "segments/00000002.seg",
    "segments/00000001.idx",
    "segments/00000003.prep",
    "directory/0000000000000000-0000000200000000.run",
    "quarantine/00000001-00000200-0000000000000001.cut",
    "LOCK",
];
/// Enough to reach everything, and a bound for sessions that claim to have 2^63 events.
const MOST_EVENTS: usize = 2000;
const MOST_SESSIONS: usize = 200;
/// A file that a patch lengthens gets no longer.
const LONGEST: u64 = 1 << 20;
/// Mending makes a file no longer than this.
const LONGEST_MENDED: usize = 64 << 10;

/// What to start from u8 (0: nothing, else a small store), then: nothing: files, each `name u8, mend u8, length u16,
/// bytes`; a small store: patches, each `file u8, act u8, place u16, length u8, bytes`.
pub fn store_open(input: &[u8]) {
    let mut input = Input::new(input);
    let disk = match input.u8() {
        0 => given(&mut input),
        which => {
            let disk = small_store(which).disk.snapshot();
            patched(&disk, &mut input);
            disk
        }
    };
    examine(&Arc::new(disk));
}

/// Patches without mended checksums to the small store `which`, chosen by `seed`. Whatever is handed out is then what
/// was written (G3), also when several places are hit.
pub fn store_damaged(which: u8, seed: u64) {
    let base = small_store(which);
    let disk = base.disk.snapshot();
    let mut random = Random::new(seed);
    let files = disk.files();
    for _ in 0..=random.below(3) {
        let Some(path) = random.pick(&files) else { continue };
        let len = disk.contents(path).map_or(0, |file| file.len() as u64);
        let at = random.below(len);
        match random.below(6) {
            0 => drop(disk.flip(path, at, 3)),
            1 => drop(disk.zero(path, at..at.saturating_add(random.below(1024)))),
            2 => drop(disk.truncate(path, at)),
            3 => drop(disk.remove(path)),
            4 => drop(disk.fail_reads(path, at..at.saturating_add(1))),
            _ => {
                let mut bytes = [0; 24];
                random.fill(&mut bytes);
                disk.overwrite(path, at, &bytes);
            }
        }
    }
    for (id, lines) in examine(&Arc::new(disk)) {
        // A session whose record of creation is lost gets a name of its own; a lost tombstone brings its session back.
        let nameless = id.starts_with("lost:") || id == "gone";
        let same = |(known, _): &&Held| nameless || *known == id;
        let written: Vec<&Held> = base.sessions.iter().filter(same).collect();
        for line in lines.iter().filter(|line| !line.contains(NOTE)) {
            let known = written.iter().any(|(_, written)| written.contains(line));
            assert!(known, "{id}: never written: {}", line.get(..200).unwrap_or(line));
        }
    }
}

/// A disk with the files that the input spells.
fn given(input: &mut Input<'_>) -> SimDisk {
    let disk = SimDisk::new();
    while !input.is_empty() {
        let (name, mend, len) = (input.u8(), input.u8(), input.u16());
        let mut bytes = input.take(usize::from(len)).to_vec();
        let Some(path) = NAMES.get(usize::from(name) % NAMES.len()) else { continue };
        mend_file(path, &mut bytes, Mend(mend));
        disk.install(path, &bytes);
    }
    disk
}

/// Does what the input says to the files of `disk`.
fn patched(disk: &SimDisk, input: &mut Input<'_>) {
    while !input.is_empty() {
        let files = disk.files();
        let (file, act, place, len) = (input.u8(), input.u8(), input.u16(), input.u8());
        let Some(path) = files.get(usize::from(file) % files.len().max(1)) else { return };
        let (at, len) = (u64::from(place), usize::from(len));
        match act & 7 {
            0 | 1 => drop(disk.overwrite(path, at, input.take(len))),
            2 => drop(disk.zero(path, at..at.saturating_add(len as u64))),
            3 => drop(disk.truncate(path, at.min(LONGEST))),
            4 => drop(disk.remove(path)),
            5 => drop(disk.fail_reads(path, at..at.saturating_add(len as u64))),
            6 => {
                let from = files.get(len % files.len()).and_then(|from| disk.contents(from));
                disk.install(path, &from.unwrap_or_default());
            }
            _ => {
                let mut bytes = disk.contents(path).unwrap_or_default();
                bytes.splice(bytes.len().min(usize::from(place)).., input.take(len).iter().copied());
                disk.install(path, &bytes);
            }
        }
        if act & 8 != 0
            && let Some(mut bytes) = disk.contents(path)
        {
            mend_file(path, &mut bytes, Mend(act >> 4));
            disk.install(path, &bytes);
        }
    }
}

/// Makes the checksums of a file right, by what its name says it is.
fn mend_file(path: &str, bytes: &mut Vec<u8>, mend: Mend) {
    if mend.0 == 0 {
        return;
    }
    match path {
        "CONTROL" => bytes.chunks_mut(PAGE).for_each(forge::sector),
        "LIVE" => forge::tail(bytes),
        _ if path.ends_with(".seg") || path.ends_with(".prep") => forge::segment(bytes, mend),
        _ if path.ends_with(".idx") => {
            let longest = longest_mended(bytes.len());
            forge::block_file(bytes, &INDEX, longest);
        }
        _ if path.ends_with(".run") => {
            let longest = longest_mended(bytes.len());
            forge::block_file(bytes, &RUN, longest);
        }
        _ => {}
    }
}

/// How long mending may make a file of `len` bytes. Files that grew do not grow again, however often they are mended.
fn longest_mended(len: usize) -> usize {
    len.saturating_mul(2).min(LONGEST_MENDED).max(len)
}

/// Reads all of the store, beside no writer and then as the writer, and writes to it. What it handed out.
fn examine(disk: &Arc<SimDisk>) -> Vec<Held> {
    let mut seen = Vec::new();
    if let Ok(reader) = open_read_only(Arc::new(disk.other_process())) {
        seen = read(&reader);
        let _ = reader.verify(&mut |_| {});
        let _ = reader.refresh();
    }
    let Ok(writer) = open(Arc::clone(disk)) else { return seen };
    seen.extend(read(&writer));
    let wrote = write(&writer);
    let known: Vec<String> = seen.iter().map(|(id, _)| id.clone()).collect();
    for id in known.iter().take(MOST_SESSIONS) {
        if let Ok(resumed) = writer.resume(id) {
            let _ = resumed.session.append(note());
        }
    }
    let _ = writer.flush();
    if writer.close().is_err() || !wrote {
        return seen;
    }
    let again = open(Arc::clone(disk)).expect("a store that was closed opens again");
    let session = again.open("fuzz").expect("what was written is there");
    let lines: Vec<_> = session.events().map(|event| event.map(|event| event.to_line())).collect();
    assert!(matches!(lines.as_slice(), [Ok(_), Ok(_)]), "what was acknowledged is read: {lines:?}");
    seen
}

/// Type of the events that are written here.
const NOTE: &str = "fuzz/note";

fn note() -> NewEvent {
    NewEvent::new(NOTE, JsonText::parse("{\"n\":1}").expect("it is JSON"))
}

/// Whether a session could be written; it was not there before.
fn write(store: &SessionStore) -> bool {
    let Ok(session) = store.create(CreateOptions::new().id("fuzz")) else { return false };
    session.append(note()).is_ok() && session.append(note()).is_ok() && session.flush().is_ok()
}

fn read(store: &SessionStore) -> Vec<Held> {
    let mut held = Vec::new();
    let Ok(stored) = store.stored() else { return held };
    for stat in stored.take(MOST_SESSIONS) {
        let Ok(stat) = stat else { continue };
        let Ok(session) = store.open(&stat.id) else { continue };
        let events = session.events().take(MOST_EVENTS);
        let lines = events.filter_map(|event| event.ok().map(|event| event.to_line())).collect();
        let _ = (session.surface(), session.derive_messages(), session.closers());
        let _ = (session.tail(3).count(), session.provenance(5), session.event(u64::MAX));
        held.push((stat.id, lines));
    }
    held
}
