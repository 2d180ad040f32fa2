//! Frames: reading one, its records, looking ahead.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sessionlog_fuzz::bounded(input, sessionlog::testing::fuzzing::frame_decode);
});
