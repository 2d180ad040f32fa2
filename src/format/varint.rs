//! Unsigned LEB128 in its shortest form, zigzag for signed differences, and a cursor over a slice.
//!
//! One value has one spelling: a longer form is refused, so re-encoding what was decoded gives the same bytes.
//! Nothing here allocates by a count that it has read; [`Cursor::count`] bounds counts by the bytes that are left.

use std::fmt;

/// The longest form of a `u64`.
pub(crate) const MAX_LEN: usize = 10;

/// Why a slice could not be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The bytes end inside a value.
    Truncated,
    /// A varint in a longer form than needed, or above 64 bits.
    NotShortest,
    /// A count that the bytes behind it cannot hold.
    Count(u64),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the bytes end inside a value"),
            Self::NotShortest => f.write_str("a number is not in its shortest form, or beyond 64 bits"),
            Self::Count(n) => write!(f, "a count of {n} is more than the bytes behind it can hold"),
        }
    }
}

/// Appends `value` to `out`.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_seven(value) | 0x80);
        value >>= 7;
    }
    out.push(low_seven(value));
}

/// The number of bytes that [`put`] appends.
#[inline]
pub(crate) fn len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// The value at the front of `bytes`, and how many bytes it takes.
#[inline]
pub(crate) fn get(bytes: &[u8]) -> Result<(u64, usize), Fault> {
    if let Some(&first) = bytes.first()
        && first < 0x80
    {
        return Ok((u64::from(first), 1));
    }
    get_long(bytes)
}

fn get_long(bytes: &[u8]) -> Result<(u64, usize), Fault> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().take(MAX_LEN).enumerate() {
        if i == MAX_LEN - 1 && byte > 1 {
            return Err(Fault::NotShortest);
        }
        value |= u64::from(byte & 0x7F) << (7 * i);
        if byte < 0x80 {
            return if byte == 0 && i > 0 { Err(Fault::NotShortest) } else { Ok((value, i + 1)) };
        }
    }
    Err(Fault::Truncated)
}

/// A signed number as an unsigned one that is small where its magnitude is small.
#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// The inverse of [`zigzag`].
#[inline]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

#[inline]
fn low_seven(value: u64) -> u8 {
    let [low, ..] = value.to_le_bytes();
    low & 0x7F
}

/// Reads a slice from its front.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What was not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], Fault> {
        let (front, rest) = self.rest.split_at_checked(n).ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(front)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Fault> {
        let (&first, rest) = self.rest.split_first().ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(first)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Fault> {
        let (value, n) = get(self.rest)?;
        self.rest = self.rest.get(n..).unwrap_or_default();
        Ok(value)
    }

    /// A varint that must fit in 32 bits.
    pub(crate) fn varint_u32(&mut self) -> Result<u32, Fault> {
        let value = self.varint()?;
        u32::try_from(value).map_err(|_| Fault::Count(value))
    }

    pub(crate) fn zigzag(&mut self) -> Result<i64, Fault> {
        Ok(unzigzag(self.varint()?))
    }

    /// A count of items of at least `each` bytes that follow: refused when they cannot all be there.
    pub(crate) fn count(&mut self, each: usize) -> Result<usize, Fault> {
        let claimed = self.varint()?;
        let count = usize::try_from(claimed).map_err(|_| Fault::Count(claimed))?;
        match count.checked_mul(each) {
            Some(bytes) if bytes <= self.rest.len() => Ok(count),
            _ => Err(Fault::Count(claimed)),
        }
    }

    /// A length and as many bytes.
    pub(crate) fn sized(&mut self) -> Result<&'a [u8], Fault> {
        let n = self.count(1)?;
        self.take(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, value);
        out
    }

    #[test]
    fn borders_have_the_lengths_of_the_spec() {
        for (value, n) in
            [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10), (1 << 63, 10)]
        {
            let bytes = encoded(value);
            assert_eq!((bytes.len(), len(value)), (n, n), "{value}");
            assert_eq!(get(&bytes), Ok((value, n)));
        }
        assert_eq!(encoded(300), [0xAC, 0x02]);
    }

    #[test]
    fn longer_forms_and_more_than_64_bits_are_refused() {
        assert_eq!(get(&[0x80, 0x00]), Err(Fault::NotShortest));
        assert_eq!(get(&[0xFF, 0x80, 0x00]), Err(Fault::NotShortest));
        assert_eq!(get(&[0xFF; 9].iter().copied().chain([2]).collect::<Vec<_>>()), Err(Fault::NotShortest));
        assert_eq!(get(&[0xFF; 12]), Err(Fault::NotShortest));
        assert_eq!(get(&[0x80]), Err(Fault::Truncated));
        assert_eq!(get(&[]), Err(Fault::Truncated));
    }

    #[test]
    fn a_count_is_bounded_by_what_follows() {
        assert_eq!(Cursor::new(&[3, 1, 2, 3]).count(1), Ok(3));
        assert_eq!(Cursor::new(&[3, 1, 2]).count(1), Err(Fault::Count(3)));
        assert_eq!(Cursor::new(&[2, 1, 2, 3]).count(2), Err(Fault::Count(2)));
        let huge = encoded(u64::MAX);
        assert_eq!(Cursor::new(&huge).count(16), Err(Fault::Count(u64::MAX)));
    }

    proptest! {
        #[test]
        fn every_value_comes_back(value: u64, shift in 0u32..64, signed: i64) {
            let value = value >> shift;
            let bytes = encoded(value);
            prop_assert_eq!(bytes.len(), len(value));
            prop_assert_eq!(get(&bytes), Ok((value, bytes.len())));
            prop_assert_eq!(unzigzag(zigzag(signed)), signed);
        }

        #[test]
        fn whatever_decodes_has_one_spelling(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            if let Ok((value, n)) = get(&bytes) {
                prop_assert_eq!(encoded(value), &bytes[..n]);
            }
        }
    }
}
