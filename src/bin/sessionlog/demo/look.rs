//! What the store is like after the crash, and whether it is as it must be.

use std::fs;
use std::path::Path;

use sessionlog::event::{Checker, Event, Message, SurfaceNode};
use sessionlog::interop::jsonl::{WriteOptions, export_session};
use sessionlog::{Finding, RecoveryReport, Result, SessionStore, VerifySummary};

use super::crash::Crash;
use super::source::{Source, TEXT};
use crate::failure::Failure;
use crate::stores::Stores;

/// Something that must hold.
pub(super) struct Claim {
    pub(super) holds: bool,
    pub(super) text: String,
}

/// A node of the surface with its event and what it shadows.
pub(super) struct Node {
    pub(super) node: SurfaceNode,
    pub(super) event: Event,
    pub(super) shadows: Vec<u64>,
}

/// The exported file against the bundled one, line by line.
pub(super) struct Compared {
    pub(super) lines: u64,
    /// Lines from the start that are the source's, the header included.
    pub(super) same: u64,
    /// Lines behind them that are the closers'.
    pub(super) closers: u64,
}

/// All that was found.
pub(super) struct Seen {
    pub(super) id: String,
    pub(super) recovery: RecoveryReport,
    /// Events of the session as recovery left it.
    pub(super) recovered: u64,
    pub(super) closers: Vec<Event>,
    /// Events with the closers.
    pub(super) events: u64,
    pub(super) messages: Vec<Message>,
    pub(super) surface: Vec<Node>,
    pub(super) findings: Vec<Finding>,
    pub(super) summary: VerifySummary,
    pub(super) violations: u64,
    pub(super) export: Compared,
    pub(super) claims: Vec<Claim>,
}

/// Opens the store as the next run of an agent would, and looks at everything.
pub(super) fn look(stores: &Stores, crash: &Crash, files: &Path) -> Result<Seen, Failure> {
    let id = Source::read()?.header.id().to_owned();
    let store = stores.open()?;
    let recovery = store.recovery().clone();
    let recovered = store.stat(&id)?.events;
    let resumed = store.resume(&id)?;
    resumed.session.close()?;
    store.close()?;
    // From here on as any reader would.
    let store = stores.read()?;
    let session = store.open(&id)?;
    let messages = session.derive_messages()?;
    let surface = surface(&store, &id)?;
    let violations = violations(&store, &id)?;
    let mut findings = Vec::new();
    let summary = store.verify(&mut |finding| findings.push(finding))?;
    let written = export_session(&store, &id, files, WriteOptions::default())?;
    let text = fs::read_to_string(&written.path)
        .map_err(|error| Failure::Words(format!("{}: {error}", written.path.display())))?;
    let export = compare(&text, &resumed.closers);
    let mut seen = Seen {
        id,
        recovery,
        recovered,
        closers: resumed.closers,
        events: session.seq(),
        messages,
        surface,
        findings,
        summary,
        violations,
        export,
        claims: Vec::new(),
    };
    let left = session.closers()?.len();
    seen.claims = claims(&seen, crash, left);
    Ok(seen)
}

fn surface(store: &SessionStore, id: &str) -> Result<Vec<Node>> {
    let session = store.open(id)?;
    let mut nodes = Vec::new();
    for node in session.surface()? {
        let (event, shadows) = (session.event(node.seq)?, session.provenance(node.seq)?.shadows);
        nodes.push(Node { node, event, shadows });
    }
    // What is shadowed stays readable.
    for seq in nodes.iter().flat_map(|node| &node.shadows) {
        session.event(*seq)?;
    }
    Ok(nodes)
}

fn violations(store: &SessionStore, id: &str) -> Result<u64> {
    let mut checker = Checker::new();
    let mut count = 0;
    for event in store.open(id)?.events() {
        count += u64::try_from(checker.observe(&event?).len()).unwrap_or(u64::MAX);
    }
    Ok(count)
}

fn compare(exported: &str, closers: &[Event]) -> Compared {
    let same = exported.split_inclusive('\n').zip(TEXT.split_inclusive('\n'));
    let same = same.take_while(|(ours, theirs)| ours == theirs).count();
    let behind = exported.split_inclusive('\n').skip(same);
    let closing = behind.zip(closers).take_while(|(line, closer)| **line == format!("{closer}\n")).count();
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    Compared { lines: count(exported.lines().count()), same: count(same), closers: count(closing) }
}

fn claims(seen: &Seen, crash: &Crash, closers_left: usize) -> Vec<Claim> {
    let claim = |holds: bool, text: String| Claim { holds, text };
    let cut: u64 = seen.recovery.cut.iter().map(|cut| cut.length).sum();
    let closers = u64::try_from(seen.closers.len()).unwrap_or(u64::MAX);
    let shadowed: usize = seen.surface.iter().map(|node| node.shadows.len()).sum();
    let export = &seen.export;
    vec![
        claim(
            seen.recovered == crash.acknowledged + 1,
            format!(
                "events 0 to {}, all that was acknowledged, are there, and nothing else",
                crash.acknowledged
            ),
        ),
        claim(cut > 0, format!("the torn tail was cut ({cut} bytes)")),
        claim(
            seen.recovery.cut.iter().all(|cut| cut.kept_in.is_some()),
            "what was cut is kept in quarantine".to_owned(),
        ),
        claim(seen.recovery.losses.is_empty(), "nothing acknowledged is damaged".to_owned()),
        claim(closers > 0, format!("the open turn was closed by {closers} events")),
        claim(closers_left == 0, "a second repair has nothing to do".to_owned()),
        claim(shadowed > 0, format!("the compaction shadows {shadowed} events, and each is still readable")),
        claim(!seen.messages.is_empty(), format!("{} messages are derived", seen.messages.len())),
        claim(seen.violations == 0, "check finds no broken invariant".to_owned()),
        claim(seen.summary.findings == 0, "verify finds no damage".to_owned()),
        claim(
            export.same == crash.acknowledged + 2 && export.lines == export.same + export.closers,
            format!(
                "the export is the bundled file byte for byte up to the last acknowledged event ({} lines), then the \
                 closers",
                export.same
            ),
        ),
    ]
}
