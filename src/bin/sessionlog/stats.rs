//! `stats`: figures of the store.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::failure::{Ended, Outcome};
use crate::output::Output;
use crate::stores::Stores;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    sessions: u64,
    open_sessions: u64,
    damaged_sessions: u64,
    events: u64,
    event_bytes: u64,
    segments: u64,
    used_bytes: u64,
    disk_bytes: u64,
    quarantined_files: u64,
    quarantined_bytes: u64,
    syncs: u64,
}

pub(crate) fn run(stores: &Stores, out: &mut Output) -> Ended {
    let store = stores.read()?;
    let counters = store.counters().log;
    let (segments, _) = files_in(&stores.path().join("segments"), ".seg");
    let (quarantined_files, quarantined_bytes) = files_in(&stores.path().join("quarantine"), ".cut");
    let mut shown = Shown {
        sessions: 0,
        open_sessions: 0,
        damaged_sessions: 0,
        events: 0,
        event_bytes: 0,
        segments,
        used_bytes: counters.used_bytes,
        disk_bytes: ["", "segments", "directory", "quarantine"]
            .iter()
            .map(|folder| files_in(&stores.path().join(folder), "").1)
            .sum(),
        quarantined_files,
        quarantined_bytes,
        syncs: counters.commits,
    };
    for stat in store.stored()? {
        let stat = stat?;
        shown.sessions += 1;
        shown.open_sessions += u64::from(stat.open);
        shown.damaged_sessions += u64::from(stat.damaged);
        shown.events += stat.events;
        shown.event_bytes += stat.bytes;
    }
    if out.json {
        out.json(&shown)?;
        return Ok(Outcome::Fine);
    }
    let rows = [
        ("sessions", shown.sessions),
        ("  with an open turn", shown.open_sessions),
        ("  damaged", shown.damaged_sessions),
        ("events", shown.events),
        ("  bytes", shown.event_bytes),
        ("segments", shown.segments),
        ("  used bytes", shown.used_bytes),
        ("bytes of all files", shown.disk_bytes),
        ("quarantined files", shown.quarantined_files),
        ("  bytes", shown.quarantined_bytes),
        ("syncs so far", shown.syncs),
    ];
    for (name, value) in rows {
        out.line(format_args!("{name:<20} {value:>14}"))?;
    }
    Ok(Outcome::Fine)
}

/// How many files of a folder end so, and their bytes.
fn files_in(folder: &Path, ending: &str) -> (u64, u64) {
    let Ok(entries) = fs::read_dir(folder) else { return (0, 0) };
    let sizes = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().ends_with(ending));
    let sizes = sizes.filter_map(|entry| entry.metadata().ok()).filter(fs::Metadata::is_file);
    sizes.fold((0, 0), |(files, bytes), data| (files + 1, bytes + data.len()))
}
