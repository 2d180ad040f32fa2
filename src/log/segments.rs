//! The ended segments of a store, oldest first, and access to their indexes.
//!
//! Headers and indexes are read when they are first needed: opening costs nothing per segment. An index that is
//! missing or damaged is rebuilt in memory from the segment; it never decides truth (D1).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::disk::{MapBytes, OpenMode};
use crate::error::{Error, ErrorKind, Result};
use crate::format::blocks::FileFault;
use crate::format::index::{IndexFile, SegmentKey, SegmentTable, SessionPart, StructureEntry};
use crate::format::{Binding, Ending, SegmentHeader, names};

use super::rebuild;
use super::shared::Shared;

/// Bytes of an index: mapped, or read into memory.
pub(crate) enum Bytes {
    Mapped(MapBytes),
    Owned(Vec<u8>),
}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// How an ended segment ended, from its successor's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndOf {
    pub end: u32,
    pub chain: u32,
    pub why: Ending,
}

/// What is known of an ended segment.
#[derive(Debug, Clone)]
pub(crate) struct SegmentFacts {
    pub header: SegmentHeader,
    pub header_crc: u32,
    pub end: EndOf,
}

impl SegmentFacts {
    pub(crate) fn key(&self) -> SegmentKey {
        SegmentKey { store: self.header.store, segment: self.header.number, salt: self.header.salt }
    }

    pub(crate) fn binding(&self) -> Binding {
        self.header.binding()
    }
}

/// An index, from its file or rebuilt.
pub(crate) enum Index {
    File(IndexFile<Bytes>),
    Table(Arc<SegmentTable>),
}

impl Index {
    pub(crate) fn session(&self, dense: u64) -> Result<Option<SessionPart>> {
        match self {
            Self::File(file) => file.session(dense).map_err(damaged),
            Self::Table(table) => Ok(table.session(dense).map(|session| session.part())),
        }
    }

    /// Segment offsets of the part's events `[from, to)`, counted within the part; 0 is a hole.
    pub(crate) fn offsets(&self, part: &SessionPart, from: u32, to: u32) -> Result<Vec<u32>> {
        match self {
            Self::File(file) => Ok(file.offsets(part, from..to).map_err(damaged)?.collect()),
            Self::Table(table) => {
                let index = |value| usize::try_from(value).unwrap_or(usize::MAX);
                let offsets = table.session(part.dense).map_or(&[][..], |session| session.offsets());
                Ok(offsets.get(index(from)..index(to).min(offsets.len())).unwrap_or(&[]).to_vec())
            }
        }
    }

    pub(crate) fn structure(&self, part: &SessionPart) -> Result<Vec<StructureEntry>> {
        match self {
            Self::File(file) => {
                file.structure(part).map_err(damaged)?.collect::<Result<_, _>>().map_err(damaged)
            }
            Self::Table(table) => {
                Ok(table.session(part.dense).map(|session| session.structure().to_vec()).unwrap_or_default())
            }
        }
    }

    /// Calls `each` with what the segment holds of every session: all of them, or none where one cannot be read.
    pub(crate) fn each_part(&self, each: &mut dyn FnMut(&SessionPart) -> Result<()>) -> Result<()> {
        match self {
            Self::File(file) => {
                file.sessions().try_for_each(|part| part.map(drop)).map_err(damaged)?;
                file.sessions().try_for_each(|part| each(&part.map_err(damaged)?))
            }
            Self::Table(table) => table.sessions().try_for_each(|session| each(&session.part())),
        }
    }

    pub(crate) fn parts(&self) -> Result<Vec<SessionPart>> {
        let mut parts = Vec::new();
        self.each_part(&mut |part| {
            parts.push(*part);
            Ok(())
        })?;
        Ok(parts)
    }

    pub(crate) fn controls(&self) -> Result<Vec<u32>> {
        match self {
            Self::File(file) => Ok(file.controls().map_err(damaged)?.collect()),
            Self::Table(table) => Ok(table.controls().to_vec()),
        }
    }
}

fn damaged(fault: FileFault) -> Error {
    Error::new(ErrorKind::Corrupt, format!("damaged index: {fault}"))
}

/// See the module.
pub(crate) struct Segments {
    /// Numbers of the ended segments of the live set, ascending; a file may be missing.
    numbers: Mutex<Vec<u32>>,
    /// The segment after the newest ended one: its header tells how that one ended.
    facts: Mutex<HashMap<u32, Arc<SegmentFacts>>>,
    indexes: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    clock: u64,
    open: HashMap<u32, (Arc<Index>, u64)>,
}

/// How many indexes may be open (and mapped) at a time.
const OPEN_INDEXES: usize = 64;

impl Segments {
    pub(crate) fn new(numbers: Vec<u32>) -> Self {
        Self { numbers: Mutex::new(numbers), facts: Mutex::default(), indexes: Mutex::default() }
    }

    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.numbers.lock().clone()
    }

    pub(crate) fn add_ended(&self, number: u32, facts: SegmentFacts) {
        self.facts.lock().insert(number, Arc::new(facts));
        let mut numbers = self.numbers.lock();
        if let Err(at) = numbers.binary_search(&number) {
            numbers.insert(at, number);
        }
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        self.numbers.lock().binary_search(&number).is_ok()
    }

    /// The newest ended segment of a number below `number`.
    pub(crate) fn before(&self, number: u32) -> Option<u32> {
        let numbers = self.numbers.lock();
        let at = numbers.partition_point(|other| *other < number);
        at.checked_sub(1).and_then(|at| numbers.get(at).copied())
    }

    /// The segment that follows `number` in the live set, if it has ended too.
    pub(crate) fn next_of(&self, number: u32) -> u32 {
        let numbers = self.numbers.lock();
        let at = numbers.partition_point(|other| *other <= number);
        numbers.get(at).copied().unwrap_or_else(|| number.saturating_add(1))
    }

    /// Header and end of an ended segment.
    ///
    /// # Errors
    /// The file is missing, or its header cannot be used.
    pub(crate) fn facts(&self, shared: &Shared, number: u32) -> Result<Arc<SegmentFacts>> {
        if let Some(facts) = self.facts.lock().get(&number) {
            return Ok(Arc::clone(facts));
        }
        let (header, header_crc) = read_header(shared, number)?;
        let end = match self.told_end(shared, number)? {
            Some(end) => end,
            None => own_end(shared, &header, header_crc)?,
        };
        let facts = Arc::new(SegmentFacts { header, header_crc, end });
        self.facts.lock().insert(number, Arc::clone(&facts));
        Ok(facts)
    }

    /// How a segment ended, from the header of the one that follows it.
    fn told_end(&self, shared: &Shared, number: u32) -> Result<Option<EndOf>> {
        let told = |next: u32| match read_header(shared, next) {
            Ok((next, _)) if next.previous == number => {
                let (end, chain, why) = (next.previous_end, next.previous_chain, next.previous_why);
                Ok(Some(EndOf { end, chain, why }))
            }
            Ok(_) => Ok(None),
            Err(error) if error.is_corruption() || error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        };
        if let Some(end) = told(self.next_of(number))? {
            return Ok(Some(end));
        }
        // The next file is missing or damaged: a later segment may have been started behind the gap.
        let mut later: Vec<u32> = Vec::new();
        for name in shared.disk.list(names::SEGMENTS)? {
            if let names::SegmentsEntry::Segment(other) = names::parse_segments_entry(&name)
                && other > number
            {
                later.push(other);
            }
        }
        later.sort_unstable();
        for next in later {
            if let Some(end) = told(next)? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// The index of an ended segment, rebuilt from the segment if its file cannot be used.
    pub(crate) fn index(&self, shared: &Shared, number: u32) -> Result<Arc<Index>> {
        if let Some(table) = shared.state().live.table(number) {
            return Ok(Arc::new(Index::Table(Arc::clone(table))));
        }
        if let Some(index) = self.cached(number) {
            return Ok(index);
        }
        Shared::unlocked();
        let facts = self.facts(shared, number)?;
        let index = match open_index(shared, &facts) {
            Ok(file) => Index::File(file),
            Err(error) => {
                tracing::warn!(%error, segment = number, "rebuilding an index in memory");
                shared.want_index(number);
                Index::Table(Arc::new(rebuild::table(shared, &facts)?))
            }
        };
        let index = Arc::new(index);
        self.remember(number, &index);
        Ok(index)
    }

    fn cached(&self, number: u32) -> Option<Arc<Index>> {
        let mut cache = self.indexes.lock();
        cache.clock = cache.clock.wrapping_add(1);
        let clock = cache.clock;
        let (index, used) = cache.open.get_mut(&number)?;
        *used = clock;
        Some(Arc::clone(index))
    }

    fn remember(&self, number: u32, index: &Arc<Index>) {
        let mut cache = self.indexes.lock();
        let clock = cache.clock;
        cache.open.insert(number, (Arc::clone(index), clock));
        while cache.open.len() > OPEN_INDEXES {
            let Some(oldest) =
                cache.open.iter().min_by_key(|(_, (_, used))| *used).map(|(number, _)| *number)
            else {
                break;
            };
            cache.open.remove(&oldest);
        }
    }

    /// Has the index opened anew at its next use.
    pub(crate) fn forget_index(&self, number: u32) {
        self.indexes.lock().open.remove(&number);
    }

    /// An index that failed while it was being read is rebuilt at its next use.
    pub(crate) fn replace_index(&self, shared: &Shared, number: u32) -> Result<Arc<Index>> {
        let facts = self.facts(shared, number)?;
        let index = Arc::new(Index::Table(Arc::new(rebuild::table(shared, &facts)?)));
        self.remember(number, &index);
        shared.want_index(number);
        Ok(index)
    }
}

/// The header of a segment file, put together from elsewhere if its sector is damaged.
///
/// # Errors
/// The file is missing or cannot be read, is of another version, or its header is damaged.
pub(crate) fn read_header(shared: &Shared, number: u32) -> Result<(SegmentHeader, u32)> {
    read_header_checked(shared, number).map(|(header, crc, _)| (header, crc))
}

/// As [`read_header`]; the third value says that its sector is damaged.
///
/// # Errors
/// As [`read_header`].
pub(crate) fn read_header_checked(shared: &Shared, number: u32) -> Result<(SegmentHeader, u32, bool)> {
    super::header::read(shared, number, &shared.control())
}

/// The end of a segment whose successor does not tell it: from its index, else from its frames.
fn own_end(shared: &Shared, header: &SegmentHeader, header_crc: u32) -> Result<EndOf> {
    let key = SegmentKey { store: header.store, segment: header.number, salt: header.salt };
    if let Ok(bytes) = open_immutable(shared, &names::index(header.number))
        && let Ok(file) = IndexFile::open(bytes, &key)
    {
        let info = file.info();
        return Ok(EndOf { end: info.end, chain: info.chain, why: info.why_ended });
    }
    rebuild::end(shared, header, header_crc)
}

/// Opens the index file of an ended segment and checks that it belongs to it.
pub(crate) fn open_index(shared: &Shared, facts: &SegmentFacts) -> Result<IndexFile<Bytes>> {
    let name = names::index(facts.header.number);
    let bytes = open_immutable(shared, &name)?;
    let file =
        IndexFile::open(bytes, &facts.key()).map_err(|fault| Error::corrupt(&name, fault.offset(), fault))?;
    let info = file.info();
    if (info.end, info.chain) != (facts.end.end, facts.end.chain) {
        return Err(Error::corrupt(&name, 0, "it belongs to another state of the segment"));
    }
    Ok(file)
}

/// The bytes of an immutable file: mapped unless maps are switched off.
pub(crate) fn open_immutable(shared: &Shared, name: &str) -> Result<Bytes> {
    let file = shared.disk.open(name, OpenMode::Read)?;
    if shared.options.maps {
        return Ok(Bytes::Mapped(MapBytes::from(file.map()?)));
    }
    let length = usize::try_from(file.len()?).unwrap_or(usize::MAX);
    let mut bytes = vec![0; length];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(Bytes::Owned(bytes))
}
