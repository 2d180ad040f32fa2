//! How the types of the vocabulary are read out of checked text.
//!
//! Reading walks the text once a level; it builds no tree in between. A fault carries the path from the
//! inside out, which costs nothing while all is well.

use serde::{Deserialize, Deserializer, de};

use super::super::json::{JsonKind, JsonRef, JsonText, MAX_TYPED_DEPTH, Step, render_path};

/// What was expected where.
#[derive(Debug)]
pub(crate) struct ReadFault {
    expected: String,
    /// From the inside out.
    steps: Vec<OwnedStep>,
}

#[derive(Debug)]
enum OwnedStep {
    Key(&'static str),
    Index(usize),
}

impl ReadFault {
    pub(crate) fn expected(what: impl Into<String>) -> Self {
        Self { expected: what.into(), steps: Vec::new() }
    }

    fn inside(mut self, step: OwnedStep) -> Self {
        self.steps.push(step);
        self
    }
}

impl std::fmt::Display for ReadFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let step = |step: &OwnedStep| match step {
            OwnedStep::Key(key) => Step::Key(key),
            OwnedStep::Index(n) => Step::Index(*n),
        };
        let steps: Vec<_> = self.steps.iter().rev().map(step).collect();
        write!(f, "expected {} at {}", self.expected, render_path(&steps))
    }
}

/// A type that a member can hold.
pub(crate) trait Field: Sized {
    fn from_json(value: JsonRef<'_>) -> Result<Self, ReadFault>;

    /// What stands for a member that is not there, if it may be missing.
    fn missing() -> Option<Self> {
        None
    }

    /// Whether the member is left out when it is written.
    fn is_missing(&self) -> bool {
        false
    }
}

/// A type made of an object's members.
pub(crate) trait Record: Sized {
    /// Reads the members of `object`, except `tag`, which says what the object is.
    fn from_members(object: JsonRef<'_>, tag: Option<&str>) -> Result<Self, ReadFault>;

    /// Writes the members.
    fn write_members<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

/// The member `key`, found as `value`.
pub(crate) fn member<T: Field>(key: &'static str, value: Option<JsonRef<'_>>) -> Result<T, ReadFault> {
    match value {
        Some(value) => T::from_json(value).map_err(|fault| fault.inside(OwnedStep::Key(key))),
        None => T::missing().ok_or_else(|| ReadFault::expected("a value").inside(OwnedStep::Key(key))),
    }
}

/// `Deserialize` for a type that reads itself out of text.
pub(crate) fn deserialize<'de, T: Field, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let text = JsonText::deserialize(deserializer)?;
    // Blocks hold blocks, so reading recurses as deep as the text does.
    if text.value().depth() > MAX_TYPED_DEPTH {
        let limit = format!("nests deeper than {MAX_TYPED_DEPTH} levels; read the event's data as text");
        return Err(de::Error::custom(limit));
    }
    T::from_json(text.value()).map_err(de::Error::custom)
}

impl<T: Record> Field for T {
    fn from_json(value: JsonRef<'_>) -> Result<Self, ReadFault> {
        if value.kind() != JsonKind::Object {
            return Err(ReadFault::expected("an object"));
        }
        T::from_members(value, None)
    }
}

impl Field for u64 {
    fn from_json(value: JsonRef<'_>) -> Result<Self, ReadFault> {
        value.as_u64().ok_or_else(|| ReadFault::expected("an integer >= 0"))
    }
}

impl Field for bool {
    fn from_json(value: JsonRef<'_>) -> Result<Self, ReadFault> {
        value.as_bool().ok_or_else(|| ReadFault::expected("true or false"))
    }
}

impl Field for String {
    fn from_json(value: JsonRef<'_>) -> Result<Self, ReadFault> {
        let text = value.as_str().ok_or_else(|| ReadFault::expected("a string"))?;
        let text = text.to_string_lossless();
        let text = text.ok_or_else(|| {
            ReadFault::expected("a string without lone surrogates (read the event's data as text)")
        })?;
        Ok(text.into_owned())
    }
}

impl Field for JsonText {
    fn from_json(value: JsonRef<'_>) -> Result<Self, ReadFault> {
        Ok(JsonText::of_checked(value))
    }
}

impl<T: Field> Field for Vec<T> {
    fn from_json(value: JsonRef<'_>) -> Result<Self, ReadFault> {
        if value.kind() != JsonKind::Array {
            return Err(ReadFault::expected("an array"));
        }
        let element = |(i, element)| T::from_json(element).map_err(|fault| fault.inside(OwnedStep::Index(i)));
        value.elements().enumerate().map(element).collect()
    }
}

impl<T: Field> Field for Option<T> {
    fn from_json(value: JsonRef<'_>) -> Result<Self, ReadFault> {
        if value.is_null() { Ok(None) } else { T::from_json(value).map(Some) }
    }

    fn missing() -> Option<Self> {
        Some(None)
    }

    fn is_missing(&self) -> bool {
        self.is_none()
    }
}
