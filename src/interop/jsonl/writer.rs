//! Writes one session file and publishes it whole (rule X).
//!
//! What always holds: a name with `.jsonl` appears only with its complete, synced content. Folders are 0700,
//! files 0600. What is never done: replacing a file without being asked to.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::path::session_path;
use crate::event::{Event, Header};
use crate::{Error, ErrorKind, Result};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const BUFFER_BYTES: usize = 1 << 16;

/// How files are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Replace a file that is there already. Without it such a file is an error of kind `Exists`.
    pub replace: bool,
}

/// A file that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its events.
    pub events: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// Writes the session of `header` below `root`, creating what folders are missing.
///
/// # Errors
/// A name that is too long, a file that is there already, failed writes, and whatever `events` yields. Nothing
/// is published then, and what was written so far is removed.
pub fn write_file(
    root: &Path,
    header: &Header,
    events: impl IntoIterator<Item = Result<Event>>,
    options: WriteOptions,
) -> Result<WrittenFile> {
    let path = session_path(root, header.id(), header.cwd())?;
    let folder = path.parent().unwrap_or(root);
    create_folders(folder)?;
    if !options.replace && path.symlink_metadata().is_ok() {
        return Err(there_already(&path));
    }
    let draft = Draft::create(folder)?;
    let (events, bytes) = fill(&draft, header, events)?;
    draft.publish(&path, options.replace)?;
    sync_folder(folder)?;
    Ok(WrittenFile { path, events, bytes })
}

fn there_already(path: &Path) -> Error {
    let text = format!("{} is there already; it was not touched", path.display());
    Error::new(ErrorKind::Exists, text)
}

fn fill(
    draft: &Draft,
    header: &Header,
    events: impl IntoIterator<Item = Result<Event>>,
) -> Result<(u64, u64)> {
    let failed = |error| Error::io("write", &draft.path, error);
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, &draft.file);
    let (mut count, mut bytes) = (0_u64, 0_u64);
    let mut put = |line: &str, bytes: &mut u64| -> io::Result<()> {
        out.write_all(line.as_bytes())?;
        out.write_all(b"\n")?;
        *bytes += u64::try_from(line.len()).unwrap_or(u64::MAX).saturating_add(1);
        Ok(())
    };
    put(&header.to_line(), &mut bytes).map_err(failed)?;
    for event in events {
        put(&event?.to_line(), &mut bytes).map_err(failed)?;
        count += 1;
    }
    out.flush().map_err(failed)?;
    drop(out);
    draft.file.sync_all().map_err(|error| Error::io("sync", &draft.path, error))?;
    Ok((count, bytes))
}

/// A file under a temporary name; removed unless it was published.
#[derive(Debug)]
struct Draft {
    path: PathBuf,
    file: File,
}

impl Draft {
    /// The name is short, so that it fits wherever the final one does, and does not end in `.jsonl`.
    fn create(folder: &Path) -> Result<Self> {
        let path = folder.join(format!("{}.tmp", Uuid::new_v4().simple()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(FILE_MODE);
        let file = options.open(&path).map_err(|error| Error::io("create", &path, error))?;
        Ok(Self { path, file })
    }

    /// A link fails where the name is taken, which a rename does not.
    fn publish(&self, path: &Path, replace: bool) -> Result<()> {
        if !replace {
            match fs::hard_link(&self.path, path) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(there_already(path));
                }
                // A file system without links: the name was free a moment ago, and a rename is all there is.
                Err(error) if links_are_missing(&error) => {}
                Err(error) => return Err(Error::io("link", path, error)),
            }
        }
        fs::rename(&self.path, path).map_err(|error| Error::io("rename to", path, error))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After a rename there is nothing under the temporary name.
        let _ = fs::remove_file(&self.path);
    }
}

fn links_are_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported)
}

/// Creates `folder` and its missing parents, and makes their names durable.
fn create_folders(folder: &Path) -> Result<()> {
    let mut missing = Vec::new();
    let mut at = Some(folder);
    while let Some(path) = at.filter(|path| !path.as_os_str().is_empty() && !path.is_dir()) {
        missing.push(path);
        at = path.parent();
    }
    for path in missing.into_iter().rev() {
        match DirBuilder::new().mode(FOLDER_MODE).create(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(error) => return Err(Error::io("create folder", path, error)),
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync_folder(parent.unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

fn sync_folder(folder: &Path) -> Result<()> {
    let file = File::open(folder).map_err(|error| Error::io("open folder", folder, error))?;
    file.sync_all().map_err(|error| Error::io("sync folder", folder, error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const LINES: [&str; 3] = [
        r#"{"type":"session","version":0,"id":"a/b","createdAt":1,"cwd":"/"}"#,
        r#"{"type":"x","seq":0,"time":1,"data":{"k":"é"}}"#,
        r#"{"time":1, "seq":1,"type":"x","data":2}"#,
    ];

    fn write(root: &Path, options: WriteOptions) -> Result<WrittenFile> {
        let (header, _) = Header::parse_line(LINES[0]).unwrap();
        write_file(root, &header, LINES[1..].iter().map(|line| Event::parse_line(line)), options)
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_session_lands_at_its_path_byte_for_byte_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("new/root");
        let written = write(&root, WriteOptions::default()).unwrap();
        assert_eq!(written.path, root.join("cwd-8a5edab28263/a~002Fb.jsonl"));
        let text = fs::read_to_string(&written.path).unwrap();
        assert_eq!(text, LINES.map(|line| format!("{line}\n")).concat());
        assert_eq!((written.events, written.bytes), (2, u64::try_from(text.len()).unwrap()));
        assert_eq!(mode(&written.path), 0o600);
        assert_eq!(mode(&root), 0o700);
        assert_eq!(mode(written.path.parent().unwrap()), 0o700);
        assert_eq!(fs::read_dir(written.path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_there_is_kept_unless_it_is_to_be_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), WriteOptions::default()).unwrap().path;
        fs::write(&path, "mine").unwrap();
        let error = write(folder.path(), WriteOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        write(folder.path(), WriteOptions { replace: true }).unwrap();
        assert!(fs::read_to_string(&path).unwrap().starts_with(LINES[0]));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_failing_source_publishes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (header, _) = Header::parse_line(LINES[0]).unwrap();
        let events = [Event::parse_line(LINES[1]), Err(Error::new(ErrorKind::Corrupt, "a hole"))];
        let error = write_file(folder.path(), &header, events, WriteOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert_eq!(fs::read_dir(folder.path().join("cwd-8a5edab28263")).unwrap().count(), 0);
    }
}
