#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_core::fuzz::limits(data));
