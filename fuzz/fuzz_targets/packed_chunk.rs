//! Chunks, packed and unpacked.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sessionlog_fuzz::bounded(input, sessionlog::testing::fuzzing::packed_chunk);
});
