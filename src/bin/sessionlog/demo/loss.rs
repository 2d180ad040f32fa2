//! What a power cut does and a process cannot: losing a sector that was written but never flushed.
//!
//! What always holds: only bytes behind the last acknowledged one are touched, and only in whole sectors' worth up
//! to the end of what was written. A kill alone loses nothing that has reached the operating system, so without
//! this the log would have no torn tail to show.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::failure::Failure;

const SECTOR: u64 = 512;
/// A frame's header must be left to be found.
const HEADER: u64 = 64;
/// How long the end of the log must stand still. The engine's own last word about a flush (its witness frame)
/// comes within a fraction of it.
const STILL: Duration = Duration::from_millis(250);

/// The bytes that were lost.
pub(super) struct Lost {
    /// Relative to the store.
    pub(super) file: PathBuf,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// The segment that is written to, and where its data ends.
pub(super) struct End {
    file: PathBuf,
    at: u64,
}

/// Waits until nothing is written any more, and says where the log ends.
pub(super) fn settled_end(store: &Path) -> Result<End, Failure> {
    let mut end = end_of_log(store)?;
    loop {
        thread::sleep(STILL);
        let now = end_of_log(store)?;
        if now.file == end.file && now.at == end.at {
            return Ok(now);
        }
        end = now;
    }
}

/// Loses the last sector that was written behind `acknowledged`.
pub(super) fn lose_last_sector(store: &Path, acknowledged: &End) -> Result<Lost, Failure> {
    let end = end_of_log(store)?;
    let offset = end.at.saturating_sub(1) / SECTOR * SECTOR;
    let safe = if end.file == acknowledged.file { acknowledged.at } else { SECTOR };
    if offset < safe.saturating_add(HEADER) {
        return Err(Failure::Words("the unflushed bytes fill no sector of their own".to_owned()));
    }
    let length = end.at - offset;
    let path = store.join(&end.file);
    let zeros = vec![0; usize::try_from(length).unwrap_or(0)];
    let file = OpenOptions::new().write(true).open(&path).map_err(|error| failed(&path, &error))?;
    file.write_all_at(&zeros, offset).map_err(|error| failed(&path, &error))?;
    Ok(Lost { file: end.file, offset, length })
}

/// The newest segment, and the place behind its last byte that is not zero.
fn end_of_log(store: &Path) -> Result<End, Failure> {
    let folder = store.join("segments");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, &error))? {
        let name = entry.map_err(|error| failed(&folder, &error))?.file_name();
        if Path::new(&name).extension().is_some_and(|extension| extension == "seg") {
            names.push(name);
        }
    }
    let Some(name) = names.into_iter().max() else {
        return Err(Failure::Words(format!("{} holds no segment", folder.display())));
    };
    let path = folder.join(&name);
    let at = data_end(&path).map_err(|error| failed(&path, &error))?;
    Ok(End { file: Path::new("segments").join(name), at })
}

fn data_end(path: &Path) -> io::Result<u64> {
    const WINDOW: u64 = 1 << 16;
    let file = File::open(path)?;
    let mut end = file.metadata()?.len();
    while end > 0 {
        let start = end.saturating_sub(WINDOW);
        let mut window = vec![0; usize::try_from(end - start).unwrap_or(0)];
        file.read_exact_at(&mut window, start)?;
        if let Some(last) = window.iter().rposition(|byte| *byte != 0) {
            return Ok(start + u64::try_from(last).unwrap_or(0) + 1);
        }
        end = start;
    }
    Ok(0)
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::Words(format!("{}: {error}", path.display()))
}
