//! Where a session's file lies below a root folder (rule X).
//!
//! What always holds: two ids never share a name, and no name leaves its folder: everything but
//! `[A-Za-z0-9._-]` is escaped per UTF-16 unit, and `.` and `..` are escaped whole.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::{Error, ErrorKind, Result};

/// The longest file name, in bytes, `.jsonl` included: what common file systems take.
pub const MAX_FILE_NAME_BYTES: usize = 255;

/// The folder of sessions without a working directory.
const NO_CWD: &str = "_no-cwd";
/// Bytes of the hash that make the twelve hex digits of a folder's name.
const HASH_BYTES: usize = 6;

/// The folder for sessions of working directory `cwd`.
#[must_use]
pub fn bucket_name(cwd: Option<&str>) -> String {
    let Some(cwd) = cwd else { return NO_CWD.to_owned() };
    let digest = Sha256::digest(cwd.as_bytes());
    let mut name = String::from("cwd-");
    for byte in digest.iter().take(HASH_BYTES) {
        push_hex(&mut name, u16::from(*byte), 2, b"0123456789abcdef");
    }
    name
}

/// The file name of the session `id`, `.jsonl` included.
///
/// # Errors
/// `InvalidArgument` for an empty id, `TooLarge` for a name over [`MAX_FILE_NAME_BYTES`].
pub fn file_name(id: &str) -> Result<String> {
    if id.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArgument, "an empty session id has no file name"));
    }
    let mut name = escape(id.encode_utf16());
    name.push_str(".jsonl");
    if name.len() > MAX_FILE_NAME_BYTES {
        let text = format!(
            "the file name of session {id:?} would have {} bytes; at most {MAX_FILE_NAME_BYTES} are possible",
            name.len()
        );
        return Err(Error::new(ErrorKind::TooLarge, text));
    }
    Ok(name)
}

/// The path of the session `id` of working directory `cwd` below `root`.
///
/// # Errors
/// As [`file_name`].
pub fn session_path(root: &Path, id: &str, cwd: Option<&str>) -> Result<PathBuf> {
    Ok(root.join(bucket_name(cwd)).join(file_name(id)?))
}

fn escape(units: impl Iterator<Item = u16>) -> String {
    let mut name = String::new();
    for unit in units {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') => {
                name.push(char::from(byte));
            }
            _ => {
                name.push('~');
                push_hex(&mut name, unit, 4, b"0123456789ABCDEF");
            }
        }
    }
    if name == "." || name == ".." {
        return name.replace('.', "~002E");
    }
    name
}

fn push_hex(text: &mut String, value: u16, digits: u32, alphabet: &[u8; 16]) {
    for place in (0..digits).rev() {
        let digit = usize::from((value >> (4 * place)) & 0xF);
        text.push(char::from(alphabet.get(digit).copied().unwrap_or(b'0')));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors() -> Option<serde_json::Value> {
        let shared = std::env::var("SESSIONLOG_SHARED")
            .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../shared").to_owned());
        let path = Path::new(&shared).join("conformance/jsonl/names.json");
        if !path.exists() {
            println!("skipped: {} is not there", path.display());
            return None;
        }
        let text = std::fs::read_to_string(path).unwrap();
        Some(serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn every_id_of_the_vectors_gets_its_name() {
        let Some(vectors) = vectors() else { return };
        let mut count = 0;
        for case in vectors["segments"].as_array().unwrap() {
            let units: Vec<u16> = case["idUnits"]
                .as_array()
                .unwrap()
                .iter()
                .map(|unit| u16::try_from(unit.as_u64().unwrap()).unwrap())
                .collect();
            count += 1;
            let Some(expected) = case["segment"].as_str() else {
                assert_eq!(case["error"], "empty-id");
                assert_eq!(file_name("").unwrap_err().kind(), ErrorKind::InvalidArgument);
                continue;
            };
            assert_eq!(escape(units.iter().copied()), expected);
            if let Ok(id) = String::from_utf16(&units)
                && expected.len() <= MAX_FILE_NAME_BYTES - ".jsonl".len()
            {
                assert_eq!(file_name(&id).unwrap(), format!("{expected}.jsonl"));
            }
        }
        assert!(count >= 30, "only {count} names in the vectors");
    }

    #[test]
    fn every_cwd_of_the_vectors_gets_its_folder() {
        let Some(vectors) = vectors() else { return };
        let buckets = vectors["buckets"].as_array().unwrap();
        assert!(buckets.len() >= 5);
        for case in buckets {
            assert_eq!(bucket_name(case["cwd"].as_str()), case["dir"].as_str().unwrap());
        }
    }

    #[test]
    fn the_longest_name_fits_and_one_more_byte_is_refused_by_name() {
        let longest = "x".repeat(MAX_FILE_NAME_BYTES - ".jsonl".len());
        assert_eq!(file_name(&longest).unwrap().len(), MAX_FILE_NAME_BYTES);
        let error = file_name(&format!("{longest}y")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().contains("256 bytes"), "{error}");
        // 51 escaped units of 5 bytes are 255 bytes before the suffix.
        assert_eq!(file_name(&"é".repeat(51)).unwrap_err().kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn no_id_leaves_its_folder() {
        for id in ["..", ".", "a/b", "../../x", "a\\b", "C:", "nul\0", "~", "~002E"] {
            let name = file_name(id).unwrap();
            assert!(!name.contains('/') && !name.contains('\\') && !name.contains('\0'), "{name}");
            assert_ne!(name, "..jsonl");
        }
        assert_ne!(file_name(".").unwrap(), file_name("~002E").unwrap());
        let path = session_path(Path::new("/r"), "a/b", Some("/")).unwrap();
        assert_eq!(path, Path::new("/r/cwd-8a5edab28263/a~002Fb.jsonl"));
    }
}
