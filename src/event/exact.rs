//! Text that is matched against one exact spelling, piece by piece from its front.

/// Where the quote stands that ends a string, given what is behind the one that begins it.
pub(super) trait ReadString: Fn(&[u8]) -> Option<usize> + Copy {}

impl<F: Fn(&[u8]) -> Option<usize> + Copy> ReadString for F {}

/// The part of a text that was not matched yet. What does not match takes nothing.
pub(super) struct Text<'a> {
    pub(super) rest: &'a str,
}

impl<'a> Text<'a> {
    /// An array, so that it is compared in place.
    #[inline]
    pub(super) fn skip<const N: usize>(&mut self, expected: &[u8; N]) -> Option<()> {
        if self.rest.as_bytes().first_chunk::<N>()? != expected {
            return None;
        }
        self.rest = self.rest.get(N..)?;
        Some(())
    }

    #[inline]
    pub(super) fn take(&mut self, bytes: usize) -> Option<&'a str> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    /// `key`, then a string's bytes up to its closing quote, which is taken too; nothing is taken without `key`.
    #[inline]
    pub(super) fn member<const N: usize>(&mut self, key: &[u8; N], read: impl ReadString) -> Option<&'a str> {
        self.skip(key)?;
        self.string(read)
    }

    /// A string's bytes up to its closing quote, which is taken too.
    #[inline]
    pub(super) fn string(&mut self, read: impl ReadString) -> Option<&'a str> {
        let end = read(self.rest.as_bytes())?;
        let (inner, quoted) = self.rest.split_at_checked(end)?;
        self.rest = quoted.get(1..)?;
        Some(inner)
    }

    /// A whole number without sign and leading zeros.
    #[inline]
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
