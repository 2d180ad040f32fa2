//! The recorder that is going to be killed.
//!
//! It talks to its parent in lines: `acknowledged SEQ` after each flush, `waiting` before the end, and
//! `written SEQ` when the last events have reached the operating system, unflushed.

use std::io::{self, Read};

use sessionlog::event::{Event, NewEvent};
use sessionlog::{CreateOptions, Durability};

use super::source::Source;
use crate::failure::{Ended, Failure};
use crate::output::Output;
use crate::stores::Stores;

/// Records until it is killed.
pub(crate) fn child(stores: &Stores, mut out: Output) -> Ended {
    let source = Source::read()?;
    let store = stores.open_or_create()?;
    let session = store.create(CreateOptions::from_header(source.header))?;
    for step in source.steps {
        let Some(last) = step.last().map(Event::seq) else { continue };
        session.append_batch(step.into_iter().map(NewEvent::from_event).collect())?;
        session.flush()?;
        out.line(format_args!("acknowledged {last}"))?;
        out.flush()?;
    }
    out.line("waiting")?;
    out.flush()?;
    wait_for_parent(&mut [0])?;
    let last = session.append_batch(source.unflushed.into_iter().map(NewEvent::from_event).collect())?;
    session.flush_to(Durability::Written)?;
    out.line(format_args!("written {}", last.end.saturating_sub(1)))?;
    out.flush()?;
    // The end comes here. Where it does not, the parent is gone.
    wait_for_parent(&mut [0])?;
    Err(Failure::Words("the recorder was not killed".to_owned()))
}

fn wait_for_parent(byte: &mut [u8; 1]) -> Result<(), Failure> {
    match io::stdin().read(byte) {
        Ok(0) => Err(Failure::Words("the demo ended without killing its recorder".to_owned())),
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Words(format!("standard input: {error}"))),
    }
}
