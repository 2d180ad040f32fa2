//! `surface`: the events that make the messages, as the linked list they are.

use serde::Serialize;

use crate::events::gist;
use crate::failure::{Ended, Outcome};
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
    for node in session.surface()? {
        let event = session.event(node.seq)?;
        if out.json {
            let (seq, prev, next) = (node.seq, node.prev, node.next);
            out.json(&Node { seq, prev, next, event_type: event.event_type() })?;
        } else {
            let event_type = printable(event.event_type());
            out.line(format_args!("{:>7}  {:<18} {}", node.seq, event_type, gist(&event)))?;
        }
    }
    Ok(Outcome::Fine)
}
