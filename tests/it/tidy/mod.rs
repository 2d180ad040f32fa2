//! The project's own rules, kept by a test: layers, seams, sizes, words, and that the README says what is there.

mod layers;
mod readme;
mod shape;
mod source;
