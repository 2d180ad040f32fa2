//! The store layer.
