//! A session file that is there already, compared with what is to be written.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::{Error, ErrorKind, Result};

/// See the module. It must be the beginning of the new content: what it lacks is then what is new.
#[derive(Debug)]
pub(super) struct OldFile {
    path: PathBuf,
    source: BufReader<File>,
    before: Metadata,
    /// Bytes that were compared.
    compared: u64,
    /// Lines that were compared to their ends, the header's included.
    lines: u64,
    buffer: Vec<u8>,
}

impl OldFile {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let data = fs::metadata(path).map_err(|error| Error::io("look at", path, error))?;
        if !data.is_file() {
            // To open a pipe would be to wait for whoever writes to it.
            let text = format!("{}: no regular file; it was not touched", path.display());
            return Err(Error::new(ErrorKind::Exists, text));
        }
        let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
        let before = file.metadata().map_err(|error| Error::io("look at", path, error))?;
        let source = BufReader::with_capacity(1 << 16, file);
        Ok(Self { path: path.to_path_buf(), source, before, compared: 0, lines: 0, buffer: Vec::new() })
    }

    /// Compares the next line, its LF included, as far as the file goes.
    pub(super) fn compare(&mut self, line: &str) -> Result<()> {
        let left = self.before.len().saturating_sub(self.compared);
        let count = line.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if count == 0 {
            return Ok(());
        }
        self.buffer.resize(count, 0);
        self.source.read_exact(&mut self.buffer).map_err(|error| Error::io("read", &self.path, error))?;
        if line.as_bytes().get(..count) != Some(self.buffer.as_slice()) {
            let what = match self.lines.checked_sub(1) {
                None => "its header".to_owned(),
                Some(seq) => format!("its line of event {seq}"),
            };
            return Err(self.conflict(&format!("{what} is another one than the session's")));
        }
        self.compared += u64::try_from(count).unwrap_or(u64::MAX);
        if count == line.len() {
            self.lines += 1;
        }
        Ok(())
    }

    /// The first event that the file lacks, if it lacks any; `bytes` is the length of the new content.
    pub(super) fn finish(&self, bytes: u64) -> Result<Option<u64>> {
        if self.before.len() > bytes {
            return Err(self.conflict("it has more than the session"));
        }
        Ok((self.before.len() < bytes).then(|| self.lines.saturating_sub(1)))
    }

    /// Who may read and write it.
    pub(super) fn rights(&self) -> Permissions {
        self.before.permissions()
    }

    /// Refuses to go on when somebody wrote to the file meanwhile.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        let now = self.path.symlink_metadata().map_err(|error| Error::io("look at", &self.path, error))?;
        let marks = |data: &Metadata| (data.dev(), data.ino(), data.len(), data.mtime(), data.mtime_nsec());
        if marks(&now) == marks(&self.before) {
            return Ok(());
        }
        Err(self.conflict("it changed meanwhile"))
    }

    fn conflict(&self, what: &str) -> Error {
        let text = format!("{}: {what}; it was not touched (--force replaces it)", self.path.display());
        Error::new(ErrorKind::Conflict, text)
    }
}
