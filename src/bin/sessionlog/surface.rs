//! `surface`: the events that make the messages, as the linked list they are.
//!
//! What is never done: printing the list of a session that lost events to damage, as its links may be wrong. The
//! holes are named on standard error instead.

use serde::Serialize;

use crate::events::gist;
use crate::failure::{Ended, Outcome};
use crate::holes::{ends_in_doubt, explained};
use crate::output::{Output, printable};
use crate::stores::Stores;

#[derive(Serialize)]
struct Node<'a> {
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prev: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    #[serde(rename = "type")]
    event_type: &'a str,
}

pub(crate) fn run(stores: &Stores, id: &str, out: &mut Output) -> Ended {
    let store = stores.read()?;
    let session = store.open(id)?;
    for node in session.surface().map_err(|error| explained(&session, error))? {
        let event = session.event(node.seq).map_err(|error| explained(&session, error))?;
        if out.json {
            let (seq, prev, next) = (node.seq, node.prev, node.next);
            out.json(&Node { seq, prev, next, event_type: event.event_type() })?;
        } else {
            let event_type = printable(event.event_type());
            out.line(format_args!("{:>7}  {:<18} {}", node.seq, event_type, gist(&event)))?;
        }
    }
    Ok(Outcome::findings_if(ends_in_doubt(&session)?))
}
