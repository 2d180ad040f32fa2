//! `tail`: the last events of a session, and those that come.

use std::io;
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

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
                    say(printable(&format!("{}: {error}", args.id)));
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
            if reader_is_gone() {
                return Ok(Outcome::findings_if(damaged));
            }
            thread::sleep(POLL);
        }
    }
}

/// Whether nobody will ever read what is printed: without a look, that shows only when there is something to print.
fn reader_is_gone() -> bool {
    let stdout = io::stdout();
    // Errors and hang-ups are reported without being asked for.
    let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let polled = poll(&mut fds, PollTimeout::ZERO);
    let [out] = &fds;
    polled.is_ok()
        && out.revents().is_some_and(|seen| seen.intersects(PollFlags::POLLERR | PollFlags::POLLNVAL))
}
