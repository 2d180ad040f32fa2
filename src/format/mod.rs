//! The format layer.
