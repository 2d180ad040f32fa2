//! Connections to databases that are not trusted.
//!
//! What always holds: no trigger, view or function of the database's author runs, nothing is attached, and no value
//! beyond the limits reaches memory. What is never done: following the file's own wish for memory-mapped access.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use crate::interop::jsonl::MAX_LINE_BYTES;

/// How long a lock of another program is waited for.
const BUSY: Duration = Duration::from_millis(500);
/// The largest value or row: a line, and room for the columns beside it.
const MAX_VALUE_BYTES: usize = MAX_LINE_BYTES + (1 << 16);
/// Longer statements are in no schema that is read here.
const MAX_SQL_BYTES: i32 = 1 << 20;

/// Tables and indexes that are read into memory before anything can be asked.
const MAX_OBJECTS: i32 = 10_000;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Somebody's file: read only, with the locks of a reader.
    Read,
    /// Somebody's file in WAL mode whose log is empty. A reader with locks would create files beside it.
    ReadImmutable,
    /// A copy of somebody's file, which may be recovered from its log, but is only read.
    OwnCopy,
    /// A new file of ours.
    Draft,
}

/// Opens the existing file at `path`, an absolute one.
pub(super) fn open(path: &Path, access: Access) -> rusqlite::Result<Connection> {
    let rights = match access {
        Access::Read | Access::ReadImmutable => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Access::OwnCopy | Access::Draft => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let flags = rights
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(uri(path, access), flags)?;
    restrict(&connection)?;
    connection.execute_batch(match access {
        Access::Draft => {
            "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
             PRAGMA foreign_keys = ON; PRAGMA cache_size = -16384;"
        }
        _ => "PRAGMA query_only = ON; PRAGMA cache_size = -4096;",
    })?;
    Ok(connection)
}

fn restrict(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    for (config, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, false),
    ] {
        connection.set_db_config(config, on)?;
    }
    let value = i32::try_from(MAX_VALUE_BYTES).unwrap_or(i32::MAX);
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, value),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_SQL_BYTES),
        (Limit::SQLITE_LIMIT_SCHEMA, MAX_OBJECTS),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 16),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    ] {
        connection.set_limit(limit, most)?;
    }
    connection.execute_batch("PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON;")
}

/// The path as SQLite's URI: any byte may be in it.
fn uri(path: &Path, access: Access) -> String {
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri.push_str(match access {
        Access::Read => "?mode=ro",
        Access::ReadImmutable => "?mode=ro&immutable=1",
        Access::OwnCopy | Access::Draft => "?mode=rw",
    });
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_of_a_path_means_anything_to_sqlite() {
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/a b/%3f?mode=rwc#\xff.db"));
        assert_eq!(uri(path, Access::Read), "file:/a%20b/%253f%3Fmode%3Drwc%23%FF.db?mode=ro");
    }

    #[test]
    fn readers_write_nothing_and_attach_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let draft = open(file.path(), Access::Draft).unwrap();
        draft.execute_batch("CREATE TABLE t (x); CREATE VIEW v AS SELECT x FROM t;").unwrap();
        draft.close().unwrap();
        for access in [Access::Read, Access::ReadImmutable, Access::OwnCopy] {
            let connection = open(file.path(), access).unwrap();
            for sql in [
                "INSERT INTO t VALUES (1)",
                "PRAGMA user_version = 5",
                "SELECT * FROM v",
                "ATTACH ':memory:' AS other",
                "SELECT zeroblob(100000000)",
            ] {
                assert!(connection.execute_batch(sql).is_err(), "{access:?}: {sql}");
            }
            assert_eq!(connection.execute_batch("SELECT * FROM t"), Ok(()));
        }
    }
}
