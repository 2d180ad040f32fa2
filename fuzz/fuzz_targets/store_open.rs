//! Whole stores: opened, read, verified, written to, reopened.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sessionlog_fuzz::bounded(input, sessionlog::testing::fuzzing::store_open);
});
