//! A stream cut into lines, with their numbers and byte offsets.
//!
//! What always holds: memory stays within [`MAX_LINE_BYTES`]; a longer line is passed over, counted and marked.
//! A line is handed out as bytes: whether they are text is the reader's question.

use std::io::{self, BufRead};

use memchr::memchr;

/// The longest line that is read, in bytes, its LF not counted: an event's largest payload and room for the
/// envelope around it.
pub const MAX_LINE_BYTES: usize = (64 << 20) + (1 << 20);

/// A buffer that one long line has blown up beyond this is given back.
const KEPT_BUFFER_BYTES: usize = 1 << 20;

/// One line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// From 1.
    pub(crate) number: u64,
    /// Of its first byte.
    pub(crate) offset: u64,
    /// Bytes in the file, the LF included.
    pub(crate) length: u64,
    /// Whether an LF ends it: only the last line can lack one.
    pub(crate) terminated: bool,
    /// The bytes before the LF; `None` where there are more than the limit.
    pub(crate) bytes: Option<&'a [u8]>,
}

/// The lines of a stream.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    source: R,
    /// Bytes of the source's window that were handed out as a line.
    lent: usize,
    /// A line that does not lie within one window.
    buffer: Vec<u8>,
    limit: usize,
    number: u64,
    offset: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(source: R, limit: usize) -> Self {
        Self { source, lent: 0, buffer: Vec::new(), limit, number: 0, offset: 0 }
    }

    /// Bytes read so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Gives back the memory of a long line when it has been read.
    pub(crate) fn forget(&mut self) {
        self.buffer.clear();
        if self.buffer.capacity() > KEPT_BUFFER_BYTES {
            self.buffer = Vec::new();
        }
    }

    /// The next line, or `None` at the end.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.forget();
        self.source.consume(std::mem::take(&mut self.lent));
        let mut length = 0;
        let (terminated, within) = loop {
            let window = window(&mut self.source)?;
            let end = memchr(b'\n', window);
            let inner = window.get(..end.unwrap_or(window.len())).unwrap_or_default();
            let taken = inner.len() + usize::from(end.is_some());
            if taken == 0 && length == 0 {
                return Ok(None);
            }
            length += count(taken);
            let is_first = length == count(taken);
            if is_first && end.is_some() && inner.len() <= self.limit {
                self.lent = taken;
                break (true, true);
            }
            // Of a line that is too long nothing is kept; it has a byte more than any other then.
            if self.buffer.len() <= self.limit {
                let room = (self.limit + 1).saturating_sub(self.buffer.len());
                self.buffer.extend_from_slice(inner.get(..room.min(inner.len())).unwrap_or_default());
            }
            self.source.consume(taken);
            if end.is_some() || taken == 0 {
                break (end.is_some(), false);
            }
        };
        let offset = self.offset;
        self.number += 1;
        self.offset += length;
        let bytes = if within {
            // What was lent is still there.
            self.source.fill_buf()?.get(..self.lent.saturating_sub(1))
        } else {
            Some(self.buffer.as_slice()).filter(|line| line.len() <= self.limit)
        };
        Ok(Some(Line { number: self.number, offset, length, terminated, bytes }))
    }
}

/// The bytes that the source has at hand, read if there are none; empty at its end.
fn window<R: BufRead>(source: &mut R) -> io::Result<&[u8]> {
    loop {
        match source.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(_) => break,
        }
    }
    source.fill_buf()
}

fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Seen = (u64, u64, u64, bool, Option<Vec<u8>>);

    fn all(text: &[u8], limit: usize, window: usize) -> Vec<Seen> {
        let mut lines = Lines::new(io::BufReader::with_capacity(window, text), limit);
        let mut seen = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            let bytes = line.bytes.map(<[u8]>::to_vec);
            seen.push((line.number, line.offset, line.length, line.terminated, bytes));
        }
        assert_eq!(lines.offset(), count(text.len()));
        seen
    }

    #[test]
    fn lines_know_their_place() {
        for window in 1..8 {
            let seen = all(b"ab\n\ncd", 10, window);
            let expected = vec![
                (1, 0, 3, true, Some(b"ab".to_vec())),
                (2, 3, 1, true, Some(Vec::new())),
                (3, 4, 2, false, Some(b"cd".to_vec())),
            ];
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn a_line_at_the_limit_is_read_and_a_longer_one_is_passed_over() {
        for window in 1..8 {
            assert_eq!(all(b"abcd\nx\n", 4, window)[0], (1, 0, 5, true, Some(b"abcd".to_vec())));
            let seen = all(b"abcde\nx\n", 4, window);
            assert_eq!(seen[0], (1, 0, 6, true, None));
            assert_eq!(seen[1], (2, 6, 2, true, Some(b"x".to_vec())));
            assert_eq!(all(b"abcdefghi", 4, window), vec![(1, 0, 9, false, None)]);
            assert_eq!(all(b"abcde", 4, window), vec![(1, 0, 5, false, None)]);
        }
    }

    #[test]
    fn an_empty_stream_has_no_line() {
        assert!(all(b"", 4, 4).is_empty());
        assert_eq!(all(b"\n", 4, 4).len(), 1);
    }
}
