//! Sessions by id, by number and by parent: the live entries over the directory runs.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};

use super::shared::Shared;
use super::types::SessionEntry;

impl Shared {
    fn directory(&self) -> Arc<super::directory::Directory> {
        Arc::clone(&self.state().live.directory)
    }

    /// A session by dense id, deleted and staged ones too.
    pub(crate) fn session(&self, dense: u64) -> Result<Option<SessionEntry>> {
        if let Some(entry) = self.state().live.entry(dense) {
            return Ok(Some(entry.clone()));
        }
        self.directory().session(dense)
    }

    /// The newest visible session of that id.
    pub(crate) fn lookup(&self, id: &str) -> Result<Option<SessionEntry>> {
        let mut found = self.state().live.by_id(id).to_vec();
        found.extend(self.directory().by_id(id)?);
        found.sort_unstable();
        found.dedup();
        for dense in found.into_iter().rev() {
            if let Some(entry) = self.session(dense)?
                && is_visible(&entry)
            {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Dense ids of all visible sessions, ascending.
    pub(crate) fn sessions(&self) -> Result<Vec<u64>> {
        let mut all = self.directory().all()?;
        all.extend(self.state().live.entries().map(|entry| entry.dense));
        self.visible(all)
    }

    /// Visible sessions forked off this one.
    pub(crate) fn children(&self, dense: u64) -> Result<Vec<u64>> {
        let mut all = self.directory().children(dense)?;
        all.extend_from_slice(self.state().live.children(dense));
        self.visible(all)
    }

    fn visible(&self, mut all: Vec<u64>) -> Result<Vec<u64>> {
        all.sort_unstable();
        all.dedup();
        let mut visible = Vec::with_capacity(all.len());
        for dense in all {
            if self.session(dense)?.is_some_and(|entry| is_visible(&entry)) {
                visible.push(dense);
            }
        }
        Ok(visible)
    }

    /// Keeps a session's state in memory until detached.
    pub(crate) fn attach(&self, dense: u64) -> Result<SessionEntry> {
        let entry = self
            .session(dense)?
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no session number {dense}")))?;
        let mut state = self.state();
        let live = state.live.adopt(entry);
        live.attached = live.attached.saturating_add(1);
        Ok(live.entry.clone())
    }

    pub(crate) fn detach(&self, dense: u64) {
        self.state().live.detach(dense);
    }
}

fn is_visible(entry: &SessionEntry) -> bool {
    !entry.deleted && !entry.staged
}
