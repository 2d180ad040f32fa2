//! Takes numbers and pieces off the front of an input. What is missing reads as zero, so no input is refused.

/// What is left of an input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Up to `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at_checked(len).unwrap_or((self.0, &[]));
        self.0 = rest;
        front
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        out.iter_mut().zip(self.take(N)).for_each(|(to, from)| *to = *from);
        out
    }

    pub(super) fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.array())
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }
}
