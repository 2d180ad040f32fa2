//! Tests of the parts that need no log.

mod delivery;
mod live;
mod memory;
mod round;
mod subscription;

use crate::event::{Event, NewEvent, Time};

/// The event `seq`, with `seq` as its time too.
fn event(seq: u64) -> Event {
    let millis = i64::try_from(seq).unwrap();
    NewEvent::raw("x/y", "{}").unwrap().into_event(seq, Time::from_millis(millis))
}
