//! Files of the project as the rules look at them: their text, and their code without comments and literals.

use std::fs;
use std::path::{Path, PathBuf};

/// A Rust file.
pub(super) struct Source {
    /// Relative to the package, with `/` between the parts.
    pub(super) path: String,
    pub(super) text: String,
    /// The text with comments and the insides of literals blanked, line by line the same length in characters.
    pub(super) code: String,
}

impl Source {
    pub(super) fn new(path: String, text: String) -> Self {
        let code = blank(&text);
        Self { path, text, code }
    }

    /// The module path under `src/`: `["log", "live"]`, and `[]` for files elsewhere.
    pub(super) fn module(&self) -> Vec<&str> {
        let Some(inside) = self.path.strip_prefix("src/") else { return Vec::new() };
        inside.trim_end_matches(".rs").split('/').filter(|part| *part != "mod").collect()
    }

    pub(super) fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || name == "tests.rs"
            || name.ends_with("_tests.rs")
            || name == "compile_fail.rs"
    }

    /// The code that is not compiled for tests only: it ends where a module of tests begins.
    pub(super) fn shipped(&self) -> &str {
        if self.is_test() {
            return "";
        }
        let mut at = 0;
        while let Some(found) = self.code[at..].find("#[cfg(test)]") {
            let start = at + found;
            let after = self.code[start..].lines().nth(1).unwrap_or_default();
            if after.contains("mod ") && after.trim_end().ends_with('{') {
                return &self.code[..start];
            }
            at = start + 1;
        }
        &self.code
    }
}

/// The package's directory.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files of the project whose name ends in one of `endings`, sorted.
pub(super) fn files(endings: &[&str]) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the project is readable") {
            let path = entry.expect("the project is readable").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if path.is_dir() {
                let hidden = name.starts_with('.') && name != ".ci";
                if !hidden && !matches!(name.as_str(), "target" | "corpus" | "artifacts" | "coverage") {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let relative = path.strip_prefix(root()).expect("it lies inside");
                found.push((relative.to_string_lossy().replace('\\', "/"), path));
            }
        }
    }
    found.sort();
    found
}

pub(super) fn sources() -> Vec<Source> {
    let read = |(path, file): (String, PathBuf)| {
        Source::new(path, fs::read_to_string(file).expect("sources are UTF-8"))
    };
    files(&[".rs"]).into_iter().map(read).collect()
}

/// Comments and the insides of string and character literals, replaced by spaces.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
            continue;
        }
        out.extend(chars[at..end].iter().map(|&c| if c == '\n' { c } else { ' ' }));
        at = end;
    }
    out
}

/// Where the comment or literal that begins at `at` ends; `at` itself if none begins there.
fn literal_end(chars: &[char], at: usize) -> usize {
    let peek = |ahead: usize| chars.get(at + ahead).copied().unwrap_or('\0');
    let in_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    match chars[at] {
        '/' if peek(1) == '/' => find(chars, at, |rest| rest[0] == '\n'),
        '/' if peek(1) == '*' => block_comment_end(chars, at),
        '"' => string_end(chars, at + 1),
        'r' if !in_word && matches!(peek(1), '"' | '#') => raw_end(chars, at),
        'b' if !in_word && peek(1) == 'r' && matches!(peek(2), '"' | '#') => raw_end(chars, at + 1),
        // A character, not a lifetime: it closes after one character or an escape.
        '\'' if peek(1) == '\\' => find(chars, at + 3, |rest| rest[0] == '\'') + 1,
        '\'' if peek(2) == '\'' => at + 3,
        _ => at,
    }
}

fn find(chars: &[char], from: usize, is: impl Fn(&[char]) -> bool) -> usize {
    (from..chars.len()).find(|&at| is(&chars[at..])).unwrap_or(chars.len())
}

fn block_comment_end(chars: &[char], from: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = from;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => depth += 1,
            ('*', Some('/')) => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_end(chars: &[char], from: usize) -> usize {
    let mut at = from;
    while at < chars.len() {
        match chars[at] {
            '"' => return at + 1,
            '\\' => at += 2,
            _ => at += 1,
        }
    }
    chars.len()
}

/// `r"…"` and `r#"…"#`; a raw identifier (`r#type`) is no literal.
fn raw_end(chars: &[char], from: usize) -> usize {
    let hashes = chars[from + 1..].iter().take_while(|&&c| c == '#').count();
    if chars.get(from + 1 + hashes) != Some(&'"') {
        return from;
    }
    let closes =
        |rest: &[char]| rest[0] == '"' && rest.len() > hashes && rest[1..=hashes].iter().all(|&c| c == '#');
    (find(chars, from + 2 + hashes, closes) + 1 + hashes).min(chars.len())
}

#[test]
fn comments_and_literals_are_blanked_and_nothing_else() {
    let text = "a \"b\\\"c\" 'd' 'e '\\n' // f\nr#\"g\"# /* h /* i */ j */ k r#type b\"l\" m";
    let left: String = blank(text).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(left, "a 'e k r#type b m");
    assert_eq!(blank(text).chars().count(), text.chars().count());
}

#[test]
fn what_is_only_for_tests_is_told_apart() {
    let text = "use a;\n#[cfg(test)]\nmod tests;\nuse b;\n#[cfg(test)]\nmod inside {\nuse c;\n}\n";
    let source = Source::new("src/log/x.rs".into(), text.into());
    assert!(source.shipped().contains("use b"));
    assert!(!source.shipped().contains("use c"));
    assert_eq!(Source::new("src/log/tests.rs".into(), text.into()).shipped(), "");
    assert_eq!(Source::new("src/log/mod.rs".into(), String::new()).module(), ["log"]);
}
