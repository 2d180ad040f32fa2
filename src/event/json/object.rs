//! The members of a text that should be one object, found while it is checked.

use super::scan::{Fault, Scanner};
use super::string::JsonStr;

/// A member of an object: its name with and without quotes, and its value's text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member<'a> {
    pub(crate) quoted: &'a str,
    pub(crate) name: JsonStr<'a>,
    pub(crate) value: &'a str,
}

/// Checks that `text` is one object and hands out its members in order, duplicates included. Returns whether
/// a line break stands between tokens.
pub(crate) fn scan_object<'a>(text: &'a str, mut member: impl FnMut(Member<'a>)) -> Result<bool, Fault> {
    let mut scanner = Scanner::new(text);
    if scanner.next_token() != Some(b'{') {
        return Err(scanner.fault("expected an object"));
    }
    scanner.bump();
    if scanner.next_token() == Some(b'}') {
        scanner.bump();
        scanner.end()?;
        return Ok(scanner.saw_line_break());
    }
    loop {
        scanner.next_token();
        let key_from = scanner.at();
        let key_to = scanner.key()?;
        scanner.next_token();
        let from = scanner.at();
        scanner.value(1)?;
        let quoted = text.get(key_from..key_to).unwrap_or("");
        let name = quoted.strip_prefix('"').and_then(|k| k.strip_suffix('"')).unwrap_or(quoted);
        let value = text.get(from..scanner.at()).unwrap_or("");
        member(Member { quoted, name: JsonStr::from_inner(name), value });
        match scanner.next_token() {
            Some(b',') => scanner.bump(),
            Some(b'}') => break,
            Some(_) => return Err(scanner.fault("expected `,` or `}`")),
            None => return Err(scanner.fault("the text ends inside an object")),
        }
    }
    scanner.bump();
    scanner.end()?;
    Ok(scanner.saw_line_break())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Result<Vec<(&str, &str)>, Fault> {
        let mut found = Vec::new();
        scan_object(text, |m| found.push((m.quoted, m.value)))?;
        Ok(found)
    }

    #[test]
    fn hands_out_members_as_spelled() {
        let found = members(" { \"a\" : [1, 2] , \"\\u0061\":\"}\",\"\":{ } }\r").unwrap();
        assert_eq!(found, [("\"a\"", "[1, 2]"), ("\"\\u0061\"", "\"}\""), ("\"\"", "{ }")]);
        assert_eq!(members("{ }").unwrap(), []);
    }

    #[test]
    fn refuses_what_is_not_one_object() {
        for text in ["", "[]", "{", "{\"a\"}", "{\"a\":1,}", "{\"a\":1]", "{,}", "{\"a\":1}{", "{\"a\":01}"] {
            assert!(members(text).is_err(), "{text}");
            assert!(super::super::is_json_value(text).is_err() || text == "[]", "{text}");
        }
    }
}
