//! What the demo says.

use std::path::Path;

use serde::Serialize;
use serde_json::value::RawValue;
use sessionlog::event::{Event, Message};

use super::crash::Crash;
use super::look::Seen;
use crate::events::{self, gist};
use crate::failure::Failure;
use crate::messages;
use crate::output::{Output, printable};
use crate::provenance::runs;
use crate::verify::{Shown, words as finding_words};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    ok: bool,
    store: &'a Path,
    session: &'a str,
    recorded: Recorded,
    killed: Killed<'a>,
    recovery: Recovery<'a>,
    closers: Vec<Box<RawValue>>,
    events: u64,
    messages: Vec<Box<RawValue>>,
    surface: Vec<Node<'a>>,
    verify: Verify<'a>,
    check: Check,
    export: Export,
    claims: Vec<Claim<'a>>,
}

#[derive(Serialize)]
struct Recorded {
    flushes: u64,
    acknowledged: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Killed<'a> {
    process: u32,
    signal: i32,
    unflushed: Seqs,
    /// What the demo itself made of it: sectors that a power cut would have lost.
    simulated_loss: Place<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Seqs {
    from_seq: u64,
    to_seq: u64,
}

#[derive(Serialize)]
struct Place<'a> {
    file: &'a Path,
    offset: u64,
    length: u64,
}

#[derive(Serialize)]
struct Recovery<'a> {
    events: u64,
    cut: Vec<Cut<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cut<'a> {
    #[serde(flatten)]
    place: Place<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_in: Option<&'a Path>,
    may_have_been_acknowledged: bool,
}

#[derive(Serialize)]
struct Node<'a> {
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prev: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    #[serde(rename = "type")]
    event_type: &'a str,
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    shadows: &'a [u64],
}

#[derive(Serialize)]
struct Verify<'a> {
    findings: Vec<Shown<'a>>,
    notes: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct Check {
    violations: u64,
}

#[derive(Serialize)]
struct Export {
    lines: u64,
    same: u64,
    closers: u64,
}

#[derive(Serialize)]
struct Claim<'a> {
    holds: bool,
    text: &'a str,
}

/// Everything as one object.
pub(super) fn json(store: &Path, crash: &Crash, seen: &Seen, out: &mut Output) -> Result<(), Failure> {
    let shown = |notes: bool| {
        let wanted = seen.findings.iter().filter(move |finding| finding.note == notes);
        wanted.map(Shown::of).collect::<Vec<_>>()
    };
    let lost = &crash.lost;
    out.json(&Report {
        ok: seen.claims.iter().all(|claim| claim.holds),
        store,
        session: &seen.id,
        recorded: Recorded { flushes: crash.flushes, acknowledged: crash.acknowledged },
        killed: Killed {
            process: crash.process,
            signal: crash.signal,
            unflushed: Seqs { from_seq: crash.acknowledged + 1, to_seq: crash.written },
            simulated_loss: Place { file: &lost.file, offset: lost.offset, length: lost.length },
        },
        recovery: Recovery { events: seen.recovered, cut: seen.recovery.cut.iter().map(cut).collect() },
        closers: raw(seen.closers.iter().map(Event::to_line))?,
        events: seen.events,
        messages: raw(seen.messages.iter().map(Message::to_line))?,
        surface: seen.surface.iter().map(node).collect(),
        verify: Verify { findings: shown(false), notes: shown(true) },
        check: Check { violations: seen.violations },
        export: Export { lines: seen.export.lines, same: seen.export.same, closers: seen.export.closers },
        claims: seen.claims.iter().map(|claim| Claim { holds: claim.holds, text: &claim.text }).collect(),
    })?;
    Ok(())
}

fn cut(cut: &sessionlog::Cut) -> Cut<'_> {
    Cut {
        place: Place { file: &cut.file, offset: cut.offset, length: cut.length },
        kept_in: cut.kept_in.as_deref(),
        may_have_been_acknowledged: cut.may_have_been_acknowledged,
    }
}

fn node(node: &super::look::Node) -> Node<'_> {
    let links = &node.node;
    let event_type = node.event.event_type();
    Node { seq: links.seq, prev: links.prev, next: links.next, event_type, shadows: &node.shadows }
}

fn raw(lines: impl Iterator<Item = String>) -> Result<Vec<Box<RawValue>>, Failure> {
    lines.map(|line| RawValue::from_string(line).map_err(|error| Failure::Output(error.into()))).collect()
}

/// Everything for people.
pub(super) fn words(
    kept: Option<&Path>,
    crash: &Crash,
    seen: &Seen,
    out: &mut Output,
) -> Result<(), Failure> {
    recorded(crash, seen, out)?;
    recovered(crash, seen, out)?;
    out.line(format_args!("\nThe {} messages that a model would get now:", seen.messages.len()))?;
    for message in &seen.messages {
        messages::print(message, out)?;
    }
    surface(seen, out)?;
    out.line("\nThe store, read from end to end by verify:")?;
    let summary = &seen.summary;
    let (segments, frames, events) = (summary.segments, summary.frames, summary.events);
    out.line(format_args!(
        "  {segments} segments, {frames} frames, {events} events: {} findings",
        summary.findings
    ))?;
    for finding in &seen.findings {
        let kind = if finding.note { "note" } else { "finding" };
        out.line(format_args!("  {kind}: {}", finding_words(finding)))?;
    }
    out.line("\nWhat must hold:")?;
    for claim in &seen.claims {
        out.line(format_args!("  {}  {}", if claim.holds { "yes" } else { "NO " }, printable(&claim.text)))?;
    }
    if let Some(store) = kept {
        out.line(format_args!(
            "\nThe store stays. Look at it with: sessionlog --store {} ls",
            store.display()
        ))?;
    }
    Ok(())
}

fn recorded(crash: &Crash, seen: &Seen, out: &mut Output) -> Result<(), Failure> {
    out.line(format_args!(
        "Process {} recorded session {} step by step: {} flushes, acknowledged up to event {}.",
        crash.process,
        printable(&seen.id),
        crash.flushes,
        crash.acknowledged
    ))?;
    out.line(format_args!(
        "In the middle of a turn it appended events {} to {} without a flush, and was killed by signal {}.",
        crash.acknowledged + 1,
        crash.written,
        crash.signal
    ))?;
    out.line(format_args!(
        "A kill alone loses nothing that reached the operating system. So the demo plays the power cut as well: it \
         zeroed\nthe last sector of those unflushed bytes ({}, byte {}, {} bytes). No acknowledged byte was touched.",
        crash.lost.file.display(),
        crash.lost.offset,
        crash.lost.length
    ))?;
    Ok(())
}

fn recovered(crash: &Crash, seen: &Seen, out: &mut Output) -> Result<(), Failure> {
    out.line("\nThe store is opened again. Recovery:")?;
    for cut in &seen.recovery.cut {
        let kept = cut
            .kept_in
            .as_ref()
            .map_or_else(|| "left in place".to_owned(), |kept| format!("kept in {}", kept.display()));
        out.line(format_args!(
            "  cut {} torn bytes at byte {} of {}, {kept}",
            cut.length,
            cut.offset,
            cut.file.display()
        ))?;
    }
    if seen.recovery.cut.iter().any(|cut| cut.may_have_been_acknowledged) {
        out.line(
            "  the library cannot tell whether such bytes were acknowledged, and says so; here they were not",
        )?;
    }
    for note in &seen.recovery.notes {
        out.line(format_args!("  {}", printable(note)))?;
    }
    out.line(format_args!(
        "  the session has {} events: {} were acknowledged, {} had been appended",
        seen.recovered,
        crash.acknowledged + 1,
        crash.written + 1
    ))?;
    out.line(format_args!("\nThe session is resumed. {} events close what was open:", seen.closers.len()))?;
    for closer in &seen.closers {
        events::print(closer, out)?;
    }
    Ok(())
}

fn surface(seen: &Seen, out: &mut Output) -> Result<(), Failure> {
    out.line(format_args!("\nThe surface, {} of {} events:", seen.surface.len(), seen.events))?;
    for node in &seen.surface {
        let event = &node.event;
        let (seq, event_type) = (event.seq(), printable(event.event_type()));
        out.line(format_args!("{seq:>7}  {event_type:<18} {}", gist(event)))?;
        if !node.shadows.is_empty() {
            out.line(format_args!("         it shadows {}, which stay readable", runs(&node.shadows)))?;
        }
    }
    Ok(())
}
