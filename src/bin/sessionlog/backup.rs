//! `backup`: a copy of the store, live or not, in a new directory.

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;

use crate::failure::{Ended, Outcome};
use crate::output::{Output, say};
use crate::progress::Progress;
use crate::stores::Stores;

#[derive(Serialize)]
struct Shown<'a> {
    target: Cow<'a, str>,
    files: u64,
    bytes: u64,
}

pub(crate) fn run(stores: &Stores, target: &Path, out: &mut Output) -> Ended {
    let store = stores.read()?;
    let progress = Progress::new("copying the store", None);
    let report = store.backup(target)?;
    drop(progress);
    if out.json {
        out.json(&Shown { target: target.to_string_lossy(), files: report.files, bytes: report.bytes })?;
    } else {
        say(format_args!("{}: {} files, {} bytes", target.display(), report.files, report.bytes));
    }
    Ok(Outcome::Fine)
}
