//! The page on SQLite says what is written.

use rusqlite::Connection;
use sessionlog::event::Event;
use sessionlog::interop::sqlite::SqliteOptions;

use crate::sqlite_files::{Folder, events, header, read_all, write};

const PAGE: &str = include_str!("../../format-spec/sqlite.md");

/// The SQL blocks of the page: the schema and the query.
fn blocks() -> Vec<&'static str> {
    PAGE.split("```sql\n").skip(1).map(|block| block.split("```").next().unwrap()).collect()
}

/// The statements of a schema, each without its line breaks.
fn schema(folder: &Folder) -> Vec<String> {
    let connection = Connection::open(&folder.path).unwrap();
    let mut query =
        connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").unwrap();
    let statements = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
    statements.map(|sql| sql.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn the_page_s_schema_is_the_one_that_is_written_and_read() {
    let [create, query] = blocks()[..] else { panic!("{:?}", blocks()) };
    let (ours, pages) = (Folder::new(), Folder::with(create));
    let head = header(r#"{"type":"session","version":0,"id":"a","createdAt":5,"origin":1}"#);
    let lines = [
        r#"{"type":"user/message","seq":0,"time":1,"data":{"content":[1]},"surfaceOp":"append"}"#,
        r#"{"type":"x","seq":1,"time":1,"data":{}}"#,
    ];
    write(&ours.path, &[(head, events(&lines))], SqliteOptions::default());
    assert_eq!(schema(&ours), schema(&pages));
    assert!(pages.look(|_| read_all(&pages.path)).is_empty());
    let found = ours.look(|_| read_all(&ours.path));
    assert_eq!(found[0].events.iter().map(Event::to_line).collect::<Vec<_>>(), lines);

    let connection = Connection::open(&ours.path).unwrap();
    let mut query = connection.prepare(query).unwrap();
    let messages = query.query_map([], |row| Ok((row.get(1)?, row.get(3)?))).unwrap();
    let messages: Vec<(i64, String)> = messages.map(|message| message.unwrap()).collect();
    assert_eq!(messages, [(0, "[1]".to_owned())]);
    assert_eq!(connection.query_row("PRAGMA page_size", [], |row| row.get::<_, i64>(0)), Ok(4096));
}

#[test]
fn the_page_names_every_column() {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(blocks()[0]).unwrap();
    for table in ["sessions", "events"] {
        let mut query =
            connection.prepare(&format!("SELECT name FROM pragma_table_info('{table}')")).unwrap();
        for column in query.query_map([], |row| row.get::<_, String>(0)).unwrap() {
            let name = format!("`{table}.{}`", column.unwrap());
            assert!(PAGE.lines().any(|line| line.starts_with('|') && line.contains(&name)), "{name}");
        }
    }
}
