#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| loranpac_fuzz::check_encoder("adapter", data));
