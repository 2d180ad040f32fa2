//! Sessions that were staged and never published (F10): nobody sees them, and the next open takes them out.

use crate::error::Result;
use crate::format::meta::SessionMeta;
use crate::format::{Meta, RecordDraft};

use super::Log;
use super::types::{Entry, Note};

impl Log {
    /// Appends a Delete record for every session that an earlier writer staged and never published. Where there is no
    /// room they stay, invisible, for the next open.
    pub(super) fn remove_staged(&self) -> Result<()> {
        let mut staged: Vec<u64> = {
            let state = self.shared().state();
            state.live.staged().collect()
        };
        staged.sort_unstable();
        for dense in staged {
            let record = RecordDraft::new(Vec::new()).seal(&Meta::Delete(SessionMeta { more: false, dense }));
            match self.append(&[Entry { record, note: Note::Delete { dense } }]) {
                Err(error) if error.is_full() || error.is_backpressure() => return Ok(()),
                other => other?,
            };
        }
        Ok(())
    }
}
