//! What index files and directory runs have in common: one header sector, sections, and a CRC per block.
//!
//! Opening checks the header, every length, and the CRC over the block CRCs; a block's own CRC is checked when one of
//! its bytes is first asked for, so that opening costs the same for every size. No byte is handed out unchecked.
//! The bytes are a map or a vector: both are immutable for as long as the file is open.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering};

use super::layout::Field;
use super::lsn::StoreId;
use crate::error::Error;
use crate::mutation::{self, Mutation};

/// The header sector; the first section follows it.
pub(crate) const HEADER_LEN: usize = 512;
/// The bytes that one CRC covers; the last block may be shorter.
pub(crate) const BLOCK: usize = 4096;
/// The version of both file kinds.
pub(crate) const VERSION: u16 = 1;

/// Why a derived file is not used. It is never the truth: what it said is rebuilt from the log (D1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileFault {
    /// Shorter than its header, or of another length than its header says.
    Length { expected: u64, found: u64 },
    /// Another kind of file.
    Magic,
    /// The header's bytes changed.
    HeaderCrc,
    /// A version that this build does not read.
    Version(u16),
    /// Feature bits that this build does not know.
    Features(u32),
    /// It was made for another store, segment or range than the one it lies in.
    Foreign(&'static str),
    /// The bytes of one block (or of the list of block CRCs) changed.
    Block { offset: u64 },
    /// A field, at this offset, that no writer makes.
    Field { offset: u64, what: &'static str },
}

impl FileFault {
    /// Where in the file.
    pub(crate) fn offset(&self) -> u64 {
        match self {
            Self::Block { offset } | Self::Field { offset, .. } => *offset,
            Self::HeaderCrc => common::CRC.at as u64,
            Self::Version(_) => 8,
            Self::Features(_) => 12,
            Self::Foreign(_) => 16,
            Self::Length { .. } | Self::Magic => 0,
        }
    }
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { expected, found } => write!(f, "{found} bytes long, expected {expected}"),
            Self::Magic => f.write_str("not a file of this kind (magic)"),
            Self::HeaderCrc => f.write_str("the header's checksum does not match"),
            Self::Version(v) => write!(f, "version {v}, expected {VERSION}"),
            Self::Features(bits) => write!(f, "unknown required features {bits:#010x}"),
            Self::Foreign(what) => write!(f, "made for another {what}"),
            Self::Block { offset } => write!(f, "the checksum of the block at byte {offset} does not match"),
            Self::Field { offset, what } => write!(f, "byte {offset}: {what}"),
        }
    }
}

/// One section: where it starts and how many bytes it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Section {
    pub(crate) at: usize,
    pub(crate) len: usize,
}

/// Where a file kind keeps what both kinds have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) magic: [u8; 8],
    /// u64: where the block CRCs start, which is where the blocks end.
    pub(crate) crcs: Field,
    /// u64: the file's length.
    pub(crate) length: Field,
    /// u32: the CRC of the block CRCs.
    pub(crate) crcs_crc: Field,
    /// What is zero in version 1.
    pub(crate) zeros: &'static [Field],
}

/// The first fields of every header, and its last.
pub(crate) mod common {
    use crate::format::layout::Field;
    pub(crate) const MAGIC: Field = Field::new("magic", 0, 8);
    pub(crate) const VERSION: Field = Field::new("version", 8, 2);
    pub(crate) const HEADER_LEN: Field = Field::new("header length", 10, 2);
    pub(crate) const REQUIRED: Field = Field::new("required features", 12, 4);
    pub(crate) const STORE: Field = Field::new("store id", 16, 16);
    pub(crate) const CRC: Field = Field::new("header CRC", 508, 4);
}

/// An open file: its bytes, and which of its blocks were checked.
#[derive(Debug)]
pub(crate) struct BlockFile<B> {
    bytes: B,
    crcs: Section,
    checked: Vec<AtomicU64>,
}

impl<B: Deref<Target = [u8]>> BlockFile<B> {
    /// Checks header, length and the list of block CRCs.
    pub(crate) fn open(bytes: B, layout: &Layout) -> Result<Self, FileFault> {
        let found = bytes.len() as u64;
        let header =
            bytes.get(..HEADER_LEN).ok_or(FileFault::Length { expected: HEADER_LEN as u64, found })?;
        check_header(header, layout)?;
        let expected = layout.length.u64(header);
        if expected != found {
            return Err(FileFault::Length { expected, found });
        }
        let crcs = crc_section(layout.crcs.u64(header), bytes.len()).ok_or(FileFault::Field {
            offset: layout.crcs.at as u64,
            what: "no place for block checksums",
        })?;
        let list = bytes.get(crcs.at..).unwrap_or_default();
        if crc32fast::hash(list) != layout.crcs_crc.u32(header) {
            return Err(FileFault::Block { offset: crcs.at as u64 });
        }
        let words = (crcs.len / 4).div_ceil(64);
        let checked = std::iter::repeat_with(|| AtomicU64::new(0)).take(words).collect();
        Ok(Self { bytes, crcs, checked })
    }

    /// The header, which was checked.
    pub(crate) fn header(&self) -> &[u8] {
        self.bytes.get(..HEADER_LEN).expect("open refuses a file that is shorter than its header")
    }

    /// The section of `count` entries of `each` bytes that the header field at `field` points to. It must start at or
    /// behind `min` (the end of the section before it), 8-aligned, and end before the block CRCs.
    pub(crate) fn section(
        &self,
        field: Field,
        count: u64,
        each: usize,
        min: usize,
    ) -> Result<Section, FileFault> {
        let fault = FileFault::Field { offset: field.at as u64, what: "a section that does not fit" };
        let place = || {
            let at = usize::try_from(field.u64(self.header())).ok()?;
            let len = usize::try_from(count).ok()?.checked_mul(each)?;
            let fits = at == min.next_multiple_of(8) && at.checked_add(len)? <= self.crcs.at;
            fits.then_some(Section { at, len })
        };
        place().ok_or(fault)
    }

    /// Where the blocks end.
    pub(crate) fn blocks_end(&self) -> usize {
        self.crcs.at
    }

    /// Bytes of a section, after the CRC of each block they touch.
    pub(crate) fn get(&self, section: Section, range: Range<usize>) -> Result<&[u8], FileFault> {
        let beyond = FileFault::Field { offset: section.at as u64, what: "a place beyond its section" };
        if range.start > range.end || range.end > section.len {
            return Err(beyond);
        }
        let absolute = section.at + range.start..section.at + range.end;
        self.check_range(absolute.clone())?;
        self.bytes.get(absolute).ok_or(beyond)
    }

    /// Entry `index` of a section whose entries take `each` bytes.
    pub(crate) fn entry(&self, section: Section, index: u64, each: usize) -> Result<&[u8], FileFault> {
        self.entries(section, index, 1, each)
    }

    /// `count` entries from `index` on.
    pub(crate) fn entries(
        &self,
        section: Section,
        index: u64,
        count: u64,
        each: usize,
    ) -> Result<&[u8], FileFault> {
        let place = || {
            let start = usize::try_from(index).ok()?.checked_mul(each)?;
            let len = usize::try_from(count).ok()?.checked_mul(each)?;
            Some(start..start.checked_add(len)?)
        };
        let beyond = FileFault::Field { offset: section.at as u64, what: "an entry beyond its section" };
        self.get(section, place().ok_or(beyond)?)
    }

    /// Checks every block.
    pub(crate) fn check_all(&self) -> Result<(), FileFault> {
        self.check_range(HEADER_LEN..self.crcs.at)
    }

    fn check_range(&self, range: Range<usize>) -> Result<(), FileFault> {
        if range.is_empty() {
            return Ok(());
        }
        let first = range.start.saturating_sub(HEADER_LEN) / BLOCK;
        let last = (range.end - 1).saturating_sub(HEADER_LEN) / BLOCK;
        (first..=last).try_for_each(|block| self.check_block(block))
    }

    // Relaxed is enough: the bit says only that immutable bytes were right, and checking twice is harmless.
    fn check_block(&self, block: usize) -> Result<(), FileFault> {
        let bit = 1u64 << (block % 64);
        let word = self.checked.get(block / 64);
        if word.is_some_and(|w| w.load(Ordering::Relaxed) & bit != 0) {
            return Ok(());
        }
        let start = HEADER_LEN + block * BLOCK;
        let end = (start + BLOCK).min(self.crcs.at);
        let crc_at = self.crcs.at + block * 4;
        let stored = self.bytes.get(crc_at..crc_at + 4);
        match self.bytes.get(start..end) {
            Some(bytes)
                if stored == Some(&crc32fast::hash(bytes).to_le_bytes())
                    || mutation::is_on(Mutation::IgnoreBlockCrc) => {}
            _ => return Err(FileFault::Block { offset: start as u64 }),
        }
        if let Some(word) = word {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn check_header(header: &[u8], layout: &Layout) -> Result<(), FileFault> {
    if common::MAGIC.get(header) != layout.magic {
        return Err(FileFault::Magic);
    }
    let covered = header.get(..common::CRC.at).unwrap_or_default();
    if crc32fast::hash(covered) != common::CRC.u32(header) {
        return Err(FileFault::HeaderCrc);
    }
    let version = common::VERSION.u16(header);
    if version != VERSION {
        return Err(FileFault::Version(version));
    }
    let bits = common::REQUIRED.u32(header);
    if bits != 0 {
        return Err(FileFault::Features(bits));
    }
    if usize::from(common::HEADER_LEN.u16(header)) != HEADER_LEN {
        return Err(FileFault::Field { offset: 10, what: "a header length other than 512" });
    }
    match layout.zeros.iter().find(|field| !field.is_zero(header)) {
        Some(field) => Err(FileFault::Field { offset: field.at as u64, what: "not zero" }),
        None => Ok(()),
    }
}

/// The list of block CRCs at `at`, which must be exactly as long as the blocks before it need.
fn crc_section(at: u64, file_len: usize) -> Option<Section> {
    let at = usize::try_from(at).ok()?;
    let blocks = at.checked_sub(HEADER_LEN)?.div_ceil(BLOCK);
    let len = file_len.checked_sub(at)?;
    (at.is_multiple_of(8) && len == blocks.checked_mul(4)?).then_some(Section { at, len })
}

/// Takes a piece of a file at a place. Pieces follow each other, but for the header's, which may come last.
pub(crate) type Sink<'s> = &'s mut dyn FnMut(u64, &[u8]) -> Result<(), Error>;

/// The bytes of a file that `write` hands to a sink.
pub(crate) fn in_memory(write: impl FnOnce(Sink<'_>) -> Result<(), Error>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = write(&mut |at, piece| {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let end = at.saturating_add(piece.len());
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        if let Some(place) = bytes.get_mut(at..end) {
            place.copy_from_slice(piece);
        }
        Ok(())
    });
    written.expect("writing to memory does not fail");
    bytes
}

/// Bytes of blocks that are collected before they are handed out.
const PIECE: usize = 64 * BLOCK;

/// Writes such a file: the header's own fields, then sections in order, then [`BlockWriter::finish`]. A file of less
/// than [`PIECE`] bytes is handed out at once; of a larger one no more than that and the block CRCs are in memory.
pub(crate) struct BlockWriter<'s> {
    header: [u8; HEADER_LEN],
    /// What was not handed out yet: from `at` on, which is where a block starts.
    pending: Vec<u8>,
    at: u64,
    crcs: Vec<u8>,
    sink: Sink<'s>,
    result: Result<(), Error>,
}

impl<'s> BlockWriter<'s> {
    /// A header with its first fields.
    pub(crate) fn new(layout: &Layout, store: StoreId, sink: Sink<'s>) -> Self {
        let mut writer = Self {
            header: [0; HEADER_LEN],
            pending: Vec::new(),
            at: HEADER_LEN as u64,
            crcs: Vec::new(),
            sink,
            result: Ok(()),
        };
        writer.set(common::MAGIC, &layout.magic);
        writer.set(common::VERSION, &VERSION.to_le_bytes());
        writer.set(common::HEADER_LEN, &[0, 2]);
        writer.set(common::STORE, &store.0);
        writer
    }

    /// Writes a header field.
    pub(crate) fn set(&mut self, field: Field, bytes: &[u8]) {
        field.put(&mut self.header, bytes);
    }

    /// Starts the next section, on 8 bytes, and stores where.
    pub(crate) fn begin(&mut self, field: Field) {
        self.pending.resize(self.pending.len().next_multiple_of(8), 0);
        let at = self.at.saturating_add(self.pending.len() as u64).to_le_bytes();
        self.set(field, &at);
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= PIECE {
            self.hand_out();
        }
    }

    pub(crate) fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// Hands out the blocks that are full.
    fn hand_out(&mut self) {
        let full = self.pending.len() / BLOCK * BLOCK;
        let blocks = self.pending.get(..full).unwrap_or_default();
        add_crcs(&mut self.crcs, blocks);
        if self.result.is_ok() {
            self.result = (self.sink)(self.at, blocks);
        }
        self.at = self.at.saturating_add(full as u64);
        self.pending.drain(..full);
    }

    /// The block CRCs, the length and the header CRC: the file is complete.
    ///
    /// # Errors
    /// The first that the sink returned.
    pub(crate) fn finish(mut self, layout: &Layout) -> Result<(), Error> {
        self.begin(layout.crcs);
        add_crcs(&mut self.crcs, &self.pending);
        self.pending.extend_from_slice(&self.crcs);
        let length = self.at.saturating_add(self.pending.len() as u64);
        self.set(layout.length, &length.to_le_bytes());
        self.set(layout.crcs_crc, &crc32fast::hash(&self.crcs).to_le_bytes());
        let crc = crc32fast::hash(self.header.get(..common::CRC.at).unwrap_or_default());
        self.set(common::CRC, &crc.to_le_bytes());
        self.result?;
        if self.at == HEADER_LEN as u64 {
            self.pending.splice(..0, self.header);
            return (self.sink)(0, &self.pending);
        }
        (self.sink)(self.at, &self.pending)?;
        (self.sink)(0, &self.header)
    }
}

fn add_crcs(crcs: &mut Vec<u8>, blocks: &[u8]) {
    blocks.chunks(BLOCK).for_each(|block| crcs.extend_from_slice(&crc32fast::hash(block).to_le_bytes()));
}

/// Makes every checksum of a changed file right again, as far as its header leads to them.
#[cfg(test)]
pub(crate) fn resum(bytes: &mut [u8], layout: &Layout) {
    let at = usize::try_from(layout.crcs.u64(bytes)).unwrap_or(0);
    let Some(blocks) = bytes.get(HEADER_LEN..at) else { return };
    let list: Vec<u8> = blocks.chunks(BLOCK).flat_map(|b| crc32fast::hash(b).to_le_bytes()).collect();
    if bytes.len() - at == list.len() {
        bytes[at..].copy_from_slice(&list);
    }
    layout.crcs_crc.put(bytes, &crc32fast::hash(&list).to_le_bytes());
    let crc = crc32fast::hash(&bytes[..common::CRC.at]);
    common::CRC.put(bytes, &crc.to_le_bytes());
}
