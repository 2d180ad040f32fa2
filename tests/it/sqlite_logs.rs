//! Databases with a log beside them: read whole, from a copy, without a trace beside the original.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use rusqlite::Connection;
use sessionlog::ErrorKind;
use sessionlog::interop::sqlite::Database;

use crate::sqlite_files::{Folder, SCHEMA, read};

const ROWS: &str = "INSERT INTO sessions VALUES ('a', 0, 7, NULL, NULL, NULL);
    INSERT INTO events VALUES ('a', 0, 'x', 1, '{}', NULL, NULL);";

fn count(folder: &Folder) -> usize {
    folder.look(|database| {
        let database = database.unwrap();
        read(&database, "a").unwrap().events.len()
    })
}

#[test]
fn a_database_that_is_being_written_in_wal_mode_is_read_beside_its_writer() {
    let folder = Folder::new();
    let writer = Connection::open(&folder.path).unwrap();
    writer.execute_batch(&format!("PRAGMA journal_mode = WAL; {SCHEMA} {ROWS}")).unwrap();
    assert_eq!(count(&folder), 1);
    writer.execute_batch("BEGIN; INSERT INTO events VALUES ('a', 1, 'x', 1, '{}', NULL, NULL);").unwrap();
    assert_eq!(count(&folder), 1, "what is not committed is not there");
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(count(&folder), 2);
    writer.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    assert_eq!(count(&folder), 2);
    assert!(!folder.look(|database| database.unwrap().was_copied()), "an empty log is none");
    writer.execute_batch("INSERT INTO events VALUES ('a', 2, 'x', 1, '{}', NULL, NULL);").unwrap();
    assert_eq!(count(&folder), 3, "and the writer goes on");
}

#[test]
fn a_database_in_rollback_mode_is_read_as_of_one_moment() {
    let folder = Folder::with(&format!("{SCHEMA} {ROWS}"));
    let writer = Connection::open(&folder.path).unwrap();
    writer.busy_timeout(std::time::Duration::ZERO).unwrap();
    let more = "INSERT INTO events VALUES ('a', 1, 'x', 1, '{}', NULL, NULL);";
    let database = Database::open(&folder.path).unwrap();
    assert_eq!(database.sessions().count(), 1);
    assert!(writer.execute_batch(more).is_err(), "its commit has to wait");
    assert_eq!(read(&database, "a").unwrap().events.len(), 1);
    drop(database);
    writer.execute_batch(more).unwrap();
    assert_eq!(count(&folder), 2);
}

#[test]
fn a_file_without_locks_that_changes_is_told() {
    let folder = Folder::with(&format!("PRAGMA journal_mode = WAL; {SCHEMA} {ROWS}"));
    let database = Database::open(&folder.path).unwrap();
    assert!(read(&database, "a").is_ok());
    folder.run(
        "INSERT INTO events VALUES ('a', 1, 'x', 1, '{}', NULL, NULL); PRAGMA wal_checkpoint(TRUNCATE);",
    );
    let error = read(&database, "a").unwrap_err();
    assert!(
        error.kind() == ErrorKind::Locked && error.to_string().contains("changed while it was read"),
        "{error}"
    );
}

/// A database whose writer died in a transaction, with what it had written of it.
fn crashed() -> Folder {
    let (live, dead) = (Folder::with(&format!("{SCHEMA} {ROWS}")), Folder::new());
    let writer = Connection::open(&live.path).unwrap();
    writer.execute_batch("PRAGMA cache_size = 5; BEGIN; UPDATE events SET data = '[1]';").unwrap();
    for seq in 1..200 {
        let data = format!("[{}]", "1,".repeat(500) + "1");
        writer.execute("INSERT INTO events VALUES ('a', ?1, 'x', 1, ?2, NULL, NULL)", (seq, data)).unwrap();
    }
    for suffix in ["", "-journal"] {
        let bytes = fs::read(format!("{}{suffix}", live.path.display())).unwrap();
        assert!(!bytes.is_empty(), "the transaction has reached its files");
        fs::write(format!("{}{suffix}", dead.path.display()), bytes).unwrap();
    }
    dead
}

#[test]
fn a_transaction_whose_writer_died_is_undone_in_a_copy() {
    let folder = crashed();
    folder.look(|database| {
        let database = database.unwrap();
        assert!(database.was_copied());
        assert_eq!(read(&database, "a").unwrap().lines(), [r#"{"type":"x","seq":0,"time":1,"data":{}}"#]);
    });
}

/// SQLite would read the file that such a journal names, and delete it.
#[test]
fn a_journal_that_names_another_file_is_refused() {
    let folder = crashed();
    let victim = folder.root.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let name = victim.to_str().unwrap().as_bytes();
    let journal = format!("{}-journal", folder.path.display());
    let mut bytes = fs::read(&journal).unwrap();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes.extend(name);
    bytes.extend(u32::try_from(name.len()).unwrap().to_be_bytes());
    bytes.extend(name.iter().map(|byte| u32::from(*byte)).sum::<u32>().to_be_bytes());
    bytes.extend([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
    fs::write(&journal, bytes).unwrap();
    let error = folder.look(|database| database.unwrap_err());
    assert!(
        error.kind() == ErrorKind::Unsupported && error.to_string().contains("several databases"),
        "{error}"
    );
}

#[test]
fn folders_that_cannot_be_written_names_of_any_bytes_and_links() {
    let folder = Folder::new();
    let odd = folder.root.path().join("a b?c#d%20e&mode=rwc;é.db");
    Connection::open_with_flags(
        &odd,
        rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE | rusqlite::OpenFlags::SQLITE_OPEN_CREATE,
    )
    .unwrap()
    .execute_batch(&format!("PRAGMA journal_mode = WAL; {SCHEMA} {ROWS}"))
    .unwrap();
    symlink(&odd, &folder.path).unwrap();
    fs::set_permissions(&odd, fs::Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(folder.root.path(), fs::Permissions::from_mode(0o500)).unwrap();
    assert_eq!(count(&folder), 1);
    assert_eq!(read(&Database::open(&odd).unwrap(), "a").unwrap().events.len(), 1);
    fs::set_permissions(folder.root.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = Folder::new();
    assert_eq!(folder.look(|database| database.unwrap_err()).kind(), ErrorKind::NotFound);
    let error = Database::open(folder.root.path()).unwrap_err();
    assert!(error.to_string().contains("no regular file"), "{error}");
}
