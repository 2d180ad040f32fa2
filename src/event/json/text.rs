//! Checked JSON text, owned.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::value::RawValue;

use super::error::JsonError;
use super::value::JsonRef;
use super::{scan, serialize};
use crate::error::Result;

/// Checks that `text` is one JSON value that a record may carry (J); white space may stand around it.
///
/// # Errors
/// What is wrong, with its path and byte offset.
pub fn is_json_value(text: &str) -> std::result::Result<(), JsonError> {
    scan::whole(text, 0).map(|_| ()).map_err(|fault| JsonError::at(text, fault))
}

/// Whether [`JsonText::parse`] keeps `text` exactly as it is.
///
/// # Errors
/// What is wrong, with its path and byte offset.
pub(crate) fn is_kept_as_it_is(text: &str) -> std::result::Result<bool, JsonError> {
    let (from, to, broken) = scan::whole(text, 0).map_err(|fault| JsonError::at(text, fault))?;
    Ok(from == 0 && to == text.len() && !broken)
}

/// The text with a space for each line break. Only for checked JSON, where none can be inside a string.
pub(crate) fn without_line_breaks(text: &str) -> Cow<'_, str> {
    if text.contains(['\n', '\r']) {
        Cow::Owned(text.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(text)
    }
}

/// One JSON value as text: checked, without white space around it, without line breaks, otherwise exactly as
/// it was given (V3). A clone shares the text.
///
/// ```
/// # fn main() -> sessionlog::Result<()> {
/// use sessionlog::event::JsonText;
/// let text = JsonText::parse(r#"{"cost": 0.00043699999999999994, "s": "\ud800"}"#)?;
/// assert_eq!(text.as_str(), r#"{"cost": 0.00043699999999999994, "s": "\ud800"}"#);
/// assert!(JsonText::parse("[1,]").is_err());
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonText {
    text: Arc<str>,
}

impl JsonText {
    /// Checks `text` and keeps it: key order, number spelling and escapes stay; white space around the value
    /// is dropped, and line breaks between tokens become spaces.
    ///
    /// # Errors
    /// [`InvalidJson`](crate::ErrorKind::InvalidJson) when it is not one JSON value,
    /// [`InvalidValue`](crate::ErrorKind::InvalidValue) when a number overflows a double or the nesting
    /// exceeds [`MAX_DEPTH`](super::MAX_DEPTH).
    pub fn parse(text: &str) -> Result<Self> {
        Ok(Self::check(text)?)
    }

    /// As [`parse`](Self::parse), with the error that names the place.
    ///
    /// # Errors
    /// What is wrong, with its path and byte offset.
    pub fn check(text: &str) -> std::result::Result<Self, JsonError> {
        let (from, to, broken) = scan::whole(text, 0).map_err(|fault| JsonError::at(text, fault))?;
        let value = text.get(from..to).unwrap_or(text);
        Ok(if broken {
            Self::from_validated(without_line_breaks(value).into())
        } else {
            Self::from_validated(value.into())
        })
    }

    /// Serialises `value` once, refusing what JSON cannot carry (J).
    ///
    /// # Errors
    /// [`InvalidValue`](crate::ErrorKind::InvalidValue) with the path of a NaN or infinity, of an integer
    /// beyond 64 bits, of a map key that is not a string, or of nesting beyond
    /// [`MAX_TYPED_DEPTH`](super::MAX_TYPED_DEPTH).
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self> {
        Ok(Self::from_validated(serialize::to_text(value)?.into()))
    }

    /// `text` is known to be what [`parse`](Self::parse) keeps.
    pub(crate) fn from_validated(text: Arc<str>) -> Self {
        Self { text }
    }

    /// The text of a value inside checked text.
    pub(crate) fn of_checked(value: JsonRef<'_>) -> Self {
        match without_line_breaks(value.raw()) {
            Cow::Borrowed(text) => Self::from_validated(text.into()),
            Cow::Owned(text) => Self::from_validated(text.into()),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text, shared.
    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// The value, to look into.
    #[must_use]
    pub fn value(&self) -> JsonRef<'_> {
        JsonRef::new_validated(&self.text)
    }
}

/// A value that stands inside checked text, on its own.
///
/// ```
/// # fn main() -> Result<(), sessionlog::event::JsonError> {
/// use sessionlog::event::{JsonRef, JsonText};
/// let line = JsonRef::check(r#"{"data": { "cost":1.50 }}"#)?;
/// let data = line.get("data").map(JsonText::from);
/// assert_eq!(data.as_deref(), Some(r#"{ "cost":1.50 }"#));
/// # Ok(()) }
/// ```
impl From<JsonRef<'_>> for JsonText {
    fn from(value: JsonRef<'_>) -> Self {
        Self::of_checked(value)
    }
}

impl Deref for JsonText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl AsRef<str> for JsonText {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for JsonText {
    type Err = crate::error::Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

/// As the text itself, through serde_json and [`JsonText::from_serialize`] only.
impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.text).map_err(ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// From serde_json only: other formats have no text to keep.
impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::check(raw.get()).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn only_line_breaks_between_tokens_change() {
        let text = JsonText::parse("\n {\"a\":\r\n[1,\t2.50 ,\"x\\n\"]\n}\n").unwrap();
        assert_eq!(text.as_str(), "{\"a\":  [1,\t2.50 ,\"x\\n\"] }");
        let spelled = r#"{"b":1.0,"a":-0,"a":1E+2,"s":"\u00e9\/\ud800"}"#;
        assert_eq!(JsonText::parse(spelled).unwrap().as_str(), spelled);
    }

    #[test]
    fn the_two_kinds_of_refusal() {
        let error = JsonText::parse("{\"a\":[1,2").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidJson);
        assert_eq!(error.to_string(), "not a JSON value: the text ends inside an array at $.a[1] (byte 9)");
        let error = JsonText::parse("{\"a\":[1,-1e999]}").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidValue);
        assert_eq!(
            error.to_string(),
            "a value that JSON cannot carry: a number that overflows a double at $.a[1] (byte 8)"
        );
    }

    #[test]
    fn passes_through_serde_json_unchanged() {
        let spelled = r#"[1.50,{"k":"\ud800"}]"#;
        let text: JsonText = serde_json::from_str(spelled).unwrap();
        assert_eq!(text.as_str(), spelled);
        assert_eq!(serde_json::to_string(&text).unwrap(), spelled);
        assert_eq!(JsonText::from_serialize(&text).unwrap().as_str(), spelled);
    }
}
