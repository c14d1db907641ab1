#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use loranpac_store::Manifest;
use sha2::{Digest, Sha256};

// The first line has a correct digest, which lets fuzzing reach the code behind it.
fuzz_target!(|data: &[u8]| {
    let digest: String = Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect();
    let bytes = [format!("loranpac-model 2 {digest}\n").as_bytes(), data].concat();
    if let Ok(manifest) = Manifest::from_bytes(&bytes, Path::new("MANIFEST")) {
        let back = Manifest::from_bytes(&manifest.to_bytes().unwrap(), Path::new("MANIFEST")).unwrap();
        assert_eq!(back, manifest);
    }
    let _ = Manifest::from_bytes(data, Path::new("MANIFEST"));
});
