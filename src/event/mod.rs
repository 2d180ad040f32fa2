//! The event layer.
