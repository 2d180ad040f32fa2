//! An event's time: Unix milliseconds as any JSON number, kept as spelled (V).
//!
//! Always holds: [`Time::spelling`] is a JSON number that fits a double. It is never used for order.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::json::{self, Scanner};

/// Unix milliseconds, as a clock gave them or as a file spelled them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Time(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Millis(i64),
    /// A spelling that [`Repr::Millis`] would not give back.
    Spelled(Arc<str>),
}

impl Time {
    /// A time in whole milliseconds since 1970, negative before.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(Repr::Millis(millis))
    }

    /// A time as a JSON number spells it; `None` when `text` is not one that fits a double.
    #[must_use]
    pub fn parse_json(text: &str) -> Option<Self> {
        let mut scanner = Scanner::new(text);
        let number = matches!(scanner.peek(), Some(b'-' | b'0'..=b'9'));
        if !number || scanner.number().is_err() || scanner.at() != text.len() {
            return None;
        }
        // The grammar allows no leading zero and no plus, so of the plain integers only -0 is not canonical.
        if text != "-0"
            && let Ok(millis) = text.parse()
        {
            return Some(Self::from_millis(millis));
        }
        Some(Self(Repr::Spelled(text.into())))
    }

    /// The time when it is a whole number of milliseconds, however it is spelled: 5.0 and 0.5e1 are 5.
    #[must_use]
    pub fn as_millis(&self) -> Option<i64> {
        match &self.0 {
            Repr::Millis(millis) => Some(*millis),
            Repr::Spelled(text) => json::number_as_i64(text),
        }
    }

    /// The nearest whole millisecond, clamped to 64 bits.
    #[must_use]
    pub fn millis_rounded(&self) -> i64 {
        if let Some(millis) = self.as_millis() {
            return millis;
        }
        let Repr::Spelled(text) = &self.0 else { return 0 };
        // A cast from a double saturates, which is what "clamped" means here.
        #[allow(clippy::cast_possible_truncation)]
        text.parse::<f64>().map_or(0, |t| t.round() as i64)
    }

    /// The JSON number, as given.
    #[must_use]
    pub fn spelling(&self) -> Cow<'_, str> {
        match &self.0 {
            Repr::Millis(millis) => Cow::Owned(millis.to_string()),
            Repr::Spelled(text) => Cow::Borrowed(text),
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Millis(millis) => fmt::Display::fmt(millis, f),
            Repr::Spelled(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_keeps_its_spelling() {
        for text in
            ["0", "-0", "-1", "1782133869868", "1.5", "1782133869868.0", "1e3", "99999999999999999999"]
        {
            let time = Time::parse_json(text).unwrap();
            assert_eq!(time.spelling(), text);
            assert_eq!(time.to_string(), text);
        }
        for text in ["", "01", "+1", "1e999", "\"1\"", " 1", "1 ", "null", "NaN"] {
            assert_eq!(Time::parse_json(text), None, "{text}");
        }
    }

    #[test]
    fn whole_and_nearest_milliseconds() {
        let of = |text| Time::parse_json(text).unwrap();
        assert_eq!(of("1782133869868.0").as_millis(), Some(1_782_133_869_868));
        assert_eq!(of("2.6e1").as_millis(), Some(26));
        assert_eq!(of("1.5").as_millis(), None);
        assert_eq!((of("1.5").millis_rounded(), of("-1.4").millis_rounded()), (2, -1));
        assert_eq!(of("1e300").millis_rounded(), i64::MAX);
        assert_eq!(of("5"), Time::from_millis(5));
    }
}
