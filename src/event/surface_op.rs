//! The surface marker: how an event takes its place among the messages.

use std::fmt;

use super::json::{JsonKind, JsonRef};

/// How a surface event takes its place (A2): `"append"`, or `{"op":"replace","start":N,"end":N}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SurfaceOp {
    /// A new node behind the last one.
    Append,
    /// The nodes from `start` to `end`, by position and both included, give way to this event.
    Replace {
        /// The seq of the first node that is replaced.
        start: u64,
        /// The seq of the last node that is replaced.
        end: u64,
    },
}

/// What a caller asks for when appending a message.
pub type SurfaceIntent = SurfaceOp;

impl SurfaceOp {
    /// Reads a `surfaceOp` member: `null` counts as missing.
    ///
    /// # Errors
    /// What the member should have been.
    pub fn from_json(value: JsonRef<'_>) -> Result<Option<Self>, &'static str> {
        const EXPECTED: &str = "surfaceOp must be \"append\" or exactly {\"op\":\"replace\",\"start\":N,\"end\":N} with integers >= 0";
        match value.kind() {
            JsonKind::Null => Ok(None),
            JsonKind::String if value.as_str().is_some_and(|s| s.eq_str("append")) => Ok(Some(Self::Append)),
            JsonKind::Object => {
                let known = |name: &str| ["op", "start", "end"].contains(&name);
                let exact = value.members().all(|(name, _)| known(&name.to_utf8_lossy()));
                let replace =
                    value.get("op").and_then(|op| op.as_str()).is_some_and(|op| op.eq_str("replace"));
                let integer = |name| value.get(name).and_then(|v| v.as_u64());
                match (exact && replace, integer("start"), integer("end")) {
                    (true, Some(start), Some(end)) => Ok(Some(Self::Replace { start, end })),
                    _ => Err(EXPECTED),
                }
            }
            _ => Err(EXPECTED),
        }
    }

    pub(crate) fn write_json<W: fmt::Write>(self, out: &mut W) -> fmt::Result {
        match self {
            Self::Append => out.write_str("\"append\""),
            Self::Replace { start, end } => {
                write!(out, "{{\"op\":\"replace\",\"start\":{start},\"end\":{end}}}")
            }
        }
    }
}

/// As JSON.
impl fmt::Display for SurfaceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_json(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<SurfaceOp>, &'static str> {
        SurfaceOp::from_json(JsonRef::new_validated(text))
    }

    #[test]
    fn the_two_shapes_and_null() {
        assert_eq!(read("null"), Ok(None));
        assert_eq!(read("\"\\u0061ppend\""), Ok(Some(SurfaceOp::Append)));
        let replace = SurfaceOp::Replace { start: 4, end: 2 };
        assert_eq!(read(&replace.to_string()), Ok(Some(replace)));
        assert_eq!(read(r#"{"end":2.0,"start":1,"op":"replace","start":0.4e1}"#), Ok(Some(replace)));
        assert_eq!(read(&SurfaceOp::Append.to_string()), Ok(Some(SurfaceOp::Append)));
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "true",
            "1",
            "\"prepend\"",
            "[\"append\"]",
            "{}",
            r#"{"op":"replace"}"#,
            r#"{"op":"replace","start":1}"#,
            r#"{"op":"remove","start":1,"end":1}"#,
            r#"{"op":"replace","start":-1,"end":1}"#,
            r#"{"op":"replace","start":1.5,"end":2}"#,
            r#"{"op":"replace","start":"1","end":2}"#,
            r#"{"op":"replace","start":1,"end":2,"why":0}"#,
            r#"{"start":1,"end":2}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
