//! Paths of values, `$.a[3]["odd key"]`, for error texts.
//!
//! Computed only when something is wrong. Always short: long keys and deep paths are shortened, so that an
//! error about a huge value is not itself huge.

/// One step down into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// A member, its name as spelled between the quotes.
    Key(&'a str),
    /// An element.
    Index(usize),
}

/// Steps shown at each end of a path; those in between become `…`.
const SHOWN: usize = 8;
/// Characters of a key that are shown.
const KEY_CHARS: usize = 48;

/// The text of a path.
pub(crate) fn render(steps: &[Step<'_>]) -> String {
    let mut out = String::from("$");
    let hidden = SHOWN..steps.len().saturating_sub(SHOWN);
    for (i, step) in steps.iter().enumerate() {
        if hidden.contains(&i) {
            if i == SHOWN {
                out.push('…');
            }
            continue;
        }
        match step {
            Step::Index(n) => out.push_str(&format!("[{n}]")),
            Step::Key(key) => push_key(&mut out, key),
        }
    }
    out
}

fn push_key(out: &mut String, key: &str) {
    let plain = !key.is_empty()
        && key.len() <= KEY_CHARS
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if plain {
        out.push('.');
        out.push_str(key);
        return;
    }
    out.push_str("[\"");
    out.extend(key.chars().take(KEY_CHARS));
    if key.chars().nth(KEY_CHARS).is_some() {
        out.push('…');
    }
    out.push_str("\"]");
}

/// The path of the value that `offset` lies in or in front of; everything before `offset` is well-formed.
pub(crate) fn of_offset(text: &str, offset: usize) -> String {
    let bytes = text.as_bytes();
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut at = 0;
    let mut name_next = false;
    while at < offset {
        let Some(&byte) = bytes.get(at) else { break };
        match byte {
            b'"' => {
                let end = string_end(bytes, at).min(bytes.len());
                if end > offset {
                    break;
                }
                if name_next && let Some(last @ Step::Key(_)) = steps.last_mut() {
                    *last = Step::Key(text.get(at.saturating_add(1)..end.saturating_sub(1)).unwrap_or(""));
                    name_next = false;
                }
                at = end;
                continue;
            }
            b'{' => {
                steps.push(Step::Key(""));
                name_next = true;
            }
            b'[' => steps.push(Step::Index(0)),
            b'}' | b']' => {
                steps.pop();
                name_next = false;
            }
            b',' => match steps.last_mut() {
                Some(Step::Index(n)) => *n = n.saturating_add(1),
                Some(Step::Key(_)) => name_next = true,
                None => {}
            },
            _ => {}
        }
        at = at.saturating_add(1);
    }
    // In front of a member's name the fault belongs to the object itself.
    if name_next {
        steps.pop();
    }
    render(&steps)
}

/// The end of the string that begins at `at`, which may be the end of the text.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut i = at.saturating_add(1);
    while let Some(&byte) = bytes.get(i) {
        match byte {
            b'"' => return i.saturating_add(1),
            b'\\' => i = i.saturating_add(2),
            _ => i = i.saturating_add(1),
        }
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_value_around_an_offset() {
        let text = r#"{"a":[1,{"b c":[true,1e400]}],"d":2}"#;
        let at = text.find("1e400").unwrap();
        assert_eq!(of_offset(text, at), r#"$.a[1]["b c"][1]"#);
        assert_eq!(of_offset(text, text.find("\"d\"").unwrap()), "$");
        assert_eq!(of_offset(text, text.find("2}").unwrap()), "$.d");
        assert_eq!(of_offset(text, 0), "$");
    }

    #[test]
    fn a_deep_path_stays_short() {
        let text = "[".repeat(50_000);
        assert!(of_offset(&text, 50_000).len() < 100);
        let long = format!("{{\"{}\":x", "k".repeat(10_000));
        assert!(of_offset(&long, long.len() - 1).len() < 100);
    }
}
