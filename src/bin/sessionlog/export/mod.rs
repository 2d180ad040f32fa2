//! `export`: stored sessions as other programs' files.

mod jsonl;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::collections::HashSet;

use sessionlog::SessionStore;

use crate::args::{ExportFormat, ExportWhat};
use crate::failure::Ended;
use crate::output::Output;
use crate::stores::Stores;

pub(crate) fn run(stores: &Stores, format: &ExportFormat, out: &mut Output) -> Ended {
    match format {
        ExportFormat::Jsonl(args) => jsonl::run(stores, args, out),
        #[cfg(feature = "sqlite")]
        ExportFormat::Sqlite(args) => sqlite::run(stores, args, out),
    }
}

/// The sessions that were asked for, or all.
fn ids(store: &SessionStore, what: &ExportWhat) -> sessionlog::Result<Vec<String>> {
    if what.ids.is_empty() {
        return store.stored()?.map(|stat| stat.map(|stat| stat.id.to_string())).collect();
    }
    // An id that is named twice is one session.
    let mut seen = HashSet::new();
    Ok(what.ids.iter().filter(|id| seen.insert(*id)).cloned().collect())
}
