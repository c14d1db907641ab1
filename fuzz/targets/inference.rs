#![no_main]

use libfuzzer_sys::fuzz_target;
use loranpac_store::Inference;

fuzz_target!(|data: &[u8]| {
    let path = loranpac_fuzz::file("inference", data);
    let _ = Inference::load(&path);
});
