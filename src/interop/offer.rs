//! A session that somebody's file offers, whatever the file is.

use super::verdict::Verdict;
use crate::Result;
use crate::event::{Event, Header, HeaderNote};

/// See the module. Events come in order, each the one of its place, until the first hole.
pub(crate) trait Offer {
    /// The session's header.
    fn header(&self) -> &Header;

    /// What was odd about the header and kept as it is.
    fn header_notes(&self) -> &[HeaderNote];

    /// The next event, or `None` at the first hole or the end.
    fn next_event(&mut self) -> Result<Option<Event>>;

    /// Where the last event stood, for messages.
    fn place(&self) -> String;

    /// Bytes read so far.
    fn consumed(&self) -> u64;

    /// What else there is to know, once it was read.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Looks at the rest and says how the events end. Events that were not asked for are passed over.
    fn finish(&mut self) -> Result<Verdict>;
}
