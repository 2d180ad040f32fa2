//! Where the conformance vectors are, and how their cases are read.
//!
//! A few cases lie in `tests/data` and always run. The whole shared set is read from `../shared`, or from the
//! folder that `SESSIONLOG_SHARED` names; where it is absent the test says so and passes.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use sessionlog::event::{Event, JsonRef, JsonText};

/// The few cases of `file` that are part of the repository.
pub(crate) fn bundled(file: &str) -> Vec<JsonText> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/conformance");
    cases(&root.join(file))
}

/// All cases of `file` in the shared set, one a line; nothing where the set is absent.
pub(crate) fn shared(file: &str) -> Option<Vec<JsonText>> {
    Some(cases(&shared_path(file)?))
}

/// Where `file` of the shared set is; nothing where the set is absent.
pub(crate) fn shared_path(file: &str) -> Option<PathBuf> {
    let root = env::var_os("SESSIONLOG_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let path = root.join("conformance").join(file);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

fn cases(path: &Path) -> Vec<JsonText> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("read {}: {e}", path.display()));
    text.lines().map(|line| JsonText::parse(line).unwrap()).collect()
}

/// The text of a case's string member.
pub(crate) fn text(case: JsonRef<'_>, name: &str) -> String {
    let value = case.get(name).and_then(|value| value.as_str());
    value.unwrap_or_else(|| panic!("no {name} in {}", case.raw())).to_utf8_lossy().into_owned()
}

/// A member's array as the raw texts of its elements.
pub(crate) fn raw_elements<'a>(case: JsonRef<'a>, name: &str) -> Vec<&'a str> {
    case.get(name).into_iter().flat_map(|array| array.elements()).map(|element| element.raw()).collect()
}

/// A member's array of events, which must all be well-formed.
pub(crate) fn events(case: JsonRef<'_>, name: &str) -> Vec<Event> {
    raw_elements(case, name).into_iter().map(|line| Event::parse_line(line).unwrap()).collect()
}
