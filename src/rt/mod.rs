//! The rt layer.
