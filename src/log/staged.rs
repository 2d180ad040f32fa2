//! Sessions that were staged and never published (F10): nobody sees them, and the next open takes them out.
//!
//! Never: one is taken out whose publish record damage may have taken. It is published: what it holds is not to be lost
//! to a record of a few bytes, and the damage is told. Whether all of it had come is then for the doubt to say (P2).

use crate::error::Result;
use crate::format::meta::SessionMeta;
use crate::format::{Meta, RecordDraft};

use super::Log;
use super::follow::writer_lives;
use super::types::{Entry, Note};

impl Log {
    /// Appends a Delete record for every session that an earlier writer staged and never published, and a Publish record
    /// where damage may have taken one. Where there is no room they stay, invisible, for the next open.
    pub(super) fn settle_staged(&self) -> Result<()> {
        for dense in self.staged() {
            let Some(entry) = self.session(dense)? else { continue };
            let session = SessionMeta { more: false, dense };
            let (meta, note) = if self.shared().may_have_been_published(&entry)? {
                tracing::warn!(
                    session = &*entry.id,
                    "damage may have taken the record that published a session"
                );
                (Meta::Publish(session), Note::Publish { dense })
            } else {
                (Meta::Delete(session), Note::Delete { dense })
            };
            let record = RecordDraft::new(Vec::new()).seal(&meta);
            match self.append(&[Entry { record, note }]) {
                Err(error) if error.is_full() || error.is_backpressure() => return Ok(()),
                other => other?,
            };
        }
        Ok(())
    }

    /// Of a reader: shows those that the next writer will publish. Beside a writer it is not for the reader to say.
    pub(super) fn show_staged(&self) -> Result<()> {
        let staged = self.staged();
        if staged.is_empty() || writer_lives(self.shared()) {
            return Ok(());
        }
        for dense in staged {
            if let Some(entry) = self.session(dense)?
                && self.shared().may_have_been_published(&entry)?
            {
                self.shared().state().live.show(dense);
            }
        }
        Ok(())
    }

    /// Ascending.
    fn staged(&self) -> Vec<u64> {
        let mut staged: Vec<u64> = self.shared().state().live.staged().collect();
        staged.sort_unstable();
        staged
    }
}
