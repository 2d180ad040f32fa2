//! Sessions by id, by number and by parent: the live entries over the directory runs.
//!
//! What changed behind the directory's end is always live, so one look at both under the lock is a whole answer; runs
//! are read without it (T3).

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};

use super::directory::{Directory, broken_run};
use super::live::LiveIndex;
use super::shared::Shared;
use super::types::SessionEntry;

impl Shared {
    /// Looks at the live entries and at the directory behind them, as of one moment. A broken run is taken out of
    /// the chain, and both are looked at again.
    fn look<L, T>(
        &self,
        live: impl Fn(&LiveIndex) -> L,
        rest: impl Fn(L, &Directory) -> Result<T>,
    ) -> Result<(T, Arc<Directory>)> {
        loop {
            let (found, directory) = {
                let state = self.state();
                (live(&state.live), Arc::clone(&state.live.directory))
            };
            let answer = rest(found, &directory);
            match answer.as_ref().err().and_then(broken_run) {
                Some(range) => self.heal(&directory, range)?,
                None => return answer.map(|answer| (answer, directory)),
            }
        }
    }

    fn session_from(&self, dense: u64) -> Result<(Option<SessionEntry>, Arc<Directory>)> {
        self.look(
            |live| live.entry(dense),
            |live, directory| match live {
                Some(entry) => Ok(Some(entry)),
                None => directory.session(dense),
            },
        )
    }

    /// A session by dense id, deleted and staged ones too.
    pub(crate) fn session(&self, dense: u64) -> Result<Option<SessionEntry>> {
        self.session_from(dense).map(|(entry, _)| entry)
    }

    /// The newest visible session of that id.
    pub(crate) fn lookup(&self, id: &str) -> Result<Option<SessionEntry>> {
        let (found, _) = self.look(
            |live| live.by_id(id),
            |mut found, directory| {
                found.extend(directory.by_id(id)?);
                Ok(found)
            },
        )?;
        Ok(self.visible(found)?.pop())
    }

    /// Dense ids of all visible sessions that no other one continues, in the order in which they came into being.
    pub(crate) fn sessions(&self) -> Result<Vec<u64>> {
        let (all, _) = self.look(
            |live| live.all().collect::<Vec<_>>(),
            |mut live, directory| {
                live.sort_unstable_by_key(|listed| listed.dense);
                let mut all = Vec::new();
                let is_live = |dense| live.binary_search_by_key(&dense, |listed| listed.dense).is_ok();
                directory.all(&mut |listed| {
                    if listed.is_visible && !is_live(listed.dense) {
                        all.push(listed);
                    }
                })?;
                all.extend(live.iter().filter(|listed| listed.is_visible));
                all.sort_unstable_by_key(|listed| listed.dense);
                Ok(all)
            },
        )?;
        self.newest_of_each(&all)
    }

    /// Visible sessions forked off this one.
    pub(crate) fn children(&self, dense: u64) -> Result<Vec<u64>> {
        let (found, _) = self.look(
            |live| live.children(dense).to_vec(),
            |mut found, directory| {
                found.extend(directory.children(dense)?);
                Ok(found)
            },
        )?;
        Ok(self.visible(found)?.into_iter().map(|entry| entry.dense).collect())
    }

    fn visible(&self, mut all: Vec<u64>) -> Result<Vec<SessionEntry>> {
        all.sort_unstable();
        all.dedup();
        let mut visible = Vec::new();
        for dense in all {
            visible.extend(self.session(dense)?.filter(SessionEntry::is_visible));
        }
        Ok(visible)
    }

    /// Keeps a session's state in memory until detached.
    pub(crate) fn attach(&self, dense: u64) -> Result<SessionEntry> {
        loop {
            let (entry, directory) = self.session_from(dense)?;
            let entry = entry.ok_or_else(|| {
                Error::new(ErrorKind::NotFound, format!("there is no session number {dense}"))
            })?;
            let mut state = self.state();
            // An entry from a run is the newest state only as long as nothing came in between.
            if state.live.knows(dense) || Arc::ptr_eq(&state.live.directory, &directory) {
                state.live.adopt(entry);
                state.live.attach(dense);
                return state.live.entry(dense).ok_or_else(|| {
                    Error::new(ErrorKind::Internal, format!("session number {dense} was not kept"))
                });
            }
        }
    }

    pub(crate) fn detach(&self, dense: u64) {
        self.state().live.detach(dense);
    }
}
