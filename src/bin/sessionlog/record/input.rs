//! Standard input as requests: complete lines, as they come.
//!
//! What always holds: memory stays within [`MAX_LINE_BYTES`] and a few windows, whatever is sent; a line that is
//! too long is passed over to its end, so the line behind it is read right. A thread reads ahead a few windows, so
//! that everything a client has sent is seen before anything is waited for.

use std::io::{self, Read};
use std::thread;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, never, select};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The longest line that is taken, in bytes, its LF not counted.
pub(crate) const MAX_LINE_BYTES: usize = sessionlog::interop::jsonl::MAX_LINE_BYTES;

const WINDOW_BYTES: usize = 1 << 16;
/// Windows that are read ahead: 256 KiB.
const WINDOWS: usize = 4;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A line without its LF. The last one may have had none.
    Line(Vec<u8>),
    /// A line of so many bytes, over the limit.
    TooLong(u64),
    /// No complete line has arrived yet.
    Nothing,
    /// Nothing will come any more: the end of the input, or a signal to stop.
    End,
}

type Window = io::Result<Vec<u8>>;

/// Requests from a stream of windows.
pub(crate) struct Input {
    windows: Receiver<Window>,
    stop: Receiver<()>,
    lines: Splitter,
    ended: bool,
}

impl Input {
    /// Standard input, until it ends or the process is asked to stop.
    pub(crate) fn standard() -> io::Result<Self> {
        let (send_stop, stop) = bounded(1);
        let mut signals = Signals::new([SIGTERM, SIGINT])?;
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for _ in signals.forever() {
                let _ = send_stop.try_send(());
            }
        })?;
        let (send, windows) = bounded(WINDOWS);
        // The thread is left alone at the end: it may be waiting for input that never comes.
        thread::Builder::new().name("input".to_owned()).spawn(move || pump(io::stdin().lock(), &send))?;
        Ok(Self::new(windows, stop, MAX_LINE_BYTES))
    }

    fn new(windows: Receiver<Window>, stop: Receiver<()>, limit: usize) -> Self {
        Self { windows, stop, lines: Splitter::new(limit), ended: false }
    }

    /// The next line. With `wait`, [`Next::Nothing`] does not occur.
    pub(crate) fn next(&mut self, wait: bool) -> io::Result<Next> {
        loop {
            if self.stop.try_recv().is_ok() {
                self.ended = true;
                return Ok(Next::End);
            }
            if let Some(line) = self.lines.next_line() {
                return Ok(line);
            }
            if self.ended {
                return Ok(self.lines.rest().unwrap_or(Next::End));
            }
            let window = if wait { self.wait() } else { self.windows.try_recv() };
            match window {
                Ok(window) => self.lines.push(&window?),
                Err(TryRecvError::Empty) if !wait => return Ok(Next::Nothing),
                Err(TryRecvError::Empty) => return Ok(Next::End),
                Err(TryRecvError::Disconnected) => {
                    self.ended = true;
                    self.windows = never();
                }
            }
        }
    }

    /// `Empty` stands for the wish to stop.
    fn wait(&self) -> Result<Window, TryRecvError> {
        select! {
            recv(self.windows) -> window => window.map_err(|_| TryRecvError::Disconnected),
            recv(self.stop) -> _ => Err(TryRecvError::Empty),
        }
    }
}

fn pump(mut from: impl Read, to: &Sender<Window>) {
    let mut window = vec![0; WINDOW_BYTES];
    loop {
        let sent = match from.read(&mut window) {
            Ok(0) => return,
            Ok(length) => Ok(window.get(..length).unwrap_or_default().to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let failed = sent.is_err();
        if to.send(sent).is_err() || failed {
            return;
        }
    }
}

/// Bytes on their way to being lines.
struct Splitter {
    limit: usize,
    bytes: Vec<u8>,
    /// Before this there are only lines that were handed out.
    start: usize,
    /// Before this there is no LF that was not handed out.
    searched: usize,
    /// Bytes of the line that is being passed over.
    passing: Option<u64>,
}

impl Splitter {
    fn new(limit: usize) -> Self {
        Self { limit, bytes: Vec::new(), start: 0, searched: 0, passing: None }
    }

    fn push(&mut self, window: &[u8]) {
        self.bytes.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        if self.bytes.is_empty() && self.bytes.capacity() > 16 * WINDOW_BYTES {
            self.bytes = Vec::new();
        }
        self.bytes.extend_from_slice(window);
    }

    fn next_line(&mut self) -> Option<Next> {
        let unseen = self.bytes.get(self.searched..).unwrap_or_default();
        let Some(length) = unseen.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            self.pass_over();
            return None;
        };
        let end = self.searched + length;
        let line = self.bytes.get(self.start..end).unwrap_or_default();
        let next = match self.passing.take() {
            Some(passed) => Next::TooLong(passed + count(line.len())),
            None if line.len() > self.limit => Next::TooLong(count(line.len())),
            // A long line is handed over rather than copied.
            None if line.len() > 4 * WINDOW_BYTES => return Some(Next::Line(self.hand_over(end))),
            None => Next::Line(line.to_vec()),
        };
        self.start = end + 1;
        self.searched = self.start;
        Some(next)
    }

    /// The line that ends before `end`, in the memory it was read into.
    fn hand_over(&mut self, end: usize) -> Vec<u8> {
        let rest = self.bytes.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.bytes, rest);
        line.truncate(end);
        line.drain(..self.start);
        self.start = 0;
        self.searched = 0;
        line
    }

    /// Gives up what is there of a line that has become too long.
    fn pass_over(&mut self) {
        let held = self.bytes.len() - self.start;
        if held > self.limit || self.passing.is_some() {
            self.passing = Some(self.passing.unwrap_or(0) + count(held));
            self.bytes.clear();
            self.start = 0;
            self.searched = 0;
        }
    }

    /// What is left when no LF will come any more.
    fn rest(&mut self) -> Option<Next> {
        let line = self.bytes.split_off(self.start);
        self.bytes.clear();
        self.start = 0;
        self.searched = 0;
        match self.passing.take() {
            Some(passed) => Some(Next::TooLong(passed + count(line.len()))),
            None if line.is_empty() => None,
            None => Some(Next::Line(line)),
        }
    }
}

fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(windows: &[&[u8]], limit: usize) -> Vec<Next> {
        let (send, receive) = bounded(windows.len());
        for window in windows {
            send.send(Ok(window.to_vec())).unwrap();
        }
        drop(send);
        let mut input = Input::new(receive, never(), limit);
        let mut seen = Vec::new();
        loop {
            match input.next(true).unwrap() {
                Next::End => return seen,
                next => seen.push(next),
            }
        }
    }

    fn line(text: &str) -> Next {
        Next::Line(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let text = b"one\n\ntwo three\nfour";
        let expected = [line("one"), line(""), line("two three"), line("four")];
        for size in 1..=text.len() {
            let windows: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(all(&windows, 100), expected, "windows of {size}");
        }
    }

    #[test]
    fn a_line_over_the_limit_is_counted_and_the_next_one_is_read_right() {
        let text = b"abcd\nabcde\nx\nabcdefghijk\ny";
        let expected = [line("abcd"), Next::TooLong(5), line("x"), Next::TooLong(11), line("y")];
        for size in 1..=text.len() {
            let windows: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(all(&windows, 4), expected, "windows of {size}");
        }
        assert_eq!(all(&[b"abcdefgh"], 4), [Next::TooLong(8)]);
    }

    #[test]
    fn a_long_line_is_not_held() {
        let mut lines = Splitter::new(10);
        for _ in 0..1000 {
            lines.push(&[b'a'; 100]);
            assert!(lines.next_line().is_none());
            assert!(lines.bytes.len() <= 110);
        }
        lines.push(b"\n");
        assert_eq!(lines.next_line(), Some(Next::TooLong(100_000)));
    }

    #[test]
    fn a_long_line_between_short_ones_is_handed_over() {
        let long = "b".repeat(9 * WINDOW_BYTES / 2);
        let text = format!("a\n{long}\nc\n{long}\n");
        let expected = [line("a"), line(&long), line("c"), line(&long)];
        for size in [1000, WINDOW_BYTES, text.len()] {
            let windows: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            assert!(all(&windows, MAX_LINE_BYTES) == expected, "windows of {size}");
        }
    }

    #[test]
    fn what_has_not_arrived_is_not_waited_for_and_a_stop_ends_the_input() {
        let (send, receive) = bounded(4);
        let (stop, stopped) = bounded(1);
        let mut input = Input::new(receive, stopped, 100);
        assert_eq!(input.next(false).unwrap(), Next::Nothing);
        send.send(Ok(b"a\nb".to_vec())).unwrap();
        assert_eq!(input.next(false).unwrap(), line("a"));
        assert_eq!(input.next(false).unwrap(), Next::Nothing);
        stop.send(()).unwrap();
        assert_eq!(input.next(true).unwrap(), Next::End);
    }
}
