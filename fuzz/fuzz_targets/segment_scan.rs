//! Segment files: the scanner and the index it feeds.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sessionlog_fuzz::bounded(input, sessionlog::testing::fuzzing::segment_scan);
});
