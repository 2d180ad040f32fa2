//! The scanner: one pass over bytes that decides whether they are JSON.
//!
//! Always holds: it never recurses, and it keeps one bit per open level. It never builds a value, never
//! copies, and accepts what J accepts: lone-surrogate escapes and every spelling of a number that fits a
//! double. The same code runs at write and at read.

use super::error::JsonErrorKind;
use super::number;

/// How deep arrays and objects may nest (J): 65,536 levels.
pub const MAX_DEPTH: usize = 65_536;

/// Where and why a scan stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: JsonErrorKind,
    pub(crate) at: usize,
    pub(crate) message: &'static str,
}

/// Which containers are open, one bit each: set for an object.
#[derive(Debug, Default)]
struct Levels {
    depth: usize,
    low: u64,
    high: Vec<u64>,
}

impl Levels {
    fn push(&mut self, object: bool) {
        // 64 levels live in one word, so that ordinary payloads allocate nothing.
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.high.push(self.low);
            self.low = 0;
        }
        self.low = (self.low << 1) | u64::from(object);
        self.depth = self.depth.saturating_add(1);
    }

    fn pop(&mut self) {
        self.low >>= 1;
        self.depth = self.depth.saturating_sub(1);
        if self.depth != 0
            && self.depth.is_multiple_of(64)
            && let Some(word) = self.high.pop()
        {
            self.low = word;
        }
    }

    fn in_object(&self) -> bool {
        self.low & 1 == 1
    }
}

/// A cursor over text that is still to be checked.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    broken: bool,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// The top bit of each byte that is zero; exact up to the first one, which is all that is asked of it.
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & TOPS
}

/// Marks bytes that end the plain part of a string: a quote, a backslash, a control character.
const fn string_stops(word: u64) -> u64 {
    let controls = word.wrapping_sub(ONES.wrapping_mul(0x20)) & !word & TOPS;
    controls | zero_bytes(word ^ ONES.wrapping_mul(0x22)) | zero_bytes(word ^ ONES.wrapping_mul(0x5C))
}

/// Bytes that are looked at together: compilers make one comparison of a loop over so many.
const BLOCK: usize = 32;

/// How many bytes of a string are plain before the first stop; the last few bytes of the text may be left out.
#[inline]
fn plain(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        let is_stop = |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
        if block.iter().fold(0, |stops, byte| stops | is_stop(*byte)) != 0 {
            break;
        }
        at += BLOCK;
    }
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let stops = string_stops(u64::from_le_bytes(*chunk));
        if stops != 0 {
            return at + (stops.trailing_zeros() >> 3) as usize;
        }
        at += 8;
    }
    at
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0, broken: false }
    }

    /// The offset of the next byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Whether a line break was seen between tokens (V3).
    pub(crate) fn saw_line_break(&self) -> bool {
        self.broken
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    pub(crate) fn bump(&mut self) {
        // Never behind the end by more than one: it stops where `peek` finds nothing.
        self.at += 1;
    }

    pub(crate) fn fault(&self, message: &'static str) -> Fault {
        Fault { kind: JsonErrorKind::Syntax, at: self.at, message }
    }

    /// Skips white space and returns the byte behind it.
    #[inline]
    pub(crate) fn next_token(&mut self) -> Option<u8> {
        loop {
            let byte = self.peek()?;
            match byte {
                b' ' | b'\t' => {}
                b'\n' | b'\r' => self.broken = true,
                _ => return Some(byte),
            }
            self.bump();
        }
    }

    /// Checks that nothing but white space is left.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        match self.next_token() {
            None => Ok(()),
            Some(_) => Err(self.fault("text behind the value")),
        }
    }

    /// Checks one value, of which `outer` levels are open around it, and leaves the cursor behind it.
    pub(crate) fn value(&mut self, outer: usize) -> Result<(), Fault> {
        let mut levels = Levels::default();
        loop {
            match self.next_token() {
                Some(b'"') => self.string()?,
                Some(open @ (b'{' | b'[')) => {
                    if levels.depth.saturating_add(outer) >= MAX_DEPTH {
                        let kind = JsonErrorKind::TooDeep;
                        return Err(Fault {
                            kind,
                            at: self.at,
                            message: "more than 65536 levels of nesting",
                        });
                    }
                    self.bump();
                    levels.push(open == b'{');
                    if self.next_token() == Some(if open == b'{' { b'}' } else { b']' }) {
                        self.bump();
                        levels.pop();
                    } else {
                        if open == b'{' {
                            self.key()?;
                        }
                        continue;
                    }
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal(b"true")?,
                Some(b'f') => self.literal(b"false")?,
                Some(b'n') => self.literal(b"null")?,
                Some(_) => return Err(self.fault("expected a value")),
                None => return Err(self.fault("the text ends where a value should be")),
            }
            if !self.behind_value(&mut levels)? {
                return Ok(());
            }
        }
    }

    /// Behind a value: closes levels; true when another value must follow, false when the last is closed.
    #[inline]
    fn behind_value(&mut self, levels: &mut Levels) -> Result<bool, Fault> {
        while levels.depth != 0 {
            match (self.next_token(), levels.in_object()) {
                (Some(b','), true) => {
                    self.bump();
                    self.next_token();
                    self.key()?;
                    return Ok(true);
                }
                (Some(b','), false) => {
                    self.bump();
                    return Ok(true);
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    self.bump();
                    levels.pop();
                }
                (Some(_), true) => return Err(self.fault("expected `,` or `}`")),
                (Some(_), false) => return Err(self.fault("expected `,` or `]`")),
                (None, true) => return Err(self.fault("the text ends inside an object")),
                (None, false) => return Err(self.fault("the text ends inside an array")),
            }
        }
        Ok(false)
    }

    /// Checks a member's name and its colon; the cursor stands on the name, whose end is returned.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<usize, Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.fault("expected a member name in quotes"));
        }
        self.string()?;
        let end = self.at;
        if self.next_token() != Some(b':') {
            return Err(self.fault("expected `:` behind a member name"));
        }
        self.bump();
        Ok(end)
    }

    /// Checks a string; the cursor stands on its opening quote.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<(), Fault> {
        self.bump();
        self.string_rest()
    }

    /// As [`string`](Self::string), behind the opening quote.
    #[inline]
    fn string_rest(&mut self) -> Result<(), Fault> {
        loop {
            self.skip_plain();
            match self.peek() {
                Some(b'"') => {
                    self.bump();
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(0..=0x1F) => return Err(self.fault("a control character inside a string")),
                Some(_) => self.bump(),
                None => return Err(self.fault("the text ends inside a string")),
            }
        }
    }

    /// Skips what is plain in a string, up to a stop or the last bytes of the text.
    #[inline]
    fn skip_plain(&mut self) {
        self.at += plain(self.bytes.get(self.at..).unwrap_or_default());
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.bump();
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.bump();
                Ok(())
            }
            Some(b'u') => {
                self.bump();
                for _ in 0..4 {
                    if !self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
                        return Err(self.fault("`\\u` needs four hexadecimal digits"));
                    }
                    self.bump();
                }
                Ok(())
            }
            Some(_) => Err(self.fault("an unknown escape inside a string")),
            None => Err(self.fault("the text ends inside a string")),
        }
    }

    fn literal(&mut self, word: &'static [u8]) -> Result<(), Fault> {
        if self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.fault("expected a value"))
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let from = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.bump();
        }
        if self.at == from { Err(self.fault("expected a digit")) } else { Ok(()) }
    }

    /// Checks a number; the cursor stands on its first byte.
    pub(crate) fn number(&mut self) -> Result<(), Fault> {
        let from = self.at;
        if self.peek() == Some(b'-') {
            self.bump();
        }
        if self.peek() == Some(b'0') {
            self.bump();
            if self.peek().is_some_and(|b| b.is_ascii_digit()) {
                return Err(self.fault("a number with a leading zero"));
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.bump();
            self.digits()?;
        }
        let exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if exponent {
            self.bump();
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.bump();
            }
            self.digits()?;
        }
        // Without an exponent it takes 309 digits to overflow, so ordinary numbers are not converted.
        let long = self.at.saturating_sub(from) > 300;
        if (exponent || long) && self.bytes.get(from..self.at).is_none_or(number::overflows) {
            let kind = JsonErrorKind::NumberOverflow;
            return Err(Fault { kind, at: from, message: "a number that overflows a double" });
        }
        Ok(())
    }
}

/// Where the quote stands that ends a string, whose content `bytes` begins with and which was checked before.
pub(crate) fn closing_quote(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += plain(bytes.get(at..)?);
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Where the quote stands that ends a string, whose content `text` begins with and which was not checked; none for what
/// no string can hold.
pub(crate) fn checked_quote(text: &[u8]) -> Option<usize> {
    let mut scanner = Scanner { bytes: text, at: 0, broken: false };
    scanner.string_rest().ok()?;
    scanner.at.checked_sub(1)
}

/// Whether `text` can stand between the quotes of a string.
pub(crate) fn is_string_content(text: &str) -> bool {
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0, broken: false };
    loop {
        scanner.skip_plain();
        match scanner.peek() {
            None => return true,
            Some(b'\\') => {
                if scanner.escape().is_err() {
                    return false;
                }
            }
            Some(b'"' | 0..=0x1F) => return false,
            Some(_) => scanner.bump(),
        }
    }
}

/// Checks that `text` is one value with nothing but white space around it: where the value begins and ends,
/// and whether a line break stands between tokens.
pub(crate) fn whole(text: &str, outer: usize) -> Result<(usize, usize, bool), Fault> {
    let mut scanner = Scanner::new(text);
    scanner.next_token();
    let from = scanner.at();
    scanner.value(outer)?;
    let to = scanner.at();
    scanner.end()?;
    Ok((from, to, scanner.saw_line_break()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> bool {
        whole(text, 0).is_ok()
    }

    #[test]
    fn accepts_every_kind_of_value() {
        for text in
            ["null", "true", "false", "0", "-0", "1.5e-7", "\"\"", "[]", "{}", " [1 , {\"a\" : [ ] } ]\r\n"]
        {
            assert!(ok(text), "{text}");
        }
    }

    #[test]
    fn refuses_mismatched_brackets_across_the_word_border() {
        for depth in [1_usize, 63, 64, 65, 127, 128, 129, 200] {
            for object in [false, true] {
                let (open, close) = if object { ("{\"k\":", "}") } else { ("[", "]") };
                let good = format!("[{}0{}]", open.repeat(depth), close.repeat(depth));
                assert!(ok(&good), "{depth} {object}");
                let swapped = if object { "]" } else { "}" };
                for level in [0, depth / 2, depth - 1] {
                    let tail: String = (0..depth).map(|i| if i == level { swapped } else { close }).collect();
                    assert!(!ok(&format!("[{}0{tail}]", open.repeat(depth))), "{depth} {object} {level}");
                }
            }
        }
    }

    #[test]
    fn the_limit_of_nesting_is_exact() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(ok(&nested(MAX_DEPTH)));
        let fault = whole(&nested(MAX_DEPTH + 1), 0).unwrap_err();
        assert_eq!((fault.kind, fault.at), (JsonErrorKind::TooDeep, MAX_DEPTH));
        assert!(whole("[[]]", MAX_DEPTH - 1).is_err());
        assert!(whole("[1]", MAX_DEPTH - 1).is_ok());
    }

    #[test]
    fn every_byte_at_every_place_of_a_string_is_judged() {
        for len in (0..20_usize).chain([31, 32, 33, 40, 63, 64, 65, 70]) {
            for at in 0..=len {
                for byte in 0_u8..0x80 {
                    let mut text = String::from("\"");
                    text.push_str(&"x".repeat(at));
                    text.push(char::from(byte));
                    text.push_str(&"é".repeat(len - at));
                    text.push('"');
                    let expected = byte >= 0x20 && byte != b'"' && byte != b'\\';
                    // A quote in front of nothing but the end leaves one quote too many.
                    assert_eq!(ok(&text), expected, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn faults_name_their_place() {
        for (text, at) in [("[1,]", 3), ("{\"a\" 1}", 5), ("[1 2]", 3), ("\"\\x\"", 2), ("1 2", 2), ("", 0)] {
            assert_eq!(whole(text, 0).unwrap_err().at, at, "{text}");
        }
    }
}
