//! A string inside checked text, compared by content and kept as spelled.
//!
//! Content is a row of Unicode code points, in which a lone-surrogate escape stands for itself (V3). It never
//! fails on one: only [`JsonStr::to_string_lossless`] says that Rust's `String` has no place for it.

use std::borrow::Cow;
use std::fmt;

/// What stands between the quotes of a JSON string.
#[derive(Clone, Copy)]
pub struct JsonStr<'a> {
    inner: &'a str,
}

impl<'a> JsonStr<'a> {
    /// `inner` is what stands between the quotes of a checked string.
    pub(crate) fn from_inner(inner: &'a str) -> Self {
        Self { inner }
    }

    /// The text between the quotes, escapes as spelled.
    #[must_use]
    pub fn raw_inner(&self) -> &'a str {
        self.inner
    }

    /// Whether the content is the empty string.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Whether the content equals `text`.
    #[must_use]
    pub fn eq_str(&self, text: &str) -> bool {
        if !self.inner.contains('\\') {
            return self.inner == text;
        }
        self.code_points().eq(text.chars().map(u32::from))
    }

    /// The content, or `None` when it holds a lone surrogate.
    #[must_use]
    pub fn to_string_lossless(&self) -> Option<Cow<'a, str>> {
        if !self.inner.contains('\\') {
            return Some(Cow::Borrowed(self.inner));
        }
        self.code_points().map(char::from_u32).collect::<Option<String>>().map(Cow::Owned)
    }

    /// The content, with U+FFFD for each lone surrogate.
    #[must_use]
    pub fn to_utf8_lossy(&self) -> Cow<'a, str> {
        if !self.inner.contains('\\') {
            return Cow::Borrowed(self.inner);
        }
        let chars = self.code_points().map(|c| char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER));
        Cow::Owned(chars.collect())
    }

    /// The content as code points; a surrogate appears only where it has no partner.
    pub(crate) fn code_points(&self) -> CodePoints<'a> {
        CodePoints { chars: self.inner.chars(), held: None }
    }
}

impl PartialEq for JsonStr<'_> {
    fn eq(&self, other: &JsonStr<'_>) -> bool {
        self.inner == other.inner || self.code_points().eq(other.code_points())
    }
}

impl Eq for JsonStr<'_> {}

impl PartialEq<str> for JsonStr<'_> {
    fn eq(&self, other: &str) -> bool {
        self.eq_str(other)
    }
}

impl PartialEq<&str> for JsonStr<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.eq_str(other)
    }
}

impl std::hash::Hash for JsonStr<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        for point in self.code_points() {
            state.write_u32(point);
        }
    }
}

impl fmt::Debug for JsonStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.inner)
    }
}

/// See [`JsonStr::code_points`].
pub(crate) struct CodePoints<'a> {
    chars: std::str::Chars<'a>,
    held: Option<u32>,
}

impl CodePoints<'_> {
    /// The next code point or UTF-16 unit as spelled, pairs not yet joined.
    fn unit(&mut self) -> Option<u32> {
        if let Some(unit) = self.held.take() {
            return Some(unit);
        }
        let c = self.chars.next()?;
        if c != '\\' {
            return Some(u32::from(c));
        }
        Some(match self.chars.next()? {
            'b' => 0x08,
            'f' => 0x0C,
            'n' => 0x0A,
            'r' => 0x0D,
            't' => 0x09,
            'u' => {
                let mut unit = 0;
                for _ in 0..4 {
                    unit = (unit << 4) | self.chars.next()?.to_digit(16)?;
                }
                unit
            }
            other => u32::from(other),
        })
    }
}

impl Iterator for CodePoints<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let unit = self.unit()?;
        if (0xD800..0xDC00).contains(&unit) {
            match self.unit() {
                Some(low @ 0xDC00..0xE000) => {
                    return Some(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
                }
                other => self.held = other,
            }
        }
        Some(unit)
    }
}

/// Writes `text` as a JSON string with the fewest escapes, as the reference's writer spells it.
pub(crate) fn write_string<W: fmt::Write>(out: &mut W, text: &str) -> fmt::Result {
    out.write_str("\"")?;
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|b| b < 0x20 || b == b'"' || b == b'\\') {
        let (plain, tail) = rest.split_at(at);
        out.write_str(plain)?;
        let mut chars = tail.chars();
        match chars.next() {
            Some('"') => out.write_str("\\\"")?,
            Some('\\') => out.write_str("\\\\")?,
            Some('\u{8}') => out.write_str("\\b")?,
            Some('\u{c}') => out.write_str("\\f")?,
            Some('\n') => out.write_str("\\n")?,
            Some('\r') => out.write_str("\\r")?,
            Some('\t') => out.write_str("\\t")?,
            Some(c) => write!(out, "\\u{:04x}", u32::from(c))?,
            None => {}
        }
        rest = chars.as_str();
    }
    out.write_str(rest)?;
    out.write_str("\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(inner: &str) -> JsonStr<'_> {
        JsonStr::from_inner(inner)
    }

    #[test]
    fn escapes_compare_by_content() {
        assert!(of("a\\u0062\\/\\n").eq_str("ab/\n"));
        assert!(of("\\ud83d\\uDE00") == of("😀"));
        assert!(of("\\ud83d") == of("\\uD83D"));
        assert!(of("\\ud83d") != of("\\ud83e"));
        assert!(of("\\ud83d\\ud83d\\ude00") == of("\\ud83d😀"));
        assert!(of("a") != of("ab"));
        assert!(of("\\ud83dx").code_points().eq([0xD83D, 0x78]));
    }

    #[test]
    fn a_lone_surrogate_is_not_lost_without_a_word() {
        assert_eq!(of("a\\ude00").to_string_lossless(), None);
        assert_eq!(of("a\\ude00").to_utf8_lossy(), "a\u{FFFD}");
        assert_eq!(of("\\ud83d\\ude00").to_string_lossless().unwrap(), "😀");
    }

    #[test]
    fn written_strings_read_back() {
        let text: String = (0..0x100_u32).filter_map(char::from_u32).chain("\u{2028}😀".chars()).collect();
        let mut out = String::new();
        write_string(&mut out, &text).unwrap();
        assert!(of(&out[1..out.len() - 1]).eq_str(&text));
        assert_eq!(serde_json::to_string(&text).unwrap(), out);
    }
}
