//! Members that a type does not know, kept as they were written (V1).

use serde::ser::{Error as _, SerializeMap};

use super::super::json::{JsonRef, JsonStr, JsonText, Members};
use super::field::{ReadFault, Record};
use crate::error::Result;
use crate::event::envelope;

/// Members of an object beyond those that its type knows. Usually none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extra {
    /// As `"k":v,"l":w`.
    text: String,
}

impl Extra {
    /// No members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The members of a JSON object. One that the type itself knows comes out twice and is read as the last.
    ///
    /// # Errors
    /// [`InvalidJson`](crate::ErrorKind::InvalidJson) or [`InvalidValue`](crate::ErrorKind::InvalidValue)
    /// when `object` is not one.
    pub fn parse(object: &str) -> Result<Self> {
        let text = envelope::extra_members(object, &[])?;
        Ok(Self { text: text.as_deref().unwrap_or("").to_owned() })
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The members in their order.
    #[must_use]
    pub fn members(&self) -> Members<'_> {
        Members::of_text(&self.text)
    }

    /// The member `name`; of duplicates the last.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<JsonRef<'_>> {
        self.members().filter(|(found, _)| found.eq_str(name)).last().map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn push(&mut self, name: JsonStr<'_>, value: JsonRef<'_>) {
        if !self.text.is_empty() {
            self.text.push(',');
        }
        self.text.push('"');
        self.text.push_str(name.raw_inner());
        self.text.push_str("\":");
        self.text.push_str(value.raw());
    }
}

impl Record for Extra {
    fn from_members(object: JsonRef<'_>, tag: Option<&str>) -> std::result::Result<Self, ReadFault> {
        let mut extra = Self::default();
        for (name, value) in object.members() {
            if !tag.is_some_and(|tag| name.eq_str(tag)) {
                extra.push(name, value);
            }
        }
        Ok(extra)
    }

    fn write_members<M: SerializeMap>(&self, map: &mut M) -> std::result::Result<(), M::Error> {
        for (name, value) in self.members() {
            let name = name.to_string_lossless();
            let name = name.ok_or_else(|| M::Error::custom("a member name with a lone surrogate"))?;
            map.serialize_entry(&name, &JsonText::of_checked(value))?;
        }
        Ok(())
    }
}
