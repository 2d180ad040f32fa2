//! A stream cut into lines, with their numbers and byte offsets.
//!
//! What always holds: memory stays within [`MAX_LINE_BYTES`]; a longer line is passed over, counted and marked.
//! A line is handed out as bytes: whether they are text is the reader's question.

use std::io::{self, BufRead, Read};

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
    buffer: Vec<u8>,
    limit: usize,
    number: u64,
    offset: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(source: R, limit: usize) -> Self {
        Self { source, buffer: Vec::new(), limit, number: 0, offset: 0 }
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
        let most = u64::try_from(self.limit).unwrap_or(u64::MAX).saturating_add(1);
        let mut length = count(Read::take(&mut self.source, most).read_until(b'\n', &mut self.buffer)?);
        if length == 0 {
            return Ok(None);
        }
        let mut terminated = self.buffer.last() == Some(&b'\n');
        let too_long = length == most && !terminated;
        if too_long {
            let (skipped, found) = self.skip_line()?;
            length += skipped;
            // Exactly `limit + 1` bytes and then the end of the stream is too long as well.
            terminated = found;
        } else if terminated {
            self.buffer.pop();
        }
        let offset = self.offset;
        self.number += 1;
        self.offset += length;
        let bytes = if too_long { None } else { Some(self.buffer.as_slice()) };
        Ok(Some(Line { number: self.number, offset, length, terminated, bytes }))
    }

    fn skip_line(&mut self) -> io::Result<(u64, bool)> {
        let mut skipped = 0;
        loop {
            let window = match self.source.fill_buf() {
                Ok(window) => window,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if window.is_empty() {
                return Ok((skipped, false));
            }
            let end = window.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(window.len(), |at| at + 1);
            self.source.consume(taken);
            skipped += count(taken);
            if end.is_some() {
                return Ok((skipped, true));
            }
        }
    }
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
