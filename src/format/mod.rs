//! The format layer.

#[allow(dead_code, reason = "the log is its user")]
pub(crate) mod varint;
