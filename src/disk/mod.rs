//! The disk layer.
