//! `verify`: reads everything and reports all damage.

use std::path::Path;

use serde::Serialize;
use sessionlog::Finding;

use crate::failure::{Ended, Outcome};
use crate::output::{Output, printable, say};
use crate::progress::Progress;
use crate::stores::Stores;

/// A finding as it is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shown<'a> {
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_seq: Option<u64>,
    message: &'a str,
}

impl<'a> Shown<'a> {
    pub(crate) fn of(finding: &'a Finding) -> Self {
        Self {
            kind: finding.kind,
            file: finding.file.as_deref(),
            offset: finding.offset,
            length: finding.length,
            session: finding.session.as_deref(),
            from_seq: finding.from_seq,
            to_seq: finding.to_seq,
            message: &finding.message,
        }
    }
}

/// A finding in words.
pub(crate) fn words(finding: &Finding) -> String {
    let mut text = finding.kind.to_owned();
    if let Some(file) = &finding.file {
        text.push_str(&format!(" {}", file.display()));
    }
    if let Some(offset) = finding.offset {
        text.push_str(&format!(" at byte {offset}"));
    }
    if let Some(length) = finding.length {
        text.push_str(&format!(", {length} bytes"));
    }
    if let Some(session) = &finding.session {
        text.push_str(&format!(", session {session}"));
    }
    if let (Some(from), Some(to)) = (finding.from_seq, finding.to_seq) {
        text.push_str(&format!(", events {from} to {to}"));
    }
    text.push_str(": ");
    text.push_str(&finding.message);
    printable(&text).into_owned()
}

pub(crate) fn run(stores: &Stores, out: &mut Output) -> Ended {
    let store = stores.read()?;
    let progress = Progress::new("reading the store", None);
    let mut printed = Ok(());
    let summary = store.verify(&mut |finding| {
        if printed.is_err() {
            return;
        }
        // Notes are words: they make nothing unsound.
        if finding.note {
            say(format_args!("note: {}", words(&finding)));
        } else if out.json {
            printed = out.json(&Shown::of(&finding));
        } else {
            printed = out.line(words(&finding));
        }
    })?;
    drop(progress);
    printed?;
    say(format_args!(
        "{} segments, {} frames, {} sessions, {} events, {} bytes read: {} findings",
        summary.segments, summary.frames, summary.sessions, summary.events, summary.bytes, summary.findings
    ));
    Ok(Outcome::findings_if(summary.findings > 0))
}
