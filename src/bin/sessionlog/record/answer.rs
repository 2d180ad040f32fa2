//! An answer: one JSON object on one line.

use std::fmt::Write;

use sessionlog::Error;

/// The members of an answer behind `ok` and `tag`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Members(String);

impl Members {
    /// A member whose value is a string.
    pub(crate) fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        self.0.push_str(&quoted(value));
        self
    }

    /// A member whose value is a number.
    pub(crate) fn number(mut self, key: &str, value: u64) -> Self {
        self.key(key);
        let _ = write!(self.0, "{value}");
        self
    }

    /// A member whose value is JSON already.
    pub(crate) fn raw(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        self.0.push_str(value);
        self
    }

    /// A member whose value is an array of JSON values.
    pub(crate) fn array(mut self, key: &str, values: impl IntoIterator<Item = String>) -> Self {
        self.key(key);
        self.0.push('[');
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            self.0.push_str(&value);
        }
        self.0.push(']');
        self
    }

    fn key(&mut self, key: &str) {
        self.0.push(',');
        self.0.push_str(&quoted(key));
        self.0.push(':');
    }
}

/// The line that says it was done.
pub(crate) fn done(tag: Option<&str>, members: &Members) -> String {
    format!("{{\"ok\":true{}{}}}", tagged(tag), members.0)
}

/// The line that says why not.
pub(crate) fn refused(tag: Option<&str>, error: &Error) -> String {
    let mut more = Members::default().text("kind", error.kind().code()).text("message", &error.to_string());
    if let Some(path) = error.path() {
        more = more.text("path", &path.display().to_string());
    }
    if let Some(offset) = error.offset() {
        more = more.number("offset", offset);
    }
    let inside = more.0.strip_prefix(',').unwrap_or_default();
    format!("{{\"ok\":false{},\"error\":{{{inside}}}}}", tagged(tag))
}

fn tagged(tag: Option<&str>) -> String {
    tag.map(|tag| format!(",\"tag\":{tag}")).unwrap_or_default()
}

/// `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessionlog::ErrorKind;

    #[test]
    fn answers_repeat_the_tag_as_it_was_spelled() {
        let members = Members::default().text("session", "a\"b").number("seq", 7);
        assert_eq!(done(None, &members), r#"{"ok":true,"session":"a\"b","seq":7}"#);
        assert_eq!(done(Some("1.50"), &Members::default()), r#"{"ok":true,"tag":1.50}"#);
        let nodes = Members::default().array("nodes", ["1".to_owned(), "[2]".to_owned()]);
        assert_eq!(done(None, &nodes), r#"{"ok":true,"nodes":[1,[2]]}"#);
    }

    #[test]
    fn a_refusal_names_its_kind() {
        let error = Error::new(ErrorKind::OpenTurn, "no\n");
        let expected = r#"{"ok":false,"tag":"t","error":{"kind":"open-turn","message":"no\n"}}"#;
        assert_eq!(refused(Some("\"t\""), &error), expected);
        let error = Error::corrupt("/s/x", 9, "bad");
        assert!(refused(None, &error).ends_with(r#","path":"/s/x","offset":9}}"#));
    }
}
