//! `tail`: the last events of a session, and those that come.

use std::thread;
use std::time::Duration;

use crate::args;
use crate::events::print;
use crate::failure::{Ended, Outcome};
use crate::output::{Output, printable, say};
use crate::stores::Stores;

/// How often a followed store is looked at.
const POLL: Duration = Duration::from_millis(50);

pub(crate) fn run(stores: &Stores, args: &args::Tail, mut out: Output) -> Ended {
    let store = stores.read()?;
    let mut damaged = false;
    let mut next = store.stat(&args.id)?.events.saturating_sub(args.lines);
    loop {
        let session = store.open(&args.id)?;
        for event in session.read_from(next) {
            match event {
                Ok(event) => {
                    next = event.seq().saturating_add(1);
                    print(&event, &mut out)?;
                }
                Err(error) if error.is_corruption() => {
                    damaged = true;
                    say(printable(&error.to_string()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        next = next.max(session.seq());
        out.flush()?;
        if !args.follow {
            return Ok(Outcome::findings_if(damaged));
        }
        while !store.refresh()? {
            thread::sleep(POLL);
        }
    }
}
