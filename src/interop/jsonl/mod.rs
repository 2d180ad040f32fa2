//! JSONL files: one session a file, a header line and then an event a line (rules X, X1, X2).
//!
//! What always holds: a canonical file comes back byte for byte, and so does every other valid line. A hole is
//! reported with its line, byte offset and reason. What is never done: guessing at a damaged line, trusting a
//! file's name over its header, overwriting a file without being asked.
//!
//! Layout below a root folder: `cwd-<first 12 hex digits of sha256(cwd)>/<id>.jsonl`, or `_no-cwd/<id>.jsonl`.

mod ahead;
mod export;
mod lines;
mod old;
mod packed;
mod path;
mod reader;
mod writer;

pub(super) use ahead::read_ahead;
pub use export::{Exported, export_session, export_session_with};
pub use lines::MAX_LINE_BYTES;
#[cfg(feature = "testing")]
pub(crate) use packed::PackedRow;
pub use path::{MAX_FILE_NAME_BYTES, bucket_name, file_name, session_path};
pub use reader::Reader;
pub use writer::{WriteOptions, WrittenFile, write_file};
