//! Lossless JSON text (V3, J): checked once, kept as spelled, looked into without being built up.
//!
//! Always holds: a [`JsonText`] is one JSON value without a line break, and what comes out of it is what went
//! in. Nothing here recurses, and nothing allocates out of proportion to its input. It never rewrites a
//! number, an escape or the order of members.

mod error;
mod number;
mod object;
mod path;
mod scan;
mod serialize;
mod string;
mod text;
mod value;

pub use error::{JsonError, JsonErrorKind};
pub use scan::MAX_DEPTH;
pub use serialize::MAX_TYPED_DEPTH;
pub use string::JsonStr;
pub use text::{JsonText, is_json_value};
pub use value::{Elements, JsonKind, JsonRef, Members};

pub(crate) use number::as_i64 as number_as_i64;
pub(crate) use object::{Member, scan_object};
pub(crate) use path::{Step, render as render_path};
pub(crate) use scan::{Scanner, checked_quote, closing_quote, is_string_content};
pub(crate) use string::write_string;
pub(crate) use text::{is_kept_as_it_is, without_line_breaks};
