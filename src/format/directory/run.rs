//! Reading a directory run, mapped or owned.
//!
//! A look-up touches the blocks of a binary search and of one entry, each checked on first touch; nothing is loaded for
//! a session that nobody asks for.

use std::ops::Deref;

use super::build::children_of;
use super::entry::{self, DirEntry};
use super::layout::{BLOCKS, CHILD_LEN, ENTRY_LEN, HASH_LEN, by_dense, by_hash, child, header};
use super::{IdHash, RunKey, id_hash};
use crate::format::blocks::{BlockFile, FileFault, HEADER_LEN, Section, common};
use crate::format::layout::Field;

/// What a run's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunInfo {
    pub(crate) key: RunKey,
    /// Sessions in it.
    pub(crate) entries: u64,
    /// Above every dense id handed out up to its end.
    pub(crate) next_dense: u64,
}

/// An open run.
#[derive(Debug)]
pub(crate) struct RunFile<B> {
    file: BlockFile<B>,
    info: RunInfo,
    child_count: u64,
    hash_section: Section,
    dense_section: Section,
    child_section: Section,
    heap: Section,
}

impl<B: Deref<Target = [u8]>> RunFile<B> {
    /// Opens the run `key`.
    ///
    /// # Errors
    /// When header, lengths or the list of block CRCs do not hold, or it was made for another store or range.
    pub(crate) fn open(bytes: B, key: &RunKey) -> Result<Self, FileFault> {
        let file = BlockFile::open(bytes, &BLOCKS)?;
        let h = file.header();
        if common::STORE.get(h) != key.store.0 {
            return Err(FileFault::Foreign("store"));
        }
        if (header::FROM.u64(h), header::TO.u64(h)) != (key.from.0, key.to.0) {
            return Err(FileFault::Foreign("range of the log"));
        }
        let (entries, next_dense) = (header::ENTRY_COUNT.u64(h), header::NEXT_DENSE.u64(h));
        let (child_count, heap_len) = (header::CHILD_COUNT.u64(h), header::HEAP_LEN.u64(h));
        let end = |s: Section| s.at + s.len;
        let hash_section = file.section(header::BY_HASH, entries, HASH_LEN, HEADER_LEN)?;
        let dense_section = file.section(header::BY_DENSE, entries, ENTRY_LEN, end(hash_section))?;
        let child_section = file.section(header::CHILDREN, child_count, CHILD_LEN, end(dense_section))?;
        let heap = file.section(header::HEAP, heap_len, 1, end(child_section))?;
        if end(heap).next_multiple_of(8) != file.blocks_end() {
            let offset = header::BLOCK_CRCS.at as u64;
            return Err(FileFault::Field { offset, what: "block checksums away from the last section" });
        }
        let info = RunInfo { key: *key, entries, next_dense };
        Ok(Self { file, info, child_count, hash_section, dense_section, child_section, heap })
    }

    /// What the header says.
    pub(crate) fn info(&self) -> RunInfo {
        self.info
    }

    /// Dense ids of the sessions here whose id has this hash, ascending; deleted ones too. Whether the ids themselves
    /// are equal is for the caller to compare.
    pub(crate) fn lookup(&self, hash: &IdHash) -> Result<Vec<u64>, FileFault> {
        let less = |e: &[u8]| by_hash::HASH.get(e) < hash.as_slice();
        let same = |e: &[u8]| by_hash::HASH.get(e) == hash;
        self.equal(self.hash_section, HASH_LEN, self.info.entries, by_hash::DENSE, less, same)
    }

    /// Sessions here that were forked off `parent`, or that take events from it, ascending; deleted ones too.
    pub(crate) fn children(&self, parent: u64) -> Result<Vec<u64>, FileFault> {
        let less = |e: &[u8]| child::PARENT.u64(e) < parent;
        let same = |e: &[u8]| child::PARENT.u64(e) == parent;
        self.equal(self.child_section, CHILD_LEN, self.child_count, child::CHILD, less, same)
    }

    /// The session `dense`, if it was touched in this run's range.
    pub(crate) fn entry(&self, dense: u64) -> Result<Option<DirEntry>, FileFault> {
        let less = |e: &[u8]| by_dense::DENSE.u64(e) < dense;
        let at = self.first_not(self.dense_section, ENTRY_LEN, self.info.entries, less)?;
        if self.dense_at(at)? == Some(dense) { self.at(at).map(Some) } else { Ok(None) }
    }

    /// Entry number `at` in the order of dense ids.
    pub(crate) fn at(&self, at: u64) -> Result<DirEntry, FileFault> {
        let buf = self.file.entry(self.dense_section, at, ENTRY_LEN)?;
        let fixed = entry::fixed(buf);
        let bad =
            |what| FileFault::Field { offset: self.dense_section.at as u64 + at * ENTRY_LEN as u64, what };
        let place = || {
            let start = usize::try_from(fixed.heap_at).ok()?;
            let middle = start.checked_add(fixed.id_len as usize)?;
            Some((start, middle, middle.checked_add(fixed.header_len as usize)?))
        };
        let (start, middle, end) = place().ok_or(bad("an id beyond the heap"))?;
        let id = str::from_utf8(self.file.get(self.heap, start..middle)?);
        let header = str::from_utf8(self.file.get(self.heap, middle..end)?);
        match (id, header) {
            (Ok(id), Ok(header)) => {
                entry::decode(buf, id, header).ok_or(bad("flags or zeros that no writer makes"))
            }
            _ => Err(bad("an id or header that is not UTF-8")),
        }
    }

    /// The dense id of entry number `at`; none behind the last.
    pub(crate) fn dense_at(&self, at: u64) -> Result<Option<u64>, FileFault> {
        if at >= self.info.entries {
            return Ok(None);
        }
        self.file.entry(self.dense_section, at, ENTRY_LEN).map(|e| Some(by_dense::DENSE.u64(e)))
    }

    /// Dense id and flags of entry number `at`; none behind the last.
    pub(crate) fn flags_at(&self, at: u64) -> Result<Option<(u64, u32)>, FileFault> {
        if at >= self.info.entries {
            return Ok(None);
        }
        let entry = self.file.entry(self.dense_section, at, ENTRY_LEN)?;
        Ok(Some((by_dense::DENSE.u64(entry), by_dense::FLAGS.u32(entry))))
    }

    /// Bytes of all ids and headers.
    pub(super) fn heap_len(&self) -> usize {
        self.heap.len
    }

    /// Every entry, ascending by dense id.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Result<DirEntry, FileFault>> {
        (0..self.info.entries).map(|at| self.at(at))
    }

    /// Checks every block, and that all sections agree with each other.
    pub(crate) fn verify(&self) -> Result<(), FileFault> {
        self.file.check_all()?;
        let (mut hashes, mut children) = (Vec::new(), Vec::new());
        let (mut last, mut heap) = (0, 0usize);
        for at in 0..self.info.entries {
            let entry = self.at(at)?;
            let buf = self.file.entry(self.dense_section, at, ENTRY_LEN)?;
            if entry::encode(&entry, entry::fixed(buf)) != buf {
                return Err(field(self.dense_section, "fields that no flag calls for"));
            }
            if entry.dense <= last || entry.dense >= self.info.next_dense {
                return Err(field(self.dense_section, "dense ids do not ascend below the next one"));
            }
            last = entry.dense;
            heap = heap.saturating_add(entry.id.len()).saturating_add(entry.header_json.len());
            hashes.push((id_hash(&entry.id), entry.dense));
            children.extend(children_of(&entry));
        }
        if heap != self.heap.len {
            return Err(field(self.heap, "ids and headers that no entry has, or that entries share"));
        }
        hashes.sort_unstable();
        for (at, (hash, dense)) in (0..).zip(&hashes) {
            let entry = self.file.entry(self.hash_section, at, HASH_LEN)?;
            if by_hash::HASH.get(entry) != hash || by_hash::DENSE.u64(entry) != *dense {
                return Err(field(self.hash_section, "hashes that are not those of the entries"));
            }
        }
        children.sort_unstable();
        if self.child_count != children.len() as u64 {
            return Err(field(self.child_section, "more or fewer children than the entries name"));
        }
        for (at, pair) in (0..).zip(&children) {
            let entry = self.file.entry(self.child_section, at, CHILD_LEN)?;
            if (child::PARENT.u64(entry), child::CHILD.u64(entry)) != *pair {
                return Err(field(self.child_section, "children that are not those of the entries"));
            }
        }
        Ok(())
    }

    /// The first of `count` sorted entries that is not `less`.
    fn first_not(
        &self,
        section: Section,
        each: usize,
        count: u64,
        less: impl Fn(&[u8]) -> bool,
    ) -> Result<u64, FileFault> {
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            if less(self.file.entry(section, middle, each)?) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// The field `value` of each of the sorted entries that are the `same`.
    fn equal(
        &self,
        section: Section,
        each: usize,
        count: u64,
        value: Field,
        less: impl Fn(&[u8]) -> bool,
        same: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<u64>, FileFault> {
        let mut found = Vec::new();
        for at in self.first_not(section, each, count, less)?..count {
            let entry = self.file.entry(section, at, each)?;
            if !same(entry) {
                break;
            }
            found.push(value.u64(entry));
        }
        Ok(found)
    }
}

fn field(section: Section, what: &'static str) -> FileFault {
    FileFault::Field { offset: section.at as u64, what }
}
