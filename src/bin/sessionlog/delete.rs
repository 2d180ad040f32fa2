//! `delete`: removes a session. Its forks keep what they need.

use serde::Serialize;

use crate::failure::{Ended, Outcome};
use crate::output::{Output, printable, say};
use crate::stores::Stores;

#[derive(Serialize)]
struct Deleted<'a> {
    deleted: &'a str,
}

pub(crate) fn run(stores: &Stores, id: &str, out: &mut Output) -> Ended {
    let store = stores.open()?;
    store.delete(id)?;
    store.close()?;
    if out.json {
        out.json(&Deleted { deleted: id })?;
    } else {
        say(format_args!("deleted {}", printable(id)));
    }
    Ok(Outcome::Fine)
}
