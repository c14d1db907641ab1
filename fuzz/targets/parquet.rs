#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    loranpac_fuzz::hide_fenced_panics();
    loranpac_fuzz::check("parquet", data);
});
