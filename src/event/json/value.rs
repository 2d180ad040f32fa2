//! A value inside checked text: a borrowed slice with questions to ask.
//!
//! Always holds: the text was checked before, so walking needs no checks of its own; on text that was not,
//! answers are meaningless but nothing panics. It never builds a tree: each question walks the slice.

use super::number;
use super::scan::closing_quote;
use super::string::JsonStr;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// A value inside checked JSON text.
#[derive(Debug, Clone, Copy)]
pub struct JsonRef<'a> {
    raw: &'a str,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

impl<'a> JsonRef<'a> {
    /// Checks `text` and looks into it where it stands, without a copy. [`JsonText`](super::JsonText) keeps one.
    ///
    /// # Errors
    /// As [`is_json_value`](super::is_json_value).
    pub fn check(text: &'a str) -> Result<Self, super::JsonError> {
        super::is_json_value(text).map(|()| Self::new_validated(text))
    }

    /// `text` is one checked value; white space may stand around it.
    #[must_use]
    pub(crate) fn new_validated(text: &'a str) -> Self {
        Self { raw: text.trim_matches([' ', '\t', '\n', '\r']) }
    }

    /// The value's text, without white space around it.
    #[must_use]
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// What the value is.
    #[must_use]
    pub fn kind(&self) -> JsonKind {
        match self.raw.as_bytes().first() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::String,
            Some(b't' | b'f') => JsonKind::Bool,
            Some(b'n') | None => JsonKind::Null,
            Some(_) => JsonKind::Number,
        }
    }

    /// Whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// The value of a boolean.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.raw {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The content of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<JsonStr<'a>> {
        let inner = self.raw.strip_prefix('"')?.strip_suffix('"')?;
        Some(JsonStr::from_inner(inner))
    }

    /// The text of a number.
    #[must_use]
    pub fn as_number(&self) -> Option<&'a str> {
        (self.kind() == JsonKind::Number).then_some(self.raw)
    }

    /// A number that is an exact unsigned integer, however it is spelled: 26.0 and 2.6e1 are 26.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        number::as_u64(self.as_number()?)
    }

    /// A number that is an exact signed integer, however it is spelled.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        number::as_i64(self.as_number()?)
    }

    /// A number, as the nearest double.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number()?.parse().ok()
    }

    /// How deep arrays and objects nest: 0 for a scalar.
    #[must_use]
    pub fn depth(&self) -> usize {
        let mut walk = Walk { text: self.raw, at: 0 };
        let (mut depth, mut deepest) = (0_usize, 0);
        while let Some(byte) = walk.peek() {
            match byte {
                b'"' => {
                    walk.skip_string();
                    continue;
                }
                b'{' | b'[' => {
                    depth = depth.saturating_add(1);
                    deepest = deepest.max(depth);
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            walk.at = walk.at.saturating_add(1);
        }
        deepest
    }

    /// The member `key` of an object. Of duplicates the last counts; escaped names compare by content.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<JsonRef<'a>> {
        self.members().filter(|(name, _)| name.eq_str(key)).last().map(|(_, value)| value)
    }

    /// The members of an object in their order, duplicates included; nothing for other values.
    #[must_use]
    pub fn members(&self) -> Members<'a> {
        let object = self.kind() == JsonKind::Object;
        Members { walk: Walk { text: if object { self.raw } else { "" }, at: 1 } }
    }

    /// Whether it is an array without elements: what the first one is does not matter.
    #[must_use]
    pub(crate) fn is_empty_array(&self) -> bool {
        let mut elements = self.elements();
        self.kind() == JsonKind::Array && elements.walk.gap() == Some(b']')
    }

    /// The elements of an array; nothing for other values.
    #[must_use]
    pub fn elements(&self) -> Elements<'a> {
        let array = self.kind() == JsonKind::Array;
        Elements { walk: Walk { text: if array { self.raw } else { "" }, at: 1 } }
    }
}

/// A place in checked text.
#[derive(Debug, Clone)]
struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Steps over white space, commas and colons: in checked text they need no telling apart.
    fn gap(&mut self) -> Option<u8> {
        loop {
            let byte = self.peek()?;
            if !is_space(byte) && byte != b',' && byte != b':' {
                return Some(byte);
            }
            self.at = self.at.saturating_add(1);
        }
    }

    fn string(&mut self) -> Option<&'a str> {
        let from = self.at.saturating_add(1);
        self.skip_string();
        self.text.get(from..self.at.saturating_sub(1))
    }

    fn skip_string(&mut self) {
        let from = self.at.saturating_add(1);
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        self.at = match closing_quote(rest) {
            Some(quote) => from.saturating_add(quote).saturating_add(1),
            None => self.text.len(),
        };
    }

    fn value(&mut self) -> Option<JsonRef<'a>> {
        let from = self.at;
        match self.peek()? {
            b'"' => self.skip_string(),
            b'{' | b'[' => self.skip_container(),
            _ => {
                while self.peek().is_some_and(|b| !is_space(b) && !matches!(b, b',' | b']' | b'}')) {
                    self.at = self.at.saturating_add(1);
                }
            }
        }
        // Nothing is never a value; without this, text that was not checked could hold the walk in place.
        self.text.get(from..self.at).filter(|raw| !raw.is_empty()).map(|raw| JsonRef { raw })
    }

    fn skip_container(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.skip_string();
                    continue;
                }
                b'{' | b'[' => depth = depth.saturating_add(1),
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at = self.at.saturating_add(1);
            if depth == 0 {
                return;
            }
        }
    }
}

/// See [`JsonRef::members`].
#[derive(Debug, Clone)]
pub struct Members<'a> {
    walk: Walk<'a>,
}

impl<'a> Members<'a> {
    /// The members that stand in checked text without braces around it.
    pub(crate) fn of_text(text: &'a str) -> Self {
        Self { walk: Walk { text, at: 0 } }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (JsonStr<'a>, JsonRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.walk.gap()? != b'"' {
            return None;
        }
        let name = JsonStr::from_inner(self.walk.string()?);
        self.walk.gap()?;
        Some((name, self.walk.value()?))
    }
}

/// See [`JsonRef::elements`].
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    walk: Walk<'a>,
}

impl<'a> Iterator for Elements<'a> {
    type Item = JsonRef<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.walk.gap()? == b']' {
            return None;
        }
        self.walk.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_into_objects_and_arrays() {
        let v =
            JsonRef::new_validated(r#" { "a" : [1, "x,]}\"", {"b":[]} , -2.5e1,true,null ] ,"\u0061b":7} "#);
        assert_eq!(v.kind(), JsonKind::Object);
        let kinds: Vec<_> = v.get("a").unwrap().elements().map(|e| (e.kind(), e.raw())).collect();
        assert_eq!(
            kinds,
            [
                (JsonKind::Number, "1"),
                (JsonKind::String, r#""x,]}\"""#),
                (JsonKind::Object, r#"{"b":[]}"#),
                (JsonKind::Number, "-2.5e1"),
                (JsonKind::Bool, "true"),
                (JsonKind::Null, "null"),
            ]
        );
        assert_eq!(v.get("ab").unwrap().as_u64(), Some(7));
        assert!(v.get("b").is_none());
        assert_eq!(JsonRef::new_validated("[]").elements().count(), 0);
        assert_eq!(JsonRef::new_validated("{ }").members().count(), 0);
        assert_eq!(JsonRef::new_validated("[1]").members().count(), 0);
    }

    #[test]
    fn of_duplicates_the_last_counts() {
        let v = JsonRef::new_validated(r#"{"k":1,"\u006b":2,"j":3}"#);
        assert_eq!(v.get("k").unwrap().as_u64(), Some(2));
    }

    #[test]
    fn scalars() {
        assert_eq!(JsonRef::new_validated("26.0").as_u64(), Some(26));
        assert_eq!(JsonRef::new_validated("-3").as_i64(), Some(-3));
        assert_eq!(JsonRef::new_validated("\"26\"").as_u64(), None);
        assert_eq!(JsonRef::new_validated("1e300").as_f64(), Some(1e300));
        assert_eq!(JsonRef::new_validated("false").as_bool(), Some(false));
        assert_eq!(JsonRef::new_validated("\"\"").as_str().unwrap().raw_inner(), "");
        assert!(JsonRef::new_validated("null").is_null());
        let depth = |text| JsonRef::new_validated(text).depth();
        assert_eq!((depth("1"), depth("\"[[\""), depth("[[],{\"k\":[1]},2]")), (0, 0, 3));
    }

    #[test]
    fn deep_values_need_no_stack() {
        let text = format!("{}1{}", "[".repeat(60_000), "]".repeat(60_000));
        let inner = JsonRef::new_validated(&text).elements().next().unwrap();
        assert_eq!(inner.raw().len(), text.len() - 2);
    }
}
