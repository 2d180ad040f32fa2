//! Writing a run, and merging runs into one.

use std::ops::Deref;

use super::entry::{self, DirEntry, Fixed};
use super::layout::{BLOCKS, ENTRY_LEN, by_dense, header};
use super::run::RunFile;
use super::{IdHash, RunKey, id_hash};
use crate::error::Error;
use crate::format::blocks::{BlockWriter, FileFault, Sink, in_memory};

/// Collects the entries of a run, in any order. Holds each id and header once.
#[derive(Debug)]
pub(crate) struct RunBuilder {
    key: RunKey,
    next_dense: u64,
    fixed: Vec<[u8; ENTRY_LEN]>,
    hashes: Vec<(IdHash, u64)>,
    children: Vec<(u64, u64)>,
    heap: Vec<u8>,
}

impl RunBuilder {
    /// A run over the range of `key`. `next_dense` is above every id handed out up to its end.
    pub(crate) fn new(key: RunKey, next_dense: u64) -> Self {
        Self {
            key,
            next_dense,
            fixed: Vec::new(),
            hashes: Vec::new(),
            children: Vec::new(),
            heap: Vec::new(),
        }
    }

    /// Adds a session; each dense id once.
    pub(crate) fn push(&mut self, entry: &DirEntry) {
        let fixed = Fixed { heap_at: self.heap.len() as u64, ..lengths(entry) };
        self.fixed.push(entry::encode(entry, fixed));
        self.hashes.push((id_hash(&entry.id), entry.dense));
        self.heap.extend_from_slice(entry.id.as_bytes());
        self.heap.extend_from_slice(entry.header_json.as_bytes());
        self.children.extend(children_of(entry));
    }

    /// The file's bytes.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.fixed.sort_unstable_by_key(|e| by_dense::DENSE.u64(e));
        self.hashes.sort_unstable();
        self.children.sort_unstable();
        let sections =
            Sections { hashes: self.hashes, children: self.children, heap_len: self.heap.len() as u64 };
        in_memory(|sink| {
            let mut w = sections.begin(&self.key, self.next_dense, sink);
            self.fixed.iter().for_each(|entry| w.put(entry));
            sections.end(&mut w);
            w.put(&self.heap);
            w.finish(&BLOCKS)
        })
    }
}

/// Goes through the entries of a run.
pub(crate) type Entries<'a> = &'a dyn Fn(&mut dyn FnMut(&DirEntry));

/// Writes a run of the entries that `each` goes through, ascending by dense id and every time the same ones: it is asked
/// three times, so that a run takes little memory however many sessions it is about.
///
/// # Errors
/// What `sink` returns.
pub(crate) fn write_run(
    key: &RunKey,
    next_dense: u64,
    count: usize,
    each: Entries<'_>,
    sink: Sink<'_>,
) -> Result<(), Error> {
    let mut sections = Sections { hashes: Vec::with_capacity(count), children: Vec::new(), heap_len: 0 };
    each(&mut |entry| {
        sections.hashes.push((id_hash(&entry.id), entry.dense));
        sections.children.extend(children_of(entry));
        sections.heap_len = sections.heap_len.saturating_add(in_heap(entry));
    });
    sections.hashes.sort_unstable();
    sections.children.sort_unstable();
    let mut w = sections.begin(key, next_dense, sink);
    let mut heap_at = 0u64;
    each(&mut |entry| {
        w.put(&entry::encode(entry, Fixed { heap_at, ..lengths(entry) }));
        heap_at = heap_at.saturating_add(in_heap(entry));
    });
    sections.end(&mut w);
    each(&mut |entry| {
        w.put(entry.id.as_bytes());
        w.put(entry.header_json.as_bytes());
    });
    w.finish(&BLOCKS)
}

/// Bytes that an entry takes in the heap.
fn in_heap(entry: &DirEntry) -> u64 {
    (entry.id.len() as u64).saturating_add(entry.header_json.len() as u64)
}

/// The lengths of its texts. Ids and headers were held against limits far below 32 bits before they were stored.
fn lengths(entry: &DirEntry) -> Fixed {
    let len = |text: &str| u32::try_from(text.len()).unwrap_or(u32::MAX);
    Fixed { heap_at: 0, id_len: len(&entry.id), header_len: len(&entry.header_json) }
}

/// The sections around the entries by dense id.
struct Sections {
    hashes: Vec<(IdHash, u64)>,
    children: Vec<(u64, u64)>,
    heap_len: u64,
}

impl Sections {
    /// Everything before the entries.
    fn begin<'s>(&self, key: &RunKey, next_dense: u64, sink: Sink<'s>) -> BlockWriter<'s> {
        let mut w = BlockWriter::new(&BLOCKS, key.store, sink);
        w.set(header::FROM, &key.from.0.to_le_bytes());
        w.set(header::TO, &key.to.0.to_le_bytes());
        w.set(header::ENTRY_COUNT, &(self.hashes.len() as u64).to_le_bytes());
        w.set(header::CHILD_COUNT, &(self.children.len() as u64).to_le_bytes());
        w.set(header::NEXT_DENSE, &next_dense.to_le_bytes());
        w.set(header::HEAP_LEN, &self.heap_len.to_le_bytes());
        w.begin(header::BY_HASH);
        for (hash, dense) in &self.hashes {
            w.put(hash);
            w.put_u64(*dense);
        }
        w.begin(header::BY_DENSE);
        w
    }

    /// The children, and where the heap begins.
    fn end(&self, w: &mut BlockWriter<'_>) {
        w.begin(header::CHILDREN);
        for (parent, child) in &self.children {
            w.put_u64(*parent);
            w.put_u64(*child);
        }
        w.begin(header::HEAP);
    }
}

/// The pairs that a session has in the section `children`: under the session that its fork named, and under the one
/// that holds its events where that is another, since both must stay as long as it needs them (D6).
pub(super) fn children_of(entry: &DirEntry) -> impl Iterator<Item = (u64, u64)> {
    let dense = entry.dense;
    let parent = entry.fork.map(|f| f.parent);
    let ancestor = entry.fork.map(|f| f.ancestor).filter(|a| Some(*a) != parent);
    parent.into_iter().chain(ancestor).map(move |of| (of, dense))
}

/// One run that says what `runs`, whose ranges join from old to new, say together: of each session the newest entry,
/// if `keep` wants it.
///
/// # Errors
/// When they do not join, or one does not hold and is to be left out of the chain.
pub(crate) fn merge<B: Deref<Target = [u8]>>(
    runs: &[&RunFile<B>],
    mut keep: impl FnMut(&DirEntry) -> bool,
) -> Result<Vec<u8>, FileFault> {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
        return Err(FileFault::Foreign("range: there is no run to merge"));
    };
    let joined = runs.windows(2).all(|pair| match pair {
        [older, newer] => older.info().key.to == newer.info().key.from,
        _ => false,
    });
    if !joined || runs.iter().any(|run| run.info().key.store != first.info().key.store) {
        return Err(FileFault::Foreign("range: the runs to merge do not join"));
    }
    let next_dense = runs.iter().map(|run| run.info().next_dense).max().unwrap_or(0);
    let key = RunKey { to: last.info().key.to, ..first.info().key };
    let mut out = RunBuilder::new(key, next_dense);
    let mut cursors = vec![0u64; runs.len()];
    // Entries that share bytes of a heap would multiply them: no writer makes such, and a merge must not grow (G7).
    let mut room: usize = runs.iter().map(|run| run.heap_len()).sum();
    while let Some(entry) = take_lowest(runs, &mut cursors)? {
        let taken = entry.id.len().saturating_add(entry.header_json.len());
        room = room.checked_sub(taken).ok_or(FileFault::Foreign("run: its entries share ids and headers"))?;
        if keep(&entry) {
            out.push(&entry);
        }
    }
    Ok(out.finish())
}

/// The entry of the lowest dense id that is left, from the newest run that has it; passes over it in all of them.
fn take_lowest<B: Deref<Target = [u8]>>(
    runs: &[&RunFile<B>],
    cursors: &mut [u64],
) -> Result<Option<DirEntry>, FileFault> {
    let mut lowest: Option<(u64, usize)> = None;
    for (at, (run, &cursor)) in runs.iter().zip(cursors.iter()).enumerate() {
        if let Some(dense) = run.dense_at(cursor)?
            && lowest.is_none_or(|(low, _)| dense <= low)
        {
            lowest = Some((dense, at));
        }
    }
    let Some((dense, newest)) = lowest else { return Ok(None) };
    let mut entry = None;
    for (at, (run, cursor)) in runs.iter().zip(cursors.iter_mut()).enumerate() {
        if run.dense_at(*cursor)? == Some(dense) {
            if at == newest {
                entry = Some(run.at(*cursor)?);
            }
            *cursor += 1;
        }
    }
    Ok(entry)
}
