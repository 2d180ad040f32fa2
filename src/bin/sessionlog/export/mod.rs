//! `export`: stored sessions as other programs' files.

mod jsonl;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::collections::HashSet;

use sessionlog::{SessionStore, Stat};

use crate::args::{ExportFormat, ExportWhat};
use crate::failure::Ended;
use crate::output::Output;
use crate::progress::Progress;
use crate::stores::Stores;

pub(crate) fn run(stores: &Stores, format: &ExportFormat, out: &mut Output) -> Ended {
    match format {
        ExportFormat::Jsonl(args) => jsonl::run(stores, args, out),
        #[cfg(feature = "sqlite")]
        ExportFormat::Sqlite(args) => sqlite::run(stores, args, out),
    }
}

/// A session that is to be exported.
struct Wanted {
    id: String,
    /// How many events it has, as far as that is known.
    events: u64,
}

/// The sessions that were asked for, or all.
fn wanted(store: &SessionStore, what: &ExportWhat) -> sessionlog::Result<Vec<Wanted>> {
    if what.ids.is_empty() {
        let of = |stat: Stat| Wanted { id: stat.id.to_string(), events: stat.events };
        return store.stored()?.map(|stat| stat.map(of)).collect();
    }
    // An id that is named twice is one session; one that is not there is said in its place.
    let mut seen = HashSet::new();
    let ids = what.ids.iter().filter(|id| seen.insert(*id));
    Ok(ids
        .map(|id| Wanted { id: id.clone(), events: store.stat(id).map_or(0, |stat| stat.events) })
        .collect())
}

fn progress(wanted: &[Wanted]) -> Progress {
    Progress::events("events exported", wanted.iter().map(|one| one.events).sum())
}
