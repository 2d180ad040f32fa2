//! The layers (ARCHITECTURE.md): who may name whom.

use super::source::{Source, sources};

/// What each layer may name besides itself and the error type. `testing` may name everything.
const LAYERS: [(&str, &[&str]); 8] = [
    ("mutation", &[]),
    ("error", &[]),
    ("event", &[]),
    ("format", &["mutation", "event"]),
    ("disk", &[]),
    ("rt", &[]),
    ("log", &["mutation", "event", "format", "disk", "rt"]),
    ("store", &["mutation", "event", "format", "disk", "rt", "log"]),
];
/// The public modules: what a user of the library can name, and so may `interop`.
const PUBLIC: [&str; 5] = ["event", "disk", "rt", "error", "interop"];
const MODULES: [&str; 10] =
    ["mutation", "error", "event", "format", "disk", "rt", "log", "store", "interop", "testing"];

/// The modules of the crate that `code` of the module `at` names, each with its line.
fn named<'a>(at: &[&str], code: &'a str) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    for (line, start, prefix) in starts(at, code) {
        for name in firsts(&code[start..]) {
            if MODULES.contains(&name) {
                found.push((line, name));
            } else if prefix == "crate" && name == "*" {
                found.push((line, "*"));
            }
        }
    }
    found
}

/// Where paths begin that start at the crate's root: behind `crate::`, and behind as many `super::` as lead there.
fn starts(at: &[&str], code: &str) -> Vec<(usize, usize, &'static str)> {
    let mut found = Vec::new();
    let line_of = |byte: usize| code[..byte].matches('\n').count() + 1;
    for (byte, _) in code.match_indices("crate::") {
        let inside = code[..byte].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
        if !inside || code[..byte].ends_with('$') {
            found.push((line_of(byte), byte + "crate::".len(), "crate"));
        }
    }
    let up = "super::".repeat(at.len());
    for (byte, _) in code.match_indices(&up) {
        found.push((line_of(byte), byte + up.len(), "super"));
    }
    found
}

/// The first names of what follows a `::`: one, or those of a group in braces.
fn firsts(rest: &str) -> Vec<&str> {
    let word = |text: &str| text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    if rest.starts_with('*') {
        return vec![&rest[..1]];
    }
    let Some(group) = rest.strip_prefix('{') else { return vec![&rest[..word(rest)]] };
    let (mut names, mut depth, mut fresh) = (Vec::new(), 0_usize, true);
    for (byte, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if fresh && (c.is_alphabetic() || c == '_') => {
                names.push(&group[byte..byte + word(&group[byte..])]);
                fresh = false;
            }
            _ => {}
        }
    }
    names
}

fn may(layer: &str, name: &str, test: bool) -> bool {
    let by_layer = match layer {
        "testing" => true,
        "interop" => PUBLIC.contains(&name),
        _ => LAYERS.iter().any(|(known, below)| *known == layer && below.contains(&name)),
    };
    by_layer || name == layer || name == "error" || (test && name == "testing")
}

fn breaches(source: &Source) -> Vec<String> {
    let module = source.module();
    let Some(&layer) = module.first() else { return Vec::new() };
    if !MODULES.contains(&layer) {
        return Vec::new();
    }
    let shipped = source.shipped().len();
    let mut found = Vec::new();
    for (line, name) in named(&module, &source.code) {
        let byte = source.code.split_inclusive('\n').take(line - 1).map(str::len).sum::<usize>();
        if !may(layer, name, byte >= shipped) {
            found.push(format!("{}:{line}: {layer} names {name}", source.path));
        }
    }
    found
}

#[test]
fn layers_name_only_what_is_below_them() {
    let found: Vec<String> = sources().iter().flat_map(breaches).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_breach_is_seen_in_each_form() {
    let breach = |path: &str, code: &str| breaches(&Source::new(path.into(), code.into())).len();
    assert_eq!(breach("src/event/time.rs", "use crate::disk::Disk;"), 1);
    assert_eq!(breach("src/event/time.rs", "use crate::{Error, log::{Log, store}, format::Lsn};"), 2);
    assert_eq!(breach("src/disk/lock/mod.rs", "use super::super::rt::Runtime;"), 1);
    assert_eq!(breach("src/log/live.rs", "use super::super::store;"), 1);
    assert_eq!(breach("src/interop/jsonl/mod.rs", "crate::store::Session"), 1);
    assert_eq!(breach("src/log/live.rs", "use crate::*;"), 1);
    assert_eq!(breach("src/log/live.rs", "use crate::testing::SimDisk;"), 1);
    assert_eq!(breach("src/log/live.rs", "#[cfg(test)]\nmod t {\nuse crate::testing::SimDisk;\n}"), 0);
    assert_eq!(breach("src/log/live.rs", "use crate::disk::Disk; // crate::store"), 0);
    assert_eq!(breach("src/store/core.rs", "use super::super::log::Log; use crate::{Error, event};"), 0);
}

/// What only some places may use, besides tests and their rig: what it is, the words, the places.
type Seam = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Several files are imported at a time, each through the face of the store.
const IMPORTS: &str = "src/interop/import/pool.rs";
/// Other programs' files are read on a thread of their own, which touches neither store nor log.
const READ_AHEAD: &str = "src/interop/jsonl/ahead.rs";

/// The seams (T2, F5) and the tool's libraries. A subscription holds its events in a channel, but never waits at it.
const SEAMS: [Seam; 9] = [
    (
        "threads",
        &["std::thread", "thread::spawn", "std::sync::mpsc", "Condvar"],
        &["src/rt/", "src/disk/lock/", "src/bin/", READ_AHEAD, IMPORTS],
    ),
    ("clocks", &["Instant", "SystemTime"], &["src/rt/", "src/bin/"]),
    ("waits", &["atomic_wait", ".recv_timeout(", ".recv_deadline("], &["src/rt/", "src/bin/"]),
    (
        "channels",
        &["crossbeam_channel"],
        &["src/rt/", "src/store/subscription.rs", "src/bin/", READ_AHEAD, IMPORTS],
    ),
    ("randomness", &["uuid::", "Uuid"], &["src/rt/", "src/store/engine.rs", "src/interop/", "src/bin/"]),
    ("the operating system", &["nix::", "std::os"], &["src/disk/", "src/rt/", "src/bin/", "src/interop/"]),
    ("files", &["std::fs", "std::env", "std::net"], &["src/disk/", "src/interop/", "src/bin/"]),
    ("maps", &["memmap2"], &["src/disk/mmap.rs"]),
    ("the tool's libraries", &["clap", "indicatif", "signal_hook"], &["src/bin/"]),
];

/// Asking whether this thread unwinds neither waits nor starts anything.
const HARMLESS: &str = "std::thread::panicking()";

#[test]
fn seams_are_not_bypassed() {
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| source.path.starts_with("src/")) {
        if source.path.starts_with("src/testing/") {
            continue;
        }
        for (line, code) in source.shipped().lines().enumerate() {
            let code = code.replace(HARMLESS, "");
            for (what, words, places) in SEAMS {
                let here = places.iter().any(|place| source.path.starts_with(place));
                let used = words.iter().find(|word| contains_word(&code, word));
                if let (false, Some(word)) = (here, used) {
                    found.push(format!("{}:{}: {word}: {what} belong elsewhere", source.path, line + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Whether `word` occurs, and not as a part of a longer name.
fn contains_word(code: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let longer_before = word.starts_with(joins) && code[..at].ends_with(joins);
        let longer_after = word.ends_with(joins) && code[at + word.len()..].starts_with(joins);
        !longer_before && !longer_after
    })
}

#[test]
fn words_are_found_whole() {
    assert!(contains_word("a.recv_timeout(x)", ".recv_timeout("));
    assert!(contains_word("let t = Instant::now();", "Instant"));
    assert!(!contains_word("let t = Instants::now();", "Instant"));
    assert!(!contains_word("let t = my_uuid::v4();", "uuid::"));
}

#[test]
fn the_tool_uses_the_library_as_anyone_would() {
    let mut found = Vec::new();
    // The simulation's tool is one of developers, and in no default build.
    let of_users = |source: &&Source| source.path.starts_with("src/bin/") && source.path != "src/bin/sim.rs";
    for source in sources().iter().filter(of_users) {
        for (line, code) in source.code.lines().enumerate() {
            if code.contains("#[path") || code.contains("include!") || code.contains("sessionlog::testing") {
                found.push(format!("{}:{}: {}", source.path, line + 1, code.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
