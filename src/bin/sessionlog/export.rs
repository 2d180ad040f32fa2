//! `export jsonl`: stored sessions as files.

use std::path::Path;

use serde::Serialize;
use sessionlog::interop::jsonl::{WriteOptions, export_session};

use crate::args;
use crate::failure::{Ended, Failure, Outcome};
use crate::output::{Output, printable, say};
use crate::progress::Progress;
use crate::stores::Stores;

#[derive(Serialize)]
struct Shown<'a> {
    session: &'a str,
    file: &'a Path,
    events: u64,
    bytes: u64,
}

pub(crate) fn run(stores: &Stores, args: &args::ExportJsonl, out: &mut Output) -> Ended {
    let store = stores.read()?;
    let ids = if args.ids.is_empty() {
        let ids: sessionlog::Result<Vec<String>> =
            store.stored()?.map(|stat| stat.map(|stat| stat.id.to_string())).collect();
        ids?
    } else {
        args.ids.clone()
    };
    let options = WriteOptions { replace: args.replace };
    let mut failed = 0_u64;
    let progress = Progress::new("sessions exported", u64::try_from(ids.len()).ok());
    for id in &ids {
        match export_session(&store, id, &args.out, options) {
            Ok(written) if out.json => {
                let (events, bytes) = (written.events, written.bytes);
                out.json(&Shown { session: id, file: &written.path, events, bytes })?;
            }
            Ok(written) => out.line(written.path.display())?,
            Err(error) => {
                failed += 1;
                say(format_args!("not exported: {}: {}", printable(id), printable(&error.to_string())));
            }
        }
        progress.add(1);
    }
    drop(progress);
    if failed > 0 {
        return Err(Failure::Words(format!("{failed} of {} sessions were not exported", ids.len())));
    }
    Ok(Outcome::Fine)
}
