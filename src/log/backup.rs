//! Backup (D7): sealed files, the active one up to what is durable, then a fresh CONTROL.
//!
//! It takes no lock on the source and stops nobody. What it copies never changes, so the copy is a store as of one
//! LSN. Copying a live store file by file is not: CONTROL may then promise more than the copied log holds.

use std::sync::Arc;

use crate::disk::{Disk, DiskFile, OpenMode};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{ControlSlot, Lsn, State, names};

use super::create::{put_live, put_new_control};
use super::report::BackupReport;
use super::shared::Shared;

const PIECE: usize = 1 << 20;

impl Shared {
    /// See the module.
    ///
    /// # Errors
    /// `Exists` when the target holds anything; a failed disk call on either side.
    pub(crate) fn backup(&self, target: &dyn Disk) -> Result<BackupReport> {
        if let Some(name) = target.list("")?.first() {
            return Err(Error::new(
                ErrorKind::Exists,
                format!(
                    "{} is not empty (it holds {name}); a backup goes into an empty directory",
                    target.path().display()
                ),
            ));
        }
        self.refresh()?;
        let end = self.backup_end();
        let mut report = BackupReport::default();
        for folder in [names::SEGMENTS, names::DIRECTORY, names::QUARANTINE] {
            target.create_dir(folder)?;
        }
        for number in self.segments.read().numbers().into_iter().filter(|number| *number < end.segment()) {
            let segments = Arc::clone(&self.segments.read());
            let limit = match segments.facts(self, number) {
                Ok(facts) => u64::from(facts.end.end),
                // A damaged segment is copied as it is: what can be read of it stays readable in the copy.
                Err(_) => u64::MAX,
            };
            self.copy(target, &names::segment(number), limit, &mut report)?;
            self.copy(target, &names::index(number), u64::MAX, &mut report)?;
        }
        self.copy(target, &names::segment(end.segment()), u64::from(end.offset()), &mut report)?;
        for name in self.disk.list(names::DIRECTORY)? {
            if let Some((_, to)) = names::parse_run(&name)
                && to <= end
            {
                self.copy(target, &format!("{}/{name}", names::DIRECTORY), u64::MAX, &mut report)?;
            }
        }
        for folder in [names::SEGMENTS, names::DIRECTORY, names::QUARANTINE] {
            target.sync_dir(folder)?;
        }
        let live = self.live_set();
        put_live(target, &live)?;
        put_new_control(target, &self.backup_control(end, live.version))?;
        report.files = report.files.saturating_add(2);
        Ok(report)
    }

    fn backup_end(&self) -> Lsn {
        if let Some(commit) = self.state().commit.as_ref() {
            return commit.durable();
        }
        self.follow.lock().as_ref().map_or(Lsn::NONE, |follow| Lsn::new(follow.header.number, follow.at))
    }

    fn backup_control(&self, end: Lsn, live_version: u64) -> ControlSlot {
        let now = match self.state().commit.as_ref() {
            Some(commit) => *commit.control(),
            None => self.control(),
        };
        ControlSlot {
            state: State::Open,
            durable: end,
            written: end,
            live_version,
            directory_to: Lsn::NONE,
            last_index: Lsn::NONE,
            active: end.segment(),
            ..now
        }
    }

    /// Copies the first `limit` bytes of a file; one that is not there is left out.
    fn copy(&self, target: &dyn Disk, name: &str, limit: u64, report: &mut BackupReport) -> Result<()> {
        Self::unlocked();
        let from = match self.disk.open(name, OpenMode::Read) {
            Err(error) if error.is_not_found() => return Ok(()),
            other => other?,
        };
        let to = target.create_excl(name)?;
        let copied = copy_bytes(from.as_ref(), to.as_ref(), limit)?;
        to.sync_file()?;
        report.files = report.files.saturating_add(1);
        report.bytes = report.bytes.saturating_add(copied);
        Ok(())
    }
}

fn copy_bytes(from: &dyn DiskFile, to: &dyn DiskFile, limit: u64) -> Result<u64> {
    let mut buffer = vec![0; PIECE];
    let mut at = 0u64;
    while at < limit {
        let want = usize::try_from(limit - at).unwrap_or(PIECE).min(PIECE);
        let piece = buffer.get_mut(..want).unwrap_or_default();
        let read = from.read_at(piece, at)?;
        to.write_at(&[piece.get(..read).unwrap_or_default()], at)?;
        at = at.saturating_add(read as u64);
        if read < want {
            break;
        }
    }
    Ok(at)
}
