//! The files that an import is asked for.
//!
//! What always holds: a file that is named is taken whatever it is called; from folders only `*.jsonl` is, in
//! the order of the names. What is never done: following a link to a folder, so there is no way round in circles.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// What one path led to: files, and what could not be looked at.
#[derive(Debug, Default)]
pub struct Found {
    /// The files, folder by folder.
    pub files: Vec<PathBuf>,
    /// What went wrong on the way; the rest is there all the same.
    pub errors: Vec<Error>,
}

/// The files at `path`: itself, or every `*.jsonl` below it.
#[must_use]
pub fn find_files(path: &Path) -> Found {
    let mut found = Found::default();
    match fs::metadata(path) {
        Ok(data) if data.is_dir() => walk(path, &mut found),
        Ok(_) => found.files.push(path.to_path_buf()),
        Err(error) => found.errors.push(Error::io("look at", path, error)),
    }
    found
}

fn walk(root: &Path, found: &mut Found) {
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let mut below = Vec::new();
        match list(&folder) {
            Ok(entries) => {
                for (path, is_folder) in entries {
                    if is_folder {
                        below.push(path);
                    } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                        match regular(&path) {
                            Ok(()) => found.files.push(path),
                            Err(error) => found.errors.push(error),
                        }
                    }
                }
            }
            Err(error) => found.errors.push(error),
        }
        // The last one pushed is looked at first.
        folders.extend(below.into_iter().rev());
    }
}

/// A pipe that nobody writes to would be waited for without end; only who names it can want that.
fn regular(path: &Path) -> Result<()> {
    let data = fs::metadata(path).map_err(|error| Error::io("look at", path, error))?;
    if data.is_file() { Ok(()) } else { Err(Error::corrupt_in(path, "no regular file")) }
}

fn list(folder: &Path) -> Result<Vec<(PathBuf, bool)>> {
    let failed = |error| Error::io("read folder", folder, error);
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // The entry's own type: a link is never a folder here.
        let is_folder = entry.file_type().map_err(failed)?.is_dir();
        entries.push((entry.path(), is_folder));
    }
    entries.sort();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_give_their_jsonl_files_in_order_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["b/2.jsonl", "b/1.jsonl", "a/x.jsonl", "a/x.jsonl.bak", "a/notes.txt", "top.jsonl"] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink(root, root.join("b/loop")).unwrap();
        let found = find_files(root);
        assert!(found.errors.is_empty());
        let names: Vec<_> =
            found.files.iter().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["top.jsonl", "a/x.jsonl", "b/1.jsonl", "b/2.jsonl"]);
    }

    #[test]
    fn a_named_file_is_taken_whatever_its_name_and_a_missing_one_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.txt");
        fs::write(&path, "").unwrap();
        assert_eq!(find_files(&path).files, [path]);
        let found = find_files(&folder.path().join("gone"));
        assert!(found.files.is_empty() && found.errors.len() == 1);
    }
}
