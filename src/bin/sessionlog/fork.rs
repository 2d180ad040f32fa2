//! `fork`: a new session with the events of an old one up to a place.

use sessionlog::ForkOptions;

use crate::args;
use crate::failure::{Ended, Outcome};
use crate::ls::Figures;
use crate::output::{Output, printable};
use crate::stores::Stores;

pub(crate) fn run(stores: &Stores, args: args::Fork, out: &mut Output) -> Ended {
    let store = stores.open()?;
    let mut options = ForkOptions::new().close_open_turn(args.close_open_turn);
    if let Some(at) = args.at {
        options = options.at(at);
    }
    if let Some(id) = args.new_id {
        options = options.id(id);
    }
    let session = store.fork(&args.id, options)?;
    let id = session.id().to_owned();
    session.close()?;
    let stat = store.stat(&id)?;
    store.close()?;
    if out.json {
        out.json(&Figures::of(&stat)?)?;
    } else {
        out.line(printable(&id))?;
    }
    Ok(Outcome::Fine)
}
