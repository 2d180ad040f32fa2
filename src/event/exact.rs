//! Text that is matched against one exact spelling, piece by piece from its front.

use super::json::closing_quote;

/// The part of a text that was not matched yet. What does not match takes nothing.
pub(super) struct Text<'a> {
    pub(super) rest: &'a str,
}

impl<'a> Text<'a> {
    pub(super) fn skip(&mut self, expected: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    pub(super) fn take(&mut self, bytes: usize) -> Option<&'a str> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    /// `key`, then a string's bytes up to its closing quote, which is taken too; nothing is taken without `key`.
    pub(super) fn member(&mut self, key: &str) -> Option<&'a str> {
        self.skip(key)?;
        self.string()
    }

    /// A string's bytes up to its closing quote, which is taken too. The text was checked to be JSON.
    pub(super) fn string(&mut self) -> Option<&'a str> {
        let end = closing_quote(self.rest.as_bytes())?;
        let (inner, quoted) = self.rest.split_at_checked(end)?;
        self.rest = quoted.strip_prefix('"')?;
        Some(inner)
    }

    /// A whole number without sign and leading zeros.
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        let mut digits = 0usize;
        for byte in self.rest.bytes() {
            if !byte.is_ascii_digit() {
                break;
            }
            value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
            digits += 1;
        }
        let leading_zero = digits > 1 && self.rest.starts_with('0');
        if digits == 0 || leading_zero {
            return None;
        }
        self.rest = self.rest.get(digits..)?;
        Some(value)
    }
}
