//! The interop layer.
