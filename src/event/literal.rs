//! JSON string literals by content: one spelling for each string, lone surrogates included.
//!
//! Two spellings of one string give the same literal, so it serves as a key. It is the spelling that
//! `JSON.stringify` has: short escapes where there are some, `\u00xx` for other controls and `\udxxx` for a
//! surrogate without its partner, everything else as it is.

use super::JsonStr;
use super::json::write_string;

/// The literal of `text`, quotes included.
pub(crate) fn literal(text: JsonStr<'_>) -> String {
    if let Some(text) = text.to_string_lossless() {
        return literal_of(&text);
    }
    let mut out = String::with_capacity(text.raw_inner().len() + 2);
    out.push('"');
    for point in text.code_points() {
        match char::from_u32(point) {
            Some(c) => out.push_str(unquoted(&literal_of(c.encode_utf8(&mut [0; 4])))),
            None => out.push_str(&format!("\\u{point:04x}")),
        }
    }
    out.push('"');
    out
}

/// The literal of plain text, quotes included.
pub(crate) fn literal_of(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    // Writing to a String cannot fail.
    let _ = write_string(&mut out, text);
    out
}

fn unquoted(literal: &str) -> &str {
    literal.get(1..literal.len() - 1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::JsonText;

    fn of(json: &str) -> String {
        literal(JsonText::parse(json).unwrap().value().as_str().unwrap())
    }

    #[test]
    fn one_spelling_for_each_string() {
        for (spelled, expected) in [
            (r#""""#, r#""""#),
            (r#""a\u0062\/c""#, r#""ab/c""#),
            (r#""\u0022\u005C\u005c\\""#, r#""\"\\\\\\""#),
            (r#""\u0008\u000c\u000A\u000d\u0009\b\f\n\r\t""#, r#""\b\f\n\r\t\b\f\n\r\t""#),
            (r#""\u0000\u001F\u007f""#, "\"\\u0000\\u001f\u{7f}\""),
            (r#""\ud83d\ude42 \u2028""#, "\"\u{1F642} \u{2028}\""),
            (r#""\uD800""#, r#""\ud800""#),
            (r#""\udc00\ud800x""#, r#""\udc00\ud800x""#),
            (r#""\ud800\ud83d\ude42""#, "\"\\ud800\u{1F642}\""),
            (r#""\ud800\u0041""#, r#""\ud800A""#),
        ] {
            assert_eq!(of(spelled), expected, "{spelled}");
            assert_eq!(of(&of(spelled)), expected, "a literal is its own literal");
        }
    }

    #[test]
    fn plain_text_is_spelled_the_same_way() {
        let text = "a\"\\\u{8}\u{c}\n\r\t\u{0}\u{1f}\u{7f}\u{2028}\u{1F642}";
        assert_eq!(literal_of(text), serde_json::to_string(text).unwrap());
        assert_eq!(of(&literal_of(text)), literal_of(text));
    }
}
