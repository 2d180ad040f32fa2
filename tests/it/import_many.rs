//! Many sessions that are taken in at a time: what becomes of them is what one after the other would give.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use sessionlog::SessionStore;
use sessionlog::interop::import::{ImportOptions, Importer, Survey, Target, survey};
use sessionlog::interop::jsonl::{WriteOptions, export_session};

fn header(id: &str, rest: &str) -> String {
    format!("{{\"type\":\"session\",\"version\":0,\"id\":\"{id}\",\"createdAt\":1{rest}}}\n")
}

fn message(seq: u64, text: &str) -> String {
    format!(
        "{{\"type\":\"user/message\",\"seq\":{seq},\"time\":{seq},\"data\":{{\"content\":[{{\"type\":\"text\",\
         \"text\":\"{text}\"}}],\"source\":{{\"kind\":\"user\"}}}},\"surfaceOp\":\"append\"}}\n"
    )
}

fn session(id: &str, rest: &str, events: u64, size: usize) -> String {
    let events = (0..events).map(|seq| message(seq, &format!("{seq}{}", "x".repeat(size))));
    header(id, rest) + &events.collect::<String>()
}

/// Files of all kinds: parents and children beside each other, one session twice, refused ones, large ones.
fn write_tree(root: &Path) {
    let put = |name: &str, text: &str| fs::write(root.join(format!("{name}.jsonl")), text).unwrap();
    for family in 0..6 {
        let (parent, size) = (format!("p{family}"), 200 << (2 * (family % 4)));
        put(&format!("{family}-a"), &session(&parent, "", 60, size));
        let of = format!(",\"parentSession\":\"{parent}\",\"seedLength\":40");
        put(&format!("{family}-b"), &session(&format!("c{family}"), &of, 50, size));
        let of = format!(",\"parentSession\":\"c{family}\",\"seedLength\":45");
        put(&format!("{family}-c"), &session(&format!("d{family}"), &of, 45, size));
        // Longer than the first one of its id, and then another session of that id.
        put(&format!("{family}-d"), &session(&parent, "", 70, size));
        put(&format!("{family}-e"), &session(&parent, "", 10, size + 1));
        let torn = session(&format!("t{family}"), "", 5, size);
        put(&format!("{family}-f"), torn.trim_end());
        let damaged = header(&format!("b{family}"), "") + &message(0, "a") + &message(2, "b");
        let end = r#"{"type":"turn/end","seq":3,"time":1,"data":{"turn":1,"reason":"completed"}}"#;
        put(&format!("{family}-g"), &format!("{damaged}{end}\n"));
        put(&format!("{family}-h"), "no header\n");
        let no_marker = message(1, "b").replace(",\"surfaceOp\":\"append\"", "");
        put(&format!("{family}-i"), &(header(&format!("m{family}"), "") + &message(0, "a") + &no_marker));
        put(&format!("{family}-j"), &session(&format!("u{family}"), "", 1, 0));
    }
}

type Told = (String, Result<String, String>);

fn told(
    item: &sessionlog::interop::import::Item,
    result: &sessionlog::Result<sessionlog::interop::import::Imported>,
) -> Told {
    let words = result.as_ref().map(|one| format!("{one:?}")).map_err(ToString::to_string);
    (item.path.display().to_string(), words)
}

fn one_by_one(store: &SessionStore, survey: &Survey) -> Vec<Told> {
    let mut importer = Importer::new(Target::Store(store), ImportOptions::default());
    survey.items.iter().map(|item| told(item, &importer.take(item, &mut |_| {}))).collect()
}

/// The ids in the order of their creation, and every session's file.
fn content(store: &SessionStore, out: &Path) -> Vec<(String, String)> {
    let ids = store.stored().unwrap().map(|stat| stat.unwrap().id);
    ids.map(|id| {
        let file = export_session(store, &id, out, WriteOptions::default()).unwrap();
        (id, fs::read_to_string(file.path).unwrap())
    })
    .collect()
}

#[test]
fn many_at_a_time_come_to_what_one_after_the_other_comes_to() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("in")).unwrap();
    write_tree(&at("in"));
    let survey = survey(&[at("in")]);
    let alone = SessionStore::open_writer(at("alone")).unwrap();
    let expected = one_by_one(&alone, &survey);
    let refused = expected.iter().filter(|(_, result)| result.is_err()).count();
    assert_eq!((expected.len(), refused), (60, 24));
    let expected_content = content(&alone, &at("alone-out"));
    for round in 0..4 {
        let store = SessionStore::open_writer(at(&format!("many-{round}"))).unwrap();
        let (mut found, mut bytes) = (Vec::new(), 0);
        let mut importer = Importer::new(Target::Store(&store), ImportOptions::default());
        importer.take_all(&survey.items, &mut |read| bytes += read, &mut |item, result| {
            found.push(told(item, &result));
            ControlFlow::Continue(())
        });
        assert_eq!(found, expected);
        assert_eq!(bytes, survey.items.iter().map(|item| item.bytes).sum::<u64>());
        assert_eq!(content(&store, &at(&format!("out-{round}"))), expected_content);
        store.close().unwrap();
        let again = SessionStore::open_writer(at(&format!("many-{round}"))).unwrap();
        assert_eq!(content(&again, &at(&format!("again-{round}"))), expected_content);
    }
}

#[test]
fn an_import_that_is_ended_tells_no_more_and_leaves_whole_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("in")).unwrap();
    for number in 0..8 {
        let text = session(&format!("s{number}"), "", 3000, 1000);
        fs::write(at(&format!("in/{number}.jsonl")), text).unwrap();
    }
    let survey = survey(&[at("in")]);
    let store = SessionStore::open_writer(at("store")).unwrap();
    let mut importer = Importer::new(Target::Store(&store), ImportOptions::default());
    let mut count = 0;
    importer.take_all(&survey.items, &mut |_| {}, &mut |_, result| {
        result.unwrap();
        count += 1;
        if count == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(count, 2);
    let stored: Vec<_> = store.stored().unwrap().map(|stat| stat.unwrap().events).collect();
    assert!(stored.len() >= 2 && stored.iter().all(|events| *events == 3000), "{stored:?}");
    let again = one_by_one(&store, &survey);
    assert!(again.iter().all(|(_, result)| result.is_ok()), "{again:?}");
    assert_eq!(store.stored().unwrap().count(), 8);
    store.close().unwrap();
}
