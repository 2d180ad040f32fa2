//! Typed data to JSON text, written once (J).
//!
//! Always holds: what it returns is checked JSON. It refuses, with the path of the value, what serde_json
//! writes without a word (NaN and infinities become `null` there) or writes so that readers round it. It
//! never rewrites a [`RawValue`](serde_json::value::RawValue) or [`JsonText`](super::JsonText) inside the data.

mod narrow;

use std::fmt::{self, Write as _};
use std::ops::Range;

use serde::ser::{self, Serialize};

use super::error::{JsonError, JsonErrorKind};
use super::path::{self, Step};
use super::scan;
use super::string::write_string;
use super::text::without_line_breaks;
use narrow::{Key, RawText};

/// How deep typed data may nest: 512 levels. `Serialize` recurses on the caller's stack, so this limit is
/// lower than that of text, which is checked without recursion up to [`MAX_DEPTH`](super::MAX_DEPTH); raw
/// text inside typed data may be as deep as that.
pub const MAX_TYPED_DEPTH: usize = 512;

/// The names under which serde_json hands its verbatim text to any serializer.
const RAW_TOKENS: [&str; 2] = ["$serde_json::private::RawValue", "$serde_json::private::Number"];

/// The text of `value`.
pub(super) fn to_text<T: Serialize + ?Sized>(value: &T) -> Result<String, JsonError> {
    let mut writer = Writer { out: String::with_capacity(128), open: Vec::new() };
    match value.serialize(&mut writer) {
        Ok(()) => Ok(writer.out),
        Err(Refusal(kind, message)) => {
            let offset = writer.out.len();
            Err(JsonError::new(kind, writer.path(), offset, message))
        }
    }
}

/// Why serialising stopped; the place is in the writer.
#[derive(Debug)]
struct Refusal(JsonErrorKind, String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.1)
    }
}

impl std::error::Error for Refusal {}

impl From<fmt::Error> for Refusal {
    fn from(e: fmt::Error) -> Self {
        Self(JsonErrorKind::Refused, e.to_string())
    }
}

impl ser::Error for Refusal {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(JsonErrorKind::Refused, message.to_string())
    }
}

/// A container that is being written.
#[derive(Debug)]
enum Open {
    Array { next: usize },
    Object { empty: bool, key: Range<usize> },
}

#[derive(Debug)]
struct Writer {
    out: String,
    open: Vec<Open>,
}

type Outcome = Result<(), Refusal>;

impl Writer {
    fn path(&self) -> String {
        let steps: Vec<Step<'_>> = self
            .open
            .iter()
            .filter_map(|open| match open {
                Open::Array { next: 0 } => None,
                Open::Array { next } => Some(Step::Index(next.saturating_sub(1))),
                // A name never stands at the text's first byte.
                Open::Object { key, .. } if key.end == 0 => None,
                Open::Object { key, .. } => Some(Step::Key(self.out.get(key.clone()).unwrap_or(""))),
            })
            .collect();
        path::render(&steps)
    }

    fn push(&mut self, open: Open) -> Outcome {
        if self.open.len() >= MAX_TYPED_DEPTH {
            let message =
                format!("typed data nests deeper than {MAX_TYPED_DEPTH} levels; hand it over as text");
            return Err(Refusal(JsonErrorKind::TooDeep, message));
        }
        self.out.push(if matches!(open, Open::Array { .. }) { '[' } else { '{' });
        self.open.push(open);
        Ok(())
    }

    fn pop(&mut self) {
        match self.open.pop() {
            Some(Open::Array { .. }) => self.out.push(']'),
            Some(Open::Object { .. }) => self.out.push('}'),
            None => {}
        }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome {
        if let Some(Open::Array { next }) = self.open.last_mut() {
            if *next != 0 {
                self.out.push(',');
            }
            *next = next.saturating_add(1);
        }
        value.serialize(&mut *self)
    }

    fn comma(&mut self) {
        if let Some(Open::Object { empty, key }) = self.open.last_mut() {
            *key = 0..0;
            if !std::mem::replace(empty, false) {
                self.out.push(',');
            }
        }
    }

    fn colon(&mut self, from: usize) {
        let to = self.out.len();
        if let Some(Open::Object { key, .. }) = self.open.last_mut() {
            *key = from.saturating_add(1)..to.saturating_sub(1);
        }
        self.out.push(':');
    }

    fn name(&mut self, name: &str) -> Outcome {
        self.comma();
        let from = self.out.len();
        write_string(&mut self.out, name)?;
        self.colon(from);
        Ok(())
    }

    /// Opens `{"variant":`.
    fn variant(&mut self, variant: &str) -> Outcome {
        self.push(Open::Object { empty: true, key: 0..0 })?;
        self.name(variant)
    }

    fn float(&mut self, value: f64, shortest: fmt::Arguments<'_>) -> Outcome {
        if !value.is_finite() {
            return Err(Refusal(JsonErrorKind::NotFinite, format!("{value} has no spelling in JSON")));
        }
        Ok(self.out.write_fmt(shortest)?)
    }

    fn wide(&self, text: &str) -> Refusal {
        Refusal(JsonErrorKind::IntegerRange, format!("the integer {text} does not fit 64 bits"))
    }

    /// Takes over text that is JSON already, checked here as any other.
    fn raw(&mut self, text: &str) -> Outcome {
        match scan::whole(text, self.open.len()) {
            Ok((from, to, _)) => {
                self.out.push_str(&without_line_breaks(text.get(from..to).unwrap_or(text)));
                Ok(())
            }
            Err(fault) => {
                Err(Refusal(fault.kind, format!("raw text: {} (its byte {})", fault.message, fault.at)))
            }
        }
    }
}

macro_rules! integers {
    ($($method:ident: $int:ty),*) => {$(
        fn $method(self, value: $int) -> Outcome {
            Ok(write!(self.out, "{value}")?)
        }
    )*};
}

impl<'w> ser::Serializer for &'w mut Writer {
    type Ok = ();
    type Error = Refusal;
    type SerializeSeq = Compound<'w>;
    type SerializeTuple = Compound<'w>;
    type SerializeTupleStruct = Compound<'w>;
    type SerializeTupleVariant = Compound<'w>;
    type SerializeMap = Compound<'w>;
    type SerializeStruct = Compound<'w>;
    type SerializeStructVariant = Compound<'w>;

    integers!(serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64);
    integers!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64);

    fn serialize_i128(self, value: i128) -> Outcome {
        if i64::try_from(value).is_err() && u64::try_from(value).is_err() {
            return Err(self.wide(&value.to_string()));
        }
        Ok(write!(self.out, "{value}")?)
    }

    fn serialize_u128(self, value: u128) -> Outcome {
        match u64::try_from(value) {
            Ok(fits) => self.serialize_u64(fits),
            Err(_) => Err(self.wide(&value.to_string())),
        }
    }

    fn serialize_bool(self, value: bool) -> Outcome {
        self.out.push_str(if value { "true" } else { "false" });
        Ok(())
    }

    // `{:?}` is the shortest text that reads back as the same number, with an exponent where that is shorter.
    fn serialize_f32(self, value: f32) -> Outcome {
        self.float(f64::from(value), format_args!("{value:?}"))
    }

    fn serialize_f64(self, value: f64) -> Outcome {
        self.float(value, format_args!("{value:?}"))
    }

    fn serialize_char(self, value: char) -> Outcome {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Outcome {
        Ok(write_string(&mut self.out, value)?)
    }

    fn serialize_bytes(self, value: &[u8]) -> Outcome {
        self.push(Open::Array { next: 0 })?;
        for byte in value {
            self.element(byte)?;
        }
        self.pop();
        Ok(())
    }

    fn serialize_none(self) -> Outcome {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Outcome {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Outcome {
        self.out.push_str("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Outcome {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Outcome {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Outcome {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Outcome {
        self.variant(variant)?;
        value.serialize(&mut *self)?;
        self.pop();
        Ok(())
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Compound<'w>, Refusal> {
        self.push(Open::Array { next: 0 })?;
        Ok(Compound { writer: self, levels: 1, raw: false })
    }

    fn serialize_tuple(self, len: usize) -> Result<Compound<'w>, Refusal> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Compound<'w>, Refusal> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'w>, Refusal> {
        self.variant(variant)?;
        self.push(Open::Array { next: 0 })?;
        Ok(Compound { writer: self, levels: 2, raw: false })
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Compound<'w>, Refusal> {
        self.push(Open::Object { empty: true, key: 0..0 })?;
        Ok(Compound { writer: self, levels: 1, raw: false })
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Compound<'w>, Refusal> {
        if RAW_TOKENS.contains(&name) {
            return Ok(Compound { writer: self, levels: 0, raw: true });
        }
        self.serialize_map(Some(len))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'w>, Refusal> {
        self.variant(variant)?;
        self.push(Open::Object { empty: true, key: 0..0 })?;
        Ok(Compound { writer: self, levels: 2, raw: false })
    }
}

/// A sequence, map or struct in progress.
struct Compound<'w> {
    writer: &'w mut Writer,
    levels: u8,
    raw: bool,
}

impl Compound<'_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome {
        self.writer.element(value)
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Outcome {
        if self.raw {
            return value.serialize(RawText(self.writer));
        }
        self.writer.name(name)?;
        value.serialize(&mut *self.writer)
    }

    fn finish(self) -> Outcome {
        for _ in 0..self.levels {
            self.writer.pop();
        }
        Ok(())
    }
}

macro_rules! compound {
    ($($trait:ident :: $method:ident),*) => {$(
        impl ser::$trait for Compound<'_> {
            type Ok = ();
            type Error = Refusal;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome {
                self.element(value)
            }
            fn end(self) -> Outcome {
                self.finish()
            }
        }
    )*};
}

compound!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

macro_rules! fields {
    ($($trait:ident),*) => {$(
        impl ser::$trait for Compound<'_> {
            type Ok = ();
            type Error = Refusal;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Outcome {
                self.field(name, value)
            }
            fn end(self) -> Outcome {
                self.finish()
            }
        }
    )*};
}

fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = Refusal;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Outcome {
        self.writer.comma();
        let from = self.writer.out.len();
        key.serialize(Key(self.writer))?;
        self.writer.colon(from);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome {
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Outcome {
        self.finish()
    }
}

#[cfg(test)]
mod tests;
