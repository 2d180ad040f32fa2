//! A session's header (H): who it is, when and where it began, and what it inherited. Immutable.
//!
//! Always holds: the id is not empty and within its limit, a `cwd` is an absolute path, and
//! [`Header::to_line`] gives back the line that [`Header::parse_line`] took, byte for byte. It never guesses
//! a seed length, and never uses the id as a file name.

use std::fmt::{self, Write};
use std::sync::Arc;

use super::envelope::{join_members, scan_line};
use super::json::{JsonKind, JsonRef, JsonText, Members, without_line_breaks, write_string};
use super::{MAX_ID_BYTES, SESSION_FORMAT_VERSION, Time};
use crate::error::{Error, ErrorKind, Result};

/// The names that the header itself uses.
const HEADER_FIELDS: [&str; 7] = ["type", "version", "id", "createdAt", "cwd", "parentSession", "seedLength"];

/// The header of a session: line 0 of its interchange file.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    id: Arc<str>,
    created_at: Time,
    cwd: Option<Arc<str>>,
    parent_session: Option<Arc<str>>,
    seed_length: Option<u64>,
    extra: Option<Arc<str>>,
    line: Option<Arc<str>>,
}

/// Something odd in a header that was read: kept in its line, but treated as absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderNote {
    field: &'static str,
    message: String,
}

impl HeaderNote {
    /// The member's name.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// What is odd.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for HeaderNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "header field {}: {}; kept, but treated as absent", self.field, self.message)
    }
}

fn refused(kind: ErrorKind, text: impl fmt::Display) -> Error {
    Error::new(kind, format!("header: {text}"))
}

fn check_id(id: &str) -> Result<()> {
    if id.is_empty() {
        return Err(refused(ErrorKind::InvalidValue, "the session id is empty"));
    }
    if id.len() > MAX_ID_BYTES {
        let text = format!("the session id has {} bytes, the limit is {MAX_ID_BYTES}", id.len());
        return Err(refused(ErrorKind::TooLarge, text));
    }
    Ok(())
}

/// Whether a path is absolute, on any system: `/…`, `C:\…`, `C:/…`, `\\server\…`.
fn is_absolute(path: &str) -> bool {
    match path.as_bytes() {
        [b'/', ..] | [b'\\', b'\\', ..] => true,
        [drive, b':', b'\\' | b'/', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}

impl Header {
    /// A header without optional fields.
    ///
    /// # Errors
    /// [`InvalidValue`](ErrorKind::InvalidValue) for an empty id, [`TooLarge`](ErrorKind::TooLarge) for one
    /// of more than [`MAX_ID_BYTES`].
    pub fn new(id: impl Into<Arc<str>>, created_at: Time) -> Result<Self> {
        let id = id.into();
        check_id(&id)?;
        let (cwd, parent_session, seed_length) = (None, None, None);
        Ok(Self { id, created_at, cwd, parent_session, seed_length, extra: None, line: None })
    }

    /// With a working directory, which must be an absolute path; a Windows path is one too.
    ///
    /// # Errors
    /// [`InvalidValue`](ErrorKind::InvalidValue) for a relative path.
    pub fn with_cwd(mut self, cwd: impl Into<Arc<str>>) -> Result<Self> {
        let cwd = cwd.into();
        if !is_absolute(&cwd) {
            return Err(refused(ErrorKind::InvalidValue, format!("cwd {cwd:?} is not an absolute path")));
        }
        self.cwd = Some(cwd);
        self.line = None;
        Ok(self)
    }

    /// With the id of the session it was forked from.
    #[must_use]
    pub fn with_parent(mut self, parent: impl Into<Arc<str>>) -> Self {
        self.parent_session = Some(parent.into());
        self.line = None;
        self
    }

    /// With the number of leading events that it inherited from its parent.
    #[must_use]
    pub fn with_seed_length(mut self, events: u64) -> Self {
        self.seed_length = Some(events);
        self.line = None;
        self
    }

    /// With unknown header fields (V2), `object` being a JSON object of them; they replace earlier ones.
    ///
    /// # Errors
    /// [`InvalidJson`](ErrorKind::InvalidJson) and [`InvalidValue`](ErrorKind::InvalidValue) when it is not
    /// a JSON object, or names a field that the header itself uses.
    pub fn with_extra(mut self, object: &str) -> Result<Self> {
        self.extra = super::envelope::extra_members(object, &HEADER_FIELDS)?;
        self.line = None;
        Ok(self)
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// When the session was created.
    #[must_use]
    pub fn created_at(&self) -> &Time {
        &self.created_at
    }

    /// The working directory.
    #[must_use]
    pub fn cwd(&self) -> Option<&str> {
        self.cwd.as_deref()
    }

    /// The session it was forked from.
    #[must_use]
    pub fn parent_session(&self) -> Option<&str> {
        self.parent_session.as_deref()
    }

    /// How many leading events were inherited from the parent.
    #[must_use]
    pub fn seed_length(&self) -> Option<u64> {
        self.seed_length
    }

    /// Unknown header fields as text, `"k":v,"l":w`.
    #[must_use]
    pub fn extra(&self) -> Option<&str> {
        self.extra.as_deref()
    }

    /// Unknown header fields one by one, duplicates included.
    #[must_use]
    pub fn extra_members(&self) -> Members<'_> {
        Members::of_text(self.extra.as_deref().unwrap_or(""))
    }

    /// Line 0 of the interchange file (X), without LF; or exactly the line it was read from.
    #[must_use]
    pub fn to_line(&self) -> String {
        if let Some(line) = &self.line {
            return String::from(&**line);
        }
        let mut out = String::with_capacity(192);
        // Writing to a String cannot fail.
        let _ = self.render(&mut out);
        out
    }

    /// The header as one JSON object.
    #[must_use]
    pub fn json(&self) -> JsonText {
        JsonText::of_checked(JsonRef::new_validated(&without_line_breaks(&self.to_line())))
    }

    fn render<W: Write>(&self, out: &mut W) -> fmt::Result {
        write!(out, "{{\"type\":\"session\",\"version\":{SESSION_FORMAT_VERSION},\"id\":")?;
        write_string(out, &self.id)?;
        write!(out, ",\"createdAt\":{}", self.created_at)?;
        for (name, value) in [("cwd", &self.cwd), ("parentSession", &self.parent_session)] {
            if let Some(value) = value {
                write!(out, ",\"{name}\":")?;
                write_string(out, value)?;
            }
        }
        if let Some(events) = self.seed_length {
            write!(out, ",\"seedLength\":{events}")?;
        }
        if let Some(extra) = &self.extra {
            write!(out, ",{extra}")?;
        }
        out.write_str("}")
    }

    /// Reads line 0 of an interchange file, without its LF, and says what is odd in it. The line itself is
    /// kept where rendering would spell it otherwise.
    ///
    /// # Errors
    /// [`InvalidJson`](ErrorKind::InvalidJson) when it is not one JSON object,
    /// [`Version`](ErrorKind::Version) for a version other than 0,
    /// [`InvalidValue`](ErrorKind::InvalidValue) when it is no session header or a required field is missing
    /// or malformed, [`TooLarge`](ErrorKind::TooLarge) for an id beyond the limit.
    pub fn parse_line(line: &str) -> Result<(Self, Vec<HeaderNote>)> {
        let mut known: [Option<JsonRef<'_>>; 7] = [None; 7];
        let mut extras = Vec::new();
        scan_line(line, "header", |member| {
            let place = HEADER_FIELDS.iter().position(|field| member.name.eq_str(field));
            match place.and_then(|i| known.get_mut(i)) {
                Some(slot) => *slot = Some(JsonRef::new_validated(member.value)),
                None => extras.push((member.quoted, member.value)),
            }
        })?;
        let [tag, version, id, created_at, cwd, parent, seed_length] = known;
        if !tag.and_then(|v| v.as_str()).is_some_and(|s| s.eq_str("session")) {
            return Err(refused(
                ErrorKind::InvalidValue,
                "type must be \"session\": this is no session header",
            ));
        }
        check_version(version)?;
        let id = id.and_then(|v| v.as_str()).and_then(|s| s.to_string_lossless());
        let id = id.ok_or_else(|| refused(ErrorKind::InvalidValue, "id must be a string of Unicode text"))?;
        let created_at = created_at.and_then(|v| Time::parse_json(v.as_number()?));
        let created_at =
            created_at.ok_or_else(|| refused(ErrorKind::InvalidValue, "createdAt must be a number"))?;
        let mut header = Self::new(&*id, created_at)?;
        let mut notes = Vec::new();
        header.cwd = text_field(cwd, "cwd", &mut notes).filter(|path| {
            let fine = is_absolute(path);
            if !fine {
                notes.push(HeaderNote { field: "cwd", message: format!("{path:?} is not an absolute path") });
            }
            fine
        });
        header.parent_session = text_field(parent, "parentSession", &mut notes);
        header.seed_length = seed_length.and_then(|v| {
            let events = v.as_u64();
            if events.is_none() {
                notes.push(odd("seedLength", "an integer >= 0", v));
            }
            events
        });
        header.extra = join_members(extras.into_iter()).map(Arc::from);
        if header.to_line() != line {
            header.line = Some(line.into());
        }
        Ok((header, notes))
    }
}

fn check_version(version: Option<JsonRef<'_>>) -> Result<()> {
    let number = version.filter(|v| v.kind() == JsonKind::Number);
    let number = number.ok_or_else(|| {
        refused(ErrorKind::InvalidValue, "version must be a number: this is no session header")
    })?;
    if number.as_i64() == Some(0) {
        return Ok(());
    }
    let text = format!("version {} is not supported, only {SESSION_FORMAT_VERSION} is", shown(number));
    Err(refused(ErrorKind::Version, text))
}

fn shown(value: JsonRef<'_>) -> String {
    value.raw().chars().take(40).collect()
}

fn odd(field: &'static str, expected: &str, found: JsonRef<'_>) -> HeaderNote {
    HeaderNote { field, message: format!("expected {expected}, found {}", shown(found)) }
}

fn text_field(
    value: Option<JsonRef<'_>>,
    field: &'static str,
    notes: &mut Vec<HeaderNote>,
) -> Option<Arc<str>> {
    let value = value?;
    let text = value.as_str().and_then(|s| s.to_string_lossless());
    if text.is_none() {
        notes.push(odd(field, "a string of Unicode text", value));
    }
    text.map(|t| Arc::from(&*t))
}

/// As its line.
impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_line())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = r#"{"type":"session","version":0,"id":"v","createdAt":5"#;

    fn read(rest: &str) -> Result<(Header, Vec<HeaderNote>)> {
        let line = format!("{BASE}{rest}");
        let read = Header::parse_line(&line);
        if let Ok((header, _)) = &read {
            assert_eq!(header.to_line(), line);
            assert!(crate::event::is_json_value(&header.json()).is_ok());
        }
        read
    }

    #[test]
    fn built_and_read_headers_agree() {
        let built = Header::new("v", Time::from_millis(5)).unwrap();
        assert_eq!(read("}").unwrap(), (built.clone(), vec![]));
        let full = built.with_cwd("/a b").unwrap().with_parent("p\"").with_seed_length(3);
        let full = full.with_extra("{\"origin\":{ \"x\":1.0}}").unwrap();
        let line = r#","cwd":"/a b","parentSession":"p\"","seedLength":3,"origin":{ "x":1.0}}"#;
        assert_eq!(read(line).unwrap(), (full, vec![]));
    }

    #[test]
    fn odd_spellings_keep_their_line() {
        for line in [
            r#" {"type":"session","version":-0.0e7,"id":"v","createdAt":-1.5}"#,
            r#"{"createdAt":5,"id":"\u0076","version":0,"type":"session"}"#,
            "{\"type\":\"session\",\"version\":0,\"id\":\"v\",\"createdAt\":5}\r",
            r#"{"type":"session","version":9,"id":"x","createdAt":5,"version":0,"id":"v"}"#,
        ] {
            let (header, notes) = Header::parse_line(line).unwrap();
            assert_eq!((header.to_line().as_str(), header.id(), notes.len()), (line, "v", 0));
        }
    }

    #[test]
    fn odd_optional_fields_are_kept_absent_and_reported() {
        let (header, notes) =
            read(r#","cwd":"a/b","parentSession":4,"seedLength":"many","delegationDepth":1}"#).unwrap();
        assert_eq!((header.cwd(), header.parent_session(), header.seed_length()), (None, None, None));
        let fields: Vec<_> = notes.iter().map(HeaderNote::field).collect();
        assert_eq!(fields, ["cwd", "parentSession", "seedLength"]);
        assert_eq!(
            notes[2].to_string(),
            "header field seedLength: expected an integer >= 0, found \"many\"; kept, but treated as absent"
        );
        assert_eq!(header.extra(), Some("\"delegationDepth\":1"));
    }

    #[test]
    fn refusals_are_named() {
        let long = format!(r#"{{"type":"session","version":0,"id":"{}","createdAt":5}}"#, "x".repeat(1025));
        let cases = [
            ("garbage", ErrorKind::InvalidJson, "header line"),
            ("null", ErrorKind::InvalidJson, "expected an object"),
            (
                r#"{"type":"header","version":0,"id":"v","createdAt":5}"#,
                ErrorKind::InvalidValue,
                "no session header",
            ),
            (
                r#"{"type":"session","id":"v","createdAt":5}"#,
                ErrorKind::InvalidValue,
                "version must be a number",
            ),
            (
                r#"{"type":"session","version":"0","id":"v","createdAt":5}"#,
                ErrorKind::InvalidValue,
                "version",
            ),
            (
                r#"{"type":"session","version":0.5,"id":"v","createdAt":5}"#,
                ErrorKind::Version,
                "version 0.5 is not",
            ),
            (
                r#"{"type":"session","version":1,"id":"v","createdAt":5}"#,
                ErrorKind::Version,
                "version 1 is not",
            ),
            (r#"{"type":"session","version":0,"id":"","createdAt":5}"#, ErrorKind::InvalidValue, "empty"),
            (
                r#"{"type":"session","version":0,"id":"\ud800","createdAt":5}"#,
                ErrorKind::InvalidValue,
                "Unicode",
            ),
            (
                r#"{"type":"session","version":0,"id":"v","createdAt":"5"}"#,
                ErrorKind::InvalidValue,
                "createdAt",
            ),
            (long.as_str(), ErrorKind::TooLarge, "1025 bytes, the limit is 1024"),
        ];
        for (line, kind, text) in cases {
            let error = Header::parse_line(line).unwrap_err();
            assert_eq!(error.kind(), kind, "{line}: {error}");
            assert!(error.to_string().contains(text), "{line}: {error}");
        }
    }

    #[test]
    fn absolute_paths_of_any_system() {
        for path in ["/", "/a/../b", "C:\\x", "z:/x", "\\\\server\\share"] {
            assert!(Header::new("v", Time::from_millis(0)).unwrap().with_cwd(path).is_ok(), "{path}");
        }
        for path in ["", "a", "./a", "C:", "C:x", "1:/x", "\\x", "~"] {
            assert!(Header::new("v", Time::from_millis(0)).unwrap().with_cwd(path).is_err(), "{path}");
        }
    }
}
