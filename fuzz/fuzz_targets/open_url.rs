#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_open::fuzz::url(data));
