//! Fixed layouts: where each field of a header stands. Always: a layout's fields follow each other without a gap, which
//! a const assertion checks, and `format-spec/` lists the same ones, which a test checks. Never: lengths taken from disk.

/// One field of a fixed layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) at: usize,
    pub(crate) len: usize,
}

const CHECKED: &str = "the buffer has the length of its layout, which the caller checked";

impl Field {
    pub(crate) const fn new(name: &'static str, at: usize, len: usize) -> Self {
        Self { name, at, len }
    }

    const fn end(&self) -> usize {
        self.at + self.len
    }

    /// The field's bytes; `buf` is as long as the layout.
    pub(crate) fn get<'a>(&self, buf: &'a [u8]) -> &'a [u8] {
        buf.get(self.at..self.end()).expect(CHECKED)
    }

    /// Writes the field; `value` has the field's length.
    pub(crate) fn put(&self, buf: &mut [u8], value: &[u8]) {
        buf.get_mut(self.at..self.end()).expect(CHECKED).copy_from_slice(value);
    }

    pub(crate) fn array<const N: usize>(&self, buf: &[u8]) -> [u8; N] {
        self.get(buf).try_into().expect("the field is asked for with its own length")
    }

    pub(crate) fn u8(&self, buf: &[u8]) -> u8 {
        u8::from_le_bytes(self.array(buf))
    }

    pub(crate) fn u16(&self, buf: &[u8]) -> u16 {
        u16::from_le_bytes(self.array(buf))
    }

    pub(crate) fn u32(&self, buf: &[u8]) -> u32 {
        u32::from_le_bytes(self.array(buf))
    }

    pub(crate) fn u64(&self, buf: &[u8]) -> u64 {
        u64::from_le_bytes(self.array(buf))
    }

    pub(crate) fn is_zero(&self, buf: &[u8]) -> bool {
        self.get(buf).iter().all(|byte| *byte == 0)
    }
}

/// Whether `fields` cover `len` bytes from 0 on, each beginning where the one before ends.
pub(crate) const fn covers(mut fields: &[Field], len: usize) -> bool {
    let mut at = 0;
    while let [field, rest @ ..] = fields {
        if field.at != at {
            return false;
        }
        at = field.end();
        fields = rest;
    }
    at == len
}

/// Declares the fields of a layout as constants and as the list `FIELDS`, and proves that they cover it.
macro_rules! layout {
    ($total:expr; $($name:ident $at:literal $len:literal $text:literal;)+) => {
        $(pub(crate) const $name: crate::format::layout::Field =
            crate::format::layout::Field::new($text, $at, $len);)+
        /// Every field in order.
        pub(crate) const FIELDS: &[crate::format::layout::Field] = &[$($name),+];
        const _: () = assert!(crate::format::layout::covers(FIELDS, $total));
    };
}
pub(crate) use layout;

#[cfg(test)]
mod tests {
    use super::{Field, covers};

    #[test]
    fn covers_refuses_gaps_overlaps_and_other_lengths() {
        let fields = [Field::new("a", 0, 4), Field::new("b", 4, 2)];
        assert!(covers(&fields, 6));
        assert!(!covers(&fields, 8));
        assert!(!covers(&[Field::new("a", 0, 4), Field::new("b", 5, 1)], 6));
        assert!(!covers(&[Field::new("a", 0, 4), Field::new("b", 3, 3)], 6));
    }

    #[test]
    fn fields_are_little_endian() {
        let field = Field::new("a", 1, 4);
        let mut buf = [0u8; 6];
        field.put(&mut buf, &0x0403_0201u32.to_le_bytes());
        assert_eq!(buf, [0, 1, 2, 3, 4, 0]);
        assert_eq!(field.u32(&buf), 0x0403_0201);
        assert!(!field.is_zero(&buf));
    }
}
