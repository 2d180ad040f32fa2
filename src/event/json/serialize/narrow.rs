//! Serializers for the two places where only a string may stand: a map's key, and raw text handed over.

use std::fmt::Display;

use serde::ser::{self, Impossible, Serialize};

use super::{Outcome, Refusal, Writer};
use crate::event::json::error::JsonErrorKind;
use crate::event::json::string::write_string;

/// Takes a map's key: strings, characters and unit variants, nothing that would have to be turned into one.
pub(super) struct Key<'w>(pub(super) &'w mut Writer);

/// Takes the text that serde_json hands over for a raw value.
pub(super) struct RawText<'w>(pub(super) &'w mut Writer);

trait Narrow: Sized {
    fn text(self, text: &str) -> Outcome;
    fn refuse(found: &dyn Display) -> Refusal;
}

impl Narrow for Key<'_> {
    fn text(self, text: &str) -> Outcome {
        Ok(write_string(&mut self.0.out, text)?)
    }

    fn refuse(found: &dyn Display) -> Refusal {
        Refusal(JsonErrorKind::KeyType, format!("a map key that is not a string but {found}"))
    }
}

impl Narrow for RawText<'_> {
    fn text(self, text: &str) -> Outcome {
        self.0.raw(text)
    }

    fn refuse(found: &dyn Display) -> Refusal {
        Refusal(JsonErrorKind::Refused, format!("raw JSON handed over not as text but as {found}"))
    }
}

macro_rules! refused {
    ($($method:ident: $scalar:ty = $what:literal),*) => {$(
        fn $method(self, value: $scalar) -> Outcome {
            Err(Self::refuse(&format_args!("{} {value}", $what)))
        }
    )*};
}

macro_rules! narrow {
    ($($name:ident),*) => {$(
        impl ser::Serializer for $name<'_> {
            type Ok = ();
            type Error = Refusal;
            type SerializeSeq = Impossible<(), Refusal>;
            type SerializeTuple = Impossible<(), Refusal>;
            type SerializeTupleStruct = Impossible<(), Refusal>;
            type SerializeTupleVariant = Impossible<(), Refusal>;
            type SerializeMap = Impossible<(), Refusal>;
            type SerializeStruct = Impossible<(), Refusal>;
            type SerializeStructVariant = Impossible<(), Refusal>;

            refused!(serialize_bool: bool = "the boolean");
            refused!(serialize_i8: i8 = "the integer", serialize_i16: i16 = "the integer");
            refused!(serialize_i32: i32 = "the integer", serialize_i64: i64 = "the integer");
            refused!(serialize_u8: u8 = "the integer", serialize_u16: u16 = "the integer");
            refused!(serialize_u32: u32 = "the integer", serialize_u64: u64 = "the integer");
            refused!(serialize_i128: i128 = "the integer", serialize_u128: u128 = "the integer");
            refused!(serialize_f32: f32 = "the number", serialize_f64: f64 = "the number");

            fn serialize_char(self, value: char) -> Outcome {
                self.text(value.encode_utf8(&mut [0; 4]))
            }

            fn serialize_str(self, value: &str) -> Outcome {
                self.text(value)
            }

            fn serialize_bytes(self, _: &[u8]) -> Outcome {
                Err(Self::refuse(&"bytes"))
            }

            fn serialize_none(self) -> Outcome {
                Err(Self::refuse(&"nothing"))
            }

            fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Outcome {
                value.serialize(self)
            }

            fn serialize_unit(self) -> Outcome {
                Err(Self::refuse(&"a unit"))
            }

            fn serialize_unit_struct(self, _: &'static str) -> Outcome {
                Err(Self::refuse(&"a unit struct"))
            }

            fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Outcome {
                self.text(variant)
            }

            fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Outcome {
                value.serialize(self)
            }

            fn serialize_newtype_variant<T: Serialize + ?Sized>(
                self,
                _: &'static str,
                _: u32,
                _: &'static str,
                _: &T,
            ) -> Outcome {
                Err(Self::refuse(&"an enum variant with data"))
            }

            fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Refusal> {
                Err(Self::refuse(&"a sequence"))
            }

            fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Refusal> {
                Err(Self::refuse(&"a tuple"))
            }

            fn serialize_tuple_struct(
                self,
                _: &'static str,
                _: usize,
            ) -> Result<Self::SerializeTupleStruct, Refusal> {
                Err(Self::refuse(&"a tuple"))
            }

            fn serialize_tuple_variant(
                self,
                _: &'static str,
                _: u32,
                _: &'static str,
                _: usize,
            ) -> Result<Self::SerializeTupleVariant, Refusal> {
                Err(Self::refuse(&"an enum variant with data"))
            }

            fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Refusal> {
                Err(Self::refuse(&"a map"))
            }

            fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Refusal> {
                Err(Self::refuse(&"a struct"))
            }

            fn serialize_struct_variant(
                self,
                _: &'static str,
                _: u32,
                _: &'static str,
                _: usize,
            ) -> Result<Self::SerializeStructVariant, Refusal> {
                Err(Self::refuse(&"an enum variant with data"))
            }
        }
    )*};
}

narrow!(Key, RawText);
