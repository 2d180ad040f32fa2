//! Standard output and standard error.
//!
//! What always holds: data goes to standard output, words to standard error; text of sessions reaches a terminal
//! without its control characters. Work that changes something is not cut short because nobody reads about it.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use serde::Serialize;

/// Standard output, buffered.
pub(crate) struct Output {
    to: BufWriter<StdoutLock<'static>>,
    /// Whether data is wanted as JSON.
    pub(crate) json: bool,
    /// A closed pipe is no error; what is printed after it is dropped.
    goes_on: bool,
    gone: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { to: BufWriter::with_capacity(1 << 16, io::stdout().lock()), json, goes_on: false, gone: false }
    }

    /// For a command that changes something: it does all its work, also when its reader has gone away.
    pub(crate) fn going_on(mut self) -> Self {
        self.goes_on = true;
        self
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.gone {
            return Ok(());
        }
        match write(&mut self.to) {
            Err(error) if self.goes_on && error.kind() == io::ErrorKind::BrokenPipe => {
                self.gone = true;
                Ok(())
            }
            written => written,
        }
    }

    /// One line.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        self.write(|to| writeln!(to, "{text}"))
    }

    /// One line of JSON.
    pub(crate) fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> io::Result<()> {
        self.write(|to| {
            serde_json::to_writer(&mut *to, value)?;
            to.write_all(b"\n")
        })
    }

    /// What has been printed leaves the process.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.write(Write::flush)
    }
}

/// Words for the person at the terminal. Nobody can be told when standard error is gone.
pub(crate) fn say(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether standard error is a terminal.
pub(crate) fn on_terminal() -> bool {
    io::stderr().is_terminal()
}

/// `text` with its control characters escaped.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unprintable(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Control characters, line separators and the marks that turn the direction of writing.
fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// The first `most` characters of `text` on one line.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let mut shown: String = text.chars().take(most + 1).map(|c| if c == '\n' { ' ' } else { c }).collect();
    if shown.chars().count() > most {
        shown.pop();
        shown.push('…');
    }
    printable(&shown).into_owned()
}
