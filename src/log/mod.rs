//! The log layer.
