//! Creating files of a store so that a crash at any point leaves either nothing or something that the next open
//! completes: write under another name, sync, rename, sync the directory.

use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::error::Result;
use crate::format::blocks::Sink;
use crate::format::{Control, ControlSlot, LiveSet, SegmentHeader, StoreId, names};
use crate::mutation::{self, Mutation};

use super::keeper::write_zeros;
use super::survey::Survey;

/// Creates or completes the fixed parts of a store: folders, LIVE and CONTROL.
///
/// # Errors
/// A disk call fails.
pub(crate) fn complete_store(disk: &dyn Disk, survey: &Survey, store: StoreId) -> Result<()> {
    for folder in [names::SEGMENTS, names::DIRECTORY, names::QUARANTINE] {
        disk.create_dir(folder)?;
    }
    if survey.live.is_none() {
        put_live(disk, &LiveSet { store, version: 1, ..LiveSet::default() })?;
    }
    if survey.control.is_none() {
        put_new_control(disk, &ControlSlot { store, live_version: 1, ..ControlSlot::default() })?;
    }
    if mutation::is_on(Mutation::NoDirSyncAtCreation) {
        return Ok(());
    }
    disk.sync_dir("")
}

/// Replaces LIVE.
///
/// # Errors
/// A disk call fails; the old one is still there then.
pub(crate) fn put_live(disk: &dyn Disk, live: &LiveSet) -> Result<()> {
    replace(disk, names::LIVE_TEMP, names::LIVE, "", &live.encode())
}

/// Replaces CONTROL as a whole: for a new store, and for one whose CONTROL was lost.
///
/// # Errors
/// A disk call fails.
pub(crate) fn put_new_control(disk: &dyn Disk, slot: &ControlSlot) -> Result<()> {
    replace(disk, names::CONTROL_TEMP, names::CONTROL, "", &Control::encode_new(slot))
}

/// Writes `bytes` under `temp`, syncs, renames to `name` and syncs `folder`.
///
/// # Errors
/// A disk call fails; `name` is as before then.
pub(crate) fn replace(disk: &dyn Disk, temp: &str, name: &str, folder: &str, bytes: &[u8]) -> Result<()> {
    replace_with(disk, temp, name, folder, &mut |sink| sink(0, bytes))
}

/// As [`replace`], for a file that `write` hands over in pieces.
///
/// # Errors
/// A disk call fails; `name` is as before then.
pub(crate) fn replace_with(
    disk: &dyn Disk,
    temp: &str,
    name: &str,
    folder: &str,
    write: &mut dyn FnMut(Sink<'_>) -> Result<()>,
) -> Result<()> {
    if disk.exists(temp)? {
        disk.unlink(temp)?;
    }
    let written = disk.create_excl(temp).and_then(|file| {
        write(&mut |at, piece| file.write_at(&[piece], at))?;
        if mutation::is_on(Mutation::NoSyncBeforeRename) { Ok(()) } else { file.sync_file() }
    });
    if let Err(error) = written {
        // A half-written temporary file holds space that a full disk needs.
        let _ = disk.unlink(temp);
        return Err(error);
    }
    disk.rename(temp, name)?;
    if mutation::is_on(unsynced(name)) { Ok(()) } else { disk.sync_dir(folder) }
}

/// The fault of not syncing the folder of a file that replaced another.
fn unsynced(name: &str) -> Mutation {
    match name {
        names::LIVE => Mutation::NoDirSyncOfLive,
        names::CONTROL => Mutation::NoDirSyncOfControl,
        run if run.starts_with(names::DIRECTORY) => Mutation::NoDirSyncOfRun,
        _ => Mutation::NoDirSyncOfIndex,
    }
}

/// Makes segment `header.number` exist: prepared bytes, header, sync, rename, directory sync.
///
/// # Errors
/// A disk call fails; there is no such segment then, or it is complete.
pub(crate) fn begin_segment(
    disk: &dyn Disk,
    header: &SegmentHeader,
    prepared: u32,
) -> Result<(Arc<dyn DiskFile>, u32)> {
    let temp = names::prepared(header.number);
    if disk.exists(&temp)? {
        disk.unlink(&temp)?;
    }
    let file = disk.create_excl(&temp)?;
    let (bytes, crc) = header.encode();
    let filled = write_zeros(file.as_ref(), 0, prepared)
        .and_then(|()| file.write_at(&[&bytes], 0))
        .and_then(|()| if mutation::is_on(Mutation::NoSyncAtBegin) { Ok(()) } else { file.sync_file() });
    if let Err(error) = filled {
        let _ = disk.unlink(&temp);
        return Err(error);
    }
    disk.rename(&temp, &names::segment(header.number))?;
    if !mutation::is_on(Mutation::NoDirSyncAtBegin) {
        disk.sync_dir(names::SEGMENTS)?;
    }
    Ok((file, crc))
}
