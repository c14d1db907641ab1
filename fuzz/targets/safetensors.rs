#![no_main]

use libfuzzer_sys::fuzz_target;
use loranpac_data::Format;

fuzz_target!(|data: &[u8]| loranpac_fuzz::check(Format::Safetensors, data));
