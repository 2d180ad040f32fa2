//! A sliding window over a segment file, for the scanner: reads in large pieces, and turns a read error into
//! unreadable pages instead of an end (E2: a read error is never the end of the log).

use std::sync::Arc;

use crate::disk::DiskFile;
use crate::error::Result;

const PIECE: usize = 1 << 20;
const PAGE: usize = 4096;

pub(crate) struct Window {
    file: Arc<dyn DiskFile>,
    len: u32,
    start: u32,
    bytes: Vec<u8>,
    /// Ranges that could not be read, ascending.
    unreadable: Vec<(u32, u32)>,
    pub bytes_read: u64,
}

impl Window {
    /// A window over the first `limit` bytes of `file` at most.
    pub(crate) fn new(file: Arc<dyn DiskFile>, limit: u32) -> Result<Self> {
        let len = u32::try_from(file.len()?).unwrap_or(u32::MAX).min(limit);
        Ok(Self { file, len, start: 0, bytes: Vec::new(), unreadable: Vec::new(), bytes_read: 0 })
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The bytes from `at` on: at least `want` of them unless the file ends before.
    pub(crate) fn at(&mut self, at: u32, want: usize) -> &[u8] {
        let have_end = self.start.saturating_add(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
        let want_end = at.saturating_add(u32::try_from(want).unwrap_or(u32::MAX)).min(self.len);
        if at < self.start || want_end > have_end {
            self.load(at, want);
        }
        let skip = usize::try_from(at.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.bytes.get(skip..).unwrap_or(&[])
    }

    fn load(&mut self, at: u32, want: usize) {
        let left = usize::try_from(self.len.saturating_sub(at)).unwrap_or(0);
        let size = want.max(PIECE).min(left);
        self.start = at;
        self.bytes.clear();
        if self.bytes.capacity() < size {
            // Not twice as much as before: a frame may be as long as the file.
            self.bytes = Vec::with_capacity(size);
        }
        self.bytes.resize(size, 0);
        match self.file.read_at(&mut self.bytes, u64::from(at)) {
            Ok(read) => self.bytes.truncate(read),
            Err(error) => {
                tracing::warn!(%error, offset = at, "reading piece by piece around a read error");
                self.load_pages(at);
            }
        }
        self.bytes_read = self.bytes_read.saturating_add(self.bytes.len() as u64);
    }

    fn load_pages(&mut self, at: u32) {
        let mut offset = u64::from(at);
        // The file's own pages: kernels read, and fail, by these, and a piece over two of them would lose both.
        let length = self.bytes.len();
        let first = usize::try_from(offset.next_multiple_of(PAGE as u64) - offset).unwrap_or(0);
        let (head, rest) = self.bytes.split_at_mut(first.min(length));
        let head = Some(head).filter(|head| !head.is_empty());
        for page in head.into_iter().chain(rest.chunks_mut(PAGE)) {
            let length = page.len() as u64;
            if self.file.read_at(page, offset).is_err() {
                page.fill(0);
                let from = u32::try_from(offset).unwrap_or(u32::MAX);
                let to = u32::try_from(offset.saturating_add(length)).unwrap_or(u32::MAX);
                if !self.unreadable.contains(&(from, to)) {
                    self.unreadable.push((from, to));
                }
            }
            offset = offset.saturating_add(length);
        }
    }

    /// Whether a byte of the range could not be read.
    pub(crate) fn is_unreadable(&self, from: u32, to: u32) -> bool {
        self.unreadable.iter().any(|(start, end)| *start < to && from < *end)
    }

    /// Offset behind the last byte at or after `from` that is not zero, or cannot be read; `from` if there is none.
    pub(crate) fn residue_end(&mut self, from: u32) -> u32 {
        let mut last = from;
        let mut at = from;
        while at < self.len {
            let piece = self.at(at, 1);
            if piece.is_empty() {
                break;
            }
            if let Some(index) = last_nonzero(piece) {
                last = at.saturating_add(u32::try_from(index).unwrap_or(u32::MAX)).saturating_add(1);
            }
            at = at.saturating_add(u32::try_from(piece.len()).unwrap_or(u32::MAX));
        }
        self.unreadable.iter().map(|(_, end)| *end).fold(last, u32::max)
    }
}

/// Index of the last byte that is not zero. What is behind the end of a log is zeros by the megabyte, which are compared
/// by the sector.
fn last_nonzero(bytes: &[u8]) -> Option<usize> {
    const ZEROS: [u8; 512] = [0; 512];
    let mut end = bytes.len();
    for chunk in bytes.rchunks(ZEROS.len()) {
        let start = end.saturating_sub(chunk.len());
        if ZEROS.get(..chunk.len()) != Some(chunk) {
            return chunk.iter().rposition(|byte| *byte != 0).map(|index| start.saturating_add(index));
        }
        end = start;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::last_nonzero;

    #[test]
    fn the_last_byte_that_is_not_zero_is_found_wherever_it_is() {
        for length in [0, 1, 511, 512, 513, 1100] {
            let mut bytes = vec![0; length];
            assert_eq!(last_nonzero(&bytes), None);
            for at in 0..length {
                bytes[at] = 1;
                assert_eq!(last_nonzero(&bytes), Some(at), "of {length}");
            }
        }
    }
}
