//! The testing layer.
