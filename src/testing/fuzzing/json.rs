//! JSON texts, event lines and header lines.

use serde::de::IgnoredAny;

use crate::event::{Checker, Event, Header, JsonErrorKind, JsonKind, JsonRef, JsonText};

/// A text: as a JSON value, as an event's line and as a header's.
pub fn json_value(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let theirs = serde_json::from_str::<IgnoredAny>(text).is_ok();
    match JsonText::check(text) {
        Ok(kept) => {
            assert!(theirs, "taken, yet no JSON");
            assert!(!kept.contains(['\n', '\r']), "no line break is kept");
            assert_eq!(JsonText::check(&kept).ok().as_ref(), Some(&kept), "what is kept is taken again");
            walk(kept.value());
        }
        Err(error) => {
            assert!(error.offset() <= text.len() && !error.to_string().is_empty());
            // J has limits that the syntax does not have.
            let limit = matches!(error.kind(), JsonErrorKind::NumberOverflow | JsonErrorKind::TooDeep);
            assert!(limit || !theirs, "refused, yet JSON: {error}");
        }
    }
    if text.contains(['\n', '\r']) {
        return;
    }
    if let Ok(event) = Event::parse_line(text) {
        assert_eq!(event.to_line(), text, "an event's line is kept");
        assert!(Event::parse_line(&event.to_line()).is_ok_and(|again| again == event));
    }
    let _ = Checker::new().observe_line(text);
    if let Ok((header, _)) = Header::parse_line(text) {
        assert_eq!(header.to_line(), text, "a header's line is kept");
    }
}

/// Visits every value without recursion.
fn walk(value: JsonRef<'_>) {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value.kind() {
            JsonKind::Array => left.extend(value.elements()),
            JsonKind::Object => {
                for (name, member) in value.members() {
                    let _ = name.to_string_lossless();
                    left.push(member);
                }
            }
            JsonKind::String => drop(value.as_str().map(|text| text.to_utf8_lossy().len())),
            JsonKind::Number => {
                assert!(value.as_f64().is_some_and(f64::is_finite), "a number that was taken is finite");
                let _ = (value.as_i64(), value.as_u64());
            }
            JsonKind::Null | JsonKind::Bool => {}
        }
    }
}
