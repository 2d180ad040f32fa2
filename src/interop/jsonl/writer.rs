//! Writes one session file and publishes it whole (rule X).
//!
//! What always holds: a name with `.jsonl` appears only with its complete, synced content. Folders are 0700,
//! files 0600. What is never done: replacing a file without being asked to, or adding to one that is not the
//! beginning of what is written.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::super::draft::{Draft, sync_folder, there_already};
use super::super::export::{Existing, ExportFate};
use super::old::OldFile;
use super::path::session_path;
use crate::event::{Event, Header};
use crate::{Error, Result};

const FOLDER_MODE: u32 = 0o700;
const BUFFER_BYTES: usize = 1 << 18;

/// How files are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// What is done about a file that is there already.
    pub existing: Existing,
    /// Nothing is written: what would happen is told.
    pub dry_run: bool,
}

/// A file that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// Where it is.
    pub path: PathBuf,
    /// What became of it.
    pub fate: ExportFate,
    /// Its events.
    pub events: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// Writes the session of `header` below `root`, creating what folders are missing.
///
/// # Errors
/// A name that is too long, a file that is there already and is not to be replaced or is not the beginning of the
/// session (kinds `Exists` and `Conflict`), failed writes, and whatever `events` yields. Nothing is published then,
/// and what was written so far is removed.
pub fn write_file(
    root: &Path,
    header: &Header,
    events: impl IntoIterator<Item = Result<Event>>,
    options: WriteOptions,
) -> Result<WrittenFile> {
    let mut events = events.into_iter();
    let next = |line: &mut String| {
        let event = events.next()?;
        Some(event.map(|event| {
            // Writing to a String cannot fail.
            let _ = event.write_line(line);
        }))
    };
    write_lines(root, header, next, options)
}

/// As [`write_file`], of lines: `next` appends the next one, without LF.
pub(super) fn write_lines(
    root: &Path,
    header: &Header,
    next: impl FnMut(&mut String) -> Option<Result<()>>,
    options: WriteOptions,
) -> Result<WrittenFile> {
    let path = session_path(root, header.id(), header.cwd())?;
    let is_there = path.symlink_metadata().is_ok();
    if is_there && options.existing == Existing::Refuse {
        return Err(there_already(&path));
    }
    let append = is_there && options.existing == Existing::Append;
    // What takes the place of a link's file has to be beside that file.
    let target = if append {
        fs::canonicalize(&path).map_err(|error| Error::io("open", &path, error))?
    } else {
        path.clone()
    };
    let mut old = if append { Some(OldFile::open(&target)?) } else { None };
    let draft = if options.dry_run {
        None
    } else {
        create_folders(target.parent().unwrap_or(root))?;
        Some(Draft::create(&target, &[])?)
    };
    let filled = match &draft {
        Some((draft, file)) => fill(file, draft.path(), header, next, old.as_mut()),
        None => fill(io::sink(), &path, header, next, old.as_mut()),
    }?;
    let fate = match &old {
        Some(old) => {
            old.finish(filled.bytes)?.map_or(ExportFate::Unchanged, |from| ExportFate::Extended { from })
        }
        None if is_there => ExportFate::Replaced,
        None => ExportFate::Written,
    };
    if let Some((draft, _)) = draft.filter(|_| fate != ExportFate::Unchanged) {
        let mode = old.as_ref().map(OldFile::rights);
        draft.publish(is_there, mode, || old.as_ref().map_or(Ok(()), OldFile::check_unchanged))?;
    }
    Ok(WrittenFile { path, fate, events: filled.events, bytes: filled.bytes })
}

/// What was written.
struct Filled {
    events: u64,
    bytes: u64,
}

/// Writes all lines to `out`, and compares them with what was there.
fn fill<W: Write>(
    mut out: W,
    path: &Path,
    header: &Header,
    mut next: impl FnMut(&mut String) -> Option<Result<()>>,
    mut old: Option<&mut OldFile>,
) -> Result<Filled> {
    let mut filled = Filled { events: 0, bytes: 0 };
    let mut buffer = String::with_capacity(2 * BUFFER_BYTES);
    buffer.push_str(&header.to_line());
    let mut from = 0;
    loop {
        buffer.push('\n');
        if let Some(old) = &mut old {
            old.compare(buffer.get(from..).unwrap_or_default())?;
        }
        if buffer.len() >= BUFFER_BYTES {
            filled.write(&mut out, path, &mut buffer)?;
        }
        from = buffer.len();
        match next(&mut buffer) {
            Some(line) => line?,
            None => break,
        }
        filled.events += 1;
    }
    filled.write(&mut out, path, &mut buffer)?;
    Ok(filled)
}

impl Filled {
    fn write(&mut self, out: &mut impl Write, path: &Path, buffer: &mut String) -> Result<()> {
        out.write_all(buffer.as_bytes()).map_err(|error| Error::io("write", path, error))?;
        self.bytes += u64::try_from(buffer.len()).unwrap_or(u64::MAX);
        buffer.clear();
        // What one long line has blown up is given back.
        buffer.shrink_to(2 * BUFFER_BYTES);
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::ErrorKind;

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
        let replace = WriteOptions { existing: Existing::Replace, ..WriteOptions::default() };
        assert_eq!(write(folder.path(), replace).unwrap().fate, ExportFate::Replaced);
        assert!(fs::read_to_string(&path).unwrap().starts_with(LINES[0]));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_added_through_a_link_goes_to_its_file_which_keeps_its_rights() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), WriteOptions::default()).unwrap().path;
        let (whole, real) = (fs::read_to_string(&path).unwrap(), folder.path().join("real"));
        fs::write(&real, &whole[..LINES[0].len() + 1]).unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("../real", &path).unwrap();
        let append = WriteOptions { existing: Existing::Append, ..WriteOptions::default() };
        assert_eq!(write(folder.path(), append).unwrap().fate, ExportFate::Extended { from: 0 });
        assert_eq!(fs::read_to_string(&real).unwrap(), whole);
        assert!(path.symlink_metadata().unwrap().is_symlink() && mode(&real) == 0o640);
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

    #[test]
    fn a_file_that_is_the_beginning_is_completed_and_another_one_is_kept() {
        let append = WriteOptions { existing: Existing::Append, ..WriteOptions::default() };
        let dry = WriteOptions { dry_run: true, ..append };
        let whole = LINES.map(|line| format!("{line}\n")).concat();
        let second = LINES[0].len() + LINES[1].len() + 2;
        for (old, fate) in [
            (None, ExportFate::Written),
            (Some(whole.len()), ExportFate::Unchanged),
            (Some(second), ExportFate::Extended { from: 1 }),
            // A writer died in the line.
            (Some(second + 5), ExportFate::Extended { from: 1 }),
            (Some(second - 1), ExportFate::Extended { from: 0 }),
            (Some(LINES[0].len() + 1), ExportFate::Extended { from: 0 }),
            (Some(0), ExportFate::Extended { from: 0 }),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("cwd-8a5edab28263/a~002Fb.jsonl");
            if let Some(old) = old {
                fs::create_dir(path.parent().unwrap()).unwrap();
                fs::write(&path, &whole[..old]).unwrap();
            }
            assert_eq!(write(folder.path(), dry).unwrap().fate, fate, "{old:?}");
            assert_eq!(fs::read(&path).ok().map(|bytes| bytes.len()), old, "a dry run writes nothing");
            let written = write(folder.path(), append).unwrap();
            assert_eq!((written.fate, written.events), (fate, 2), "{old:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), whole);
            assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        }
        for (old, words) in [
            (whole.replace("\"seq\":0", "\"seq\": 0"), "event 0"),
            (whole.replace("createdAt\":1", "createdAt\":2"), "header"),
            (format!("{whole}more\n"), "more"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("cwd-8a5edab28263/a~002Fb.jsonl");
            fs::create_dir(path.parent().unwrap()).unwrap();
            fs::write(&path, &old).unwrap();
            for options in [dry, append] {
                let error = write(folder.path(), options).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Conflict);
                assert!(error.to_string().contains(words), "{error}");
            }
            assert_eq!(fs::read_to_string(&path).unwrap(), old);
            assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        }
    }
}
