#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| durum_fuzz::dump(data));
