use std::sync::Arc;

use crate::error::ErrorKind;
use crate::store::live::LiveTable;

fn kind<T>(result: crate::Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("it went through"),
        Err(error) => error.kind(),
    }
}

#[test]
fn an_id_is_claimed_once_and_free_again_when_given_up() {
    let table = Arc::new(LiveTable::default());
    let claim = table.claim("a").unwrap();
    assert_eq!(kind(table.claim("a")), ErrorKind::Exists);
    assert!(table.get("a").is_none());
    table.claim("b").unwrap();
    drop(claim);
    table.claim("a").unwrap();
}

#[test]
fn a_closed_table_takes_nothing_in() {
    let table = Arc::new(LiveTable::default());
    assert!(table.close().is_empty());
    assert_eq!(kind(table.claim("a")), ErrorKind::Closed);
}

#[test]
fn forking_and_deleting_exclude_each_other() {
    let table = Arc::new(LiveTable::default());
    let (one, two) = (table.pin_for_fork(7).unwrap(), table.pin_for_fork(7).unwrap());
    assert_eq!(kind(table.pin_for_delete(7)), ErrorKind::Conflict);
    table.pin_for_delete(8).unwrap();
    drop(one);
    assert_eq!(kind(table.pin_for_delete(7)), ErrorKind::Conflict);
    drop(two);
    let deleting = table.pin_for_delete(7).unwrap();
    assert_eq!(kind(table.pin_for_fork(7)), ErrorKind::NotFound);
    assert_eq!(kind(table.pin_for_delete(7)), ErrorKind::Conflict);
    drop(deleting);
    table.pin_for_fork(7).unwrap();
}
