//! The shape of files: sizes, opening words, unsafe code, and words that have no place in them.

use std::fs;

use super::source::{Source, files, sources};

const MAX_FILE_LINES: usize = 500;
const MAX_FUNCTION_LINES: usize = 70;

fn check(complain: impl Fn(&Source) -> Vec<String>) {
    let found: Vec<String> = sources().iter().flat_map(complain).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn no_file_is_longer_than_500_lines() {
    check(|source| {
        let lines = source.text.lines().count();
        (lines > MAX_FILE_LINES).then(|| format!("{}: {lines} lines", source.path)).into_iter().collect()
    });
}

/// In formatted code a function ends at the first line that is its indentation and a brace.
fn long_functions(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.code.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
        let Some(name) = words.iter().position(|word| *word == "fn").and_then(|fn_at| words.get(fn_at + 1))
        else {
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let closes = |one: &&str| one.trim() == "}" && one.len() - one.trim_start().len() == indent;
        let one_line = line.trim_end().ends_with(['}', ';']);
        let body = lines[at..].iter().position(closes).map_or(0, |end| end + 1);
        if !name.is_empty() && !one_line && body > MAX_FUNCTION_LINES {
            found.push(format!("{}:{}: {name} has {body} lines", source.path, at + 1));
        }
    }
    found
}

#[test]
fn no_function_is_longer_than_70_lines() {
    check(long_functions);
    let long = format!("impl A {{\n    fn long() {{\n{}    }}\n}}\n", "        x();\n".repeat(69));
    assert_eq!(long_functions(&Source::new("src/a.rs".into(), long)).len(), 1);
}

#[test]
fn every_module_says_what_it_is() {
    check(|source| {
        let opens = source.text.starts_with("//!") || source.is_test() && source.path.starts_with("src/");
        (!opens).then(|| format!("{}: does not open with //!", source.path)).into_iter().collect()
    });
}

#[test]
fn names_say_something() {
    check(|source| {
        let vague = ["manager", "helper", "helpers", "util", "utils", "common", "misc"];
        let parts: Vec<&str> = source.path.trim_end_matches(".rs").split(['/', '_']).collect();
        let found = parts.iter().find(|part| vague.contains(part));
        found.map(|part| format!("{}: a file called {part}", source.path)).into_iter().collect()
    });
}

/// Whether line `at` or the comment that ends above it justifies an unsafe block.
fn justified(text: &[&str], at: usize) -> bool {
    let above = text[..at].iter().rev().take_while(|line| line.trim_start().starts_with("//"));
    above.chain(text.get(at)).any(|line| line.contains("SAFETY:"))
}

fn unsafe_code(source: &Source) -> Vec<String> {
    let text: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in source.code.lines().enumerate() {
        let is_unsafe = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == "unsafe");
        if !is_unsafe {
            continue;
        }
        // The counting allocator of the fuzz targets and the tests cannot be written without it.
        let allowed = source.path == "src/disk/mmap.rs" || source.path.ends_with("counting_allocator.rs");
        if !allowed {
            found.push(format!("{}:{}: unsafe code", source.path, at + 1));
        } else if line.contains('{') && !line.contains(" fn ") && !justified(&text, at) {
            found.push(format!("{}:{}: no SAFETY comment", source.path, at + 1));
        }
    }
    found
}

#[test]
fn unsafe_code_is_in_one_place_and_justified() {
    check(unsafe_code);
    let found = |path: &str, code: &str| unsafe_code(&Source::new(path.into(), code.into())).len();
    assert_eq!(found("src/log/live.rs", "unsafe { a() }"), 1);
    assert_eq!(found("src/disk/mmap.rs", "unsafe { a() }"), 1);
    assert_eq!(found("src/disk/mmap.rs", "// SAFETY: the caller.\nunsafe { a() }"), 0);
    assert_eq!(found("src/log/live.rs", "// unsafe\n#![deny(unsafe_code)]"), 0);
}

/// Split, so that this file does not hold them.
const UNWANTED: [(&str, &str); 7] = [
    ("TO", "DO"),
    ("FIX", "ME"),
    ("XX", "X"),
    ("/wo", "rk/"),
    ("/tm", "p/plan"),
    ("/ro", "ot/"),
    ("/Us", "ers/"),
];

#[test]
fn nothing_speaks_of_unfinished_work_or_of_one_machine() {
    let mut found = Vec::new();
    for (path, file) in files(&[".rs", ".md", ".toml", ".json", ".jsonl", "run"]) {
        let text = fs::read_to_string(file).expect("it is UTF-8");
        for (at, line) in text.lines().enumerate() {
            // In data, such a word may be what somebody said.
            let words = if path.ends_with(".jsonl") { &UNWANTED[3..] } else { &UNWANTED[..] };
            for (head, tail) in words {
                if line.contains(&format!("{head}{tail}")) {
                    found.push(format!("{path}:{}: {head}{tail}", at + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
