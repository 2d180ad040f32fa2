//! Open sets: what has a `kind` or `type` that plugins may add to (V1, V4).

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::json::{JsonKind, JsonText, write_string};
use super::extra::Extra;
use super::field::Record;
use crate::error::{Error, ErrorKind, Result};

/// A set of kinds that plugins may add to: [`Trigger`](super::Trigger),
/// [`TurnEndReason`](super::TurnEndReason), [`Source`](super::Source), [`Block`](super::Block),
/// [`Chunk`](super::Chunk) and [`FinishReason`](super::FinishReason).
pub trait OpenSet: Sized + sealed::Sealed {
    /// The member that names the kind.
    const TAG: &'static str;
    /// The kinds that have a variant of their own.
    const KNOWN: &'static [&'static str];

    /// A kind without a variant of its own, as text.
    fn from_other(text: JsonText) -> Self;

    /// The text of a kind without a variant of its own.
    fn other(&self) -> Option<&JsonText>;

    /// A plugin's kind as a member of the set.
    ///
    /// # Errors
    /// [`InvalidValue`](ErrorKind::InvalidValue) when it does not serialise to an object, or to one that has
    /// the tag already, and as [`JsonText::from_serialize`].
    fn declare<K: Kind<Self>>(kind: &K) -> Result<Self> {
        const { refuse_known(K::NAME, Self::KNOWN) };
        let text = JsonText::from_serialize(kind)?;
        let value = text.value();
        let refused = |what: &str| {
            let text = format!("the kind {:?} must serialise to an object {what}", K::NAME);
            Err(Error::new(ErrorKind::InvalidValue, text))
        };
        let mut out = format!("{{\"{}\":", Self::TAG);
        // Writing to a String cannot fail.
        let _ = write_string(&mut out, K::NAME);
        match value.kind() {
            JsonKind::Null => out.push('}'),
            JsonKind::Object if value.get(Self::TAG).is_some() => {
                return refused(&format!("without a member {:?}", Self::TAG));
            }
            JsonKind::Object => {
                let comma = if value.members().next().is_some() { "," } else { "" };
                out.push_str(comma);
                out.push_str(text.get(1..).unwrap_or("}"));
            }
            _ => return refused("or to nothing"),
        }
        Ok(Self::from_other(JsonText::from_validated(out.into())))
    }

    /// The member as a plugin's kind; `None` when it is of another kind.
    ///
    /// # Errors
    /// [`InvalidValue`](ErrorKind::InvalidValue) when it is of that kind but of another shape.
    fn read<K: Kind<Self>>(&self) -> Result<Option<K>> {
        const { refuse_known(K::NAME, Self::KNOWN) };
        let Some(value) = self.other().map(JsonText::value) else { return Ok(None) };
        if !value.get(Self::TAG).and_then(|v| v.as_str()).is_some_and(|name| name.eq_str(K::NAME)) {
            return Ok(None);
        }
        let fault = |e: &dyn std::fmt::Display| {
            Error::new(ErrorKind::InvalidValue, format!("read the kind {:?}: {e}", K::NAME))
        };
        // Without the tag, which a plugin's type need not know.
        let members = Extra::from_members(value, Some(Self::TAG)).map_err(|e| fault(&e))?;
        let object = format!("{{{}}}", members.text());
        match serde_json::from_str(&object) {
            Ok(kind) => Ok(Some(kind)),
            // A unit struct serialises to nothing and reads back from nothing.
            Err(e) if members.is_empty() => serde_json::from_str("null").map(Some).map_err(|_| fault(&e)),
            Err(e) => Err(fault(&e)),
        }
    }
}

/// A kind that a plugin adds to an open set: its name and its members, by serde.
///
/// ```
/// # fn main() -> sessionlog::Result<()> {
/// use serde::{Deserialize, Serialize};
/// use sessionlog::event::{Kind, OpenSet, Trigger};
///
/// #[derive(Serialize, Deserialize)]
/// struct Cron { schedule: String }
/// impl Kind<Trigger> for Cron { const NAME: &'static str = "cron"; }
///
/// let trigger = Trigger::declare(&Cron { schedule: "@daily".into() })?;
/// assert_eq!(trigger.kind(), "cron");
/// assert_eq!(trigger.read::<Cron>()?.map(|cron| cron.schedule), Some("@daily".into()));
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no kind of the open set `{S}`",
    note = "implement `Kind<{S}>` for it: a name, and serde's Serialize and Deserialize"
)]
pub trait Kind<S: OpenSet>: Serialize + DeserializeOwned {
    /// The name, which is none of the set's own: that is a compile error where the kind is used.
    const NAME: &'static str;
}

/// The tag of a kind that is only text.
pub(crate) fn tag_of<'a>(text: &'a JsonText, tag: &str) -> Cow<'a, str> {
    text.value().get(tag).and_then(|v| v.as_str()).map_or(Cow::Borrowed(""), |name| name.to_utf8_lossy())
}

const fn refuse_known(name: &str, known: &[&str]) {
    let mut rest = known;
    while let [first, tail @ ..] = rest {
        assert!(!same(name, first), "this kind has a variant of its own in the set; use that");
        rest = tail;
    }
}

pub(crate) const fn same(a: &str, b: &str) -> bool {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    while let ([x, a_tail @ ..], [y, b_tail @ ..]) = (a, b) {
        if *x != *y {
            return false;
        }
        (a, b) = (a_tail, b_tail);
    }
    a.is_empty() && b.is_empty()
}

pub(crate) mod sealed {
    #[allow(unreachable_pub)] // public in name only, to be a bound of a public trait
    pub trait Sealed {}
}
