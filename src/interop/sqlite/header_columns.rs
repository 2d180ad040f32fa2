//! A session's header as the columns of its row.
//!
//! What always holds: a header whose columns are given back to [`HeaderColumns::line`] comes back byte for byte, or
//! [`HeaderColumns::misfits`] says why not.

use std::borrow::Cow;

use crate::event::{Header, JsonRef, JsonText, SESSION_FORMAT_VERSION, Time};

use super::event_columns::{MAX_NUMBER, column_number, column_text, quoted};
use super::misfit::{Misfit, Misfits};

/// The names of the columns as the header spells them.
const TEXTS: [&str; 2] = ["cwd", "parentSession"];

/// The columns of a row of `sessions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeaderColumns {
    pub(super) id: String,
    pub(super) version: i64,
    pub(super) created_at: i64,
    pub(super) cwd: Option<String>,
    pub(super) parent_session: Option<String>,
    pub(super) seed_length: Option<i64>,
}

impl HeaderColumns {
    /// The columns of `header`: the nearest value where one does not fit.
    pub(super) fn of(header: &Header) -> Self {
        let json = header.json();
        let text = |name: &str| member(&json, name)?.as_str()?.to_string_lossless().map(column_owned);
        let seed_length = member(&json, "seedLength").and_then(|value| {
            // A number beyond 64 bits is still a count, of which the column has the nearest.
            value.as_i64().map(column_number).or_else(|| value.as_u64().map(|_| MAX_NUMBER))
        });
        Self {
            id: column_text(header.id()).into_owned(),
            version: i64::try_from(SESSION_FORMAT_VERSION).unwrap_or(0),
            created_at: column_number(header.created_at().millis_rounded()),
            cwd: text("cwd"),
            parent_session: text("parentSession"),
            seed_length,
        }
    }

    /// What of `header`, whose columns these are, the row cannot say.
    pub(super) fn misfits(&self, header: &Header) -> Misfits {
        let mut found = Misfits::new();
        if let Some((name, _)) = header.extra_members().next() {
            found.push((Misfit::UnknownField, name.to_utf8_lossy().into_owned()));
        }
        if *header.created_at() != Time::from_millis(self.created_at) {
            found.push((Misfit::Time, "createdAt".to_owned()));
        }
        if self.id != header.id() {
            found.push((Misfit::Text, "id".to_owned()));
        }
        let json = header.json();
        for (name, column) in TEXTS.into_iter().zip([&self.cwd, &self.parent_session]) {
            let Some(value) = member(&json, name) else { continue };
            match value.as_str().map(|text| text.to_string_lossless()) {
                Some(Some(text)) if column.as_deref() == Some(&*text) => {}
                Some(_) => found.push((Misfit::Text, name.to_owned())),
                None => found.push((Misfit::HeaderField, name.to_owned())),
            }
        }
        let seed_length = member(&json, "seedLength");
        if seed_length.is_some_and(|value| value.as_i64() != self.seed_length) {
            found.push((Misfit::HeaderField, "seedLength".to_owned()));
        }
        if found.is_empty() && header.to_line() != self.line() {
            found.push((Misfit::Spelling, "the line".to_owned()));
        }
        found
    }

    /// The line that the row is (rule X).
    pub(super) fn line(&self) -> String {
        let Self { id, version, created_at, cwd, parent_session, seed_length } = self;
        let mut out = format!(
            "{{\"type\":\"session\",\"version\":{version},\"id\":{},\"createdAt\":{created_at}",
            quoted(id)
        );
        for (name, text) in TEXTS.into_iter().zip([cwd, parent_session]) {
            if let Some(text) = text {
                out.push_str(&format!(",\"{name}\":{}", quoted(text)));
            }
        }
        if let Some(events) = seed_length {
            out.push_str(&format!(",\"seedLength\":{events}"));
        }
        out.push('}');
        out
    }
}

fn member<'a>(json: &'a JsonText, name: &str) -> Option<JsonRef<'a>> {
    json.value().get(name)
}

fn column_owned(text: Cow<'_, str>) -> String {
    column_text(&text).into_owned()
}
