//! Operations and faults on the simulated disk.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    sessionlog_fuzz::bounded(input, sessionlog::testing::fuzzing::simulation);
});
