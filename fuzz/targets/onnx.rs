#![no_main]

use libfuzzer_sys::fuzz_target;
use loranpac_store::onnx;

fuzz_target!(|data: &[u8]| {
    let path = loranpac_fuzz::file("onnx", data);
    let _ = onnx::read_metadata(&path);
});
