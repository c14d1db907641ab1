#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use loranpac_store::{Inference, Precision};
use serde_json::Value;
use sha2::{Digest, Sha256};

// Reads the input as it is, and with correct digests, which lets fuzzing reach the code behind them.
fuzz_target!(|data: &[u8]| {
    let _ = Inference::load(&loranpac_fuzz::file("inference", data));
    if let Some(bytes) = signed(data) {
        let path = loranpac_fuzz::file("inference", &bytes);
        if let Ok(model) = Inference::load(&path) {
            model.save(&path, Precision::F32).unwrap();
            let written = fs::read(&path).unwrap();
            Inference::load(&path).unwrap().save(&path, Precision::F32).unwrap();
            assert_eq!(fs::read(&path).unwrap(), written);
        }
    }
});

/// The same file with the digests of its weights and of its metadata; None if there is no metadata.
fn signed(data: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = data.split_first_chunk()?;
    let (header, weights) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let mut header: Value = serde_json::from_slice(header).ok()?;
    let texts = header.get_mut("__metadata__")?.as_object_mut()?;
    let mut model: Value = serde_json::from_str(texts.get("model")?.as_str()?).ok()?;
    model.as_object_mut()?.insert("sha256".to_owned(), digest(weights).into());
    let model = model.to_string();
    texts.insert("sha256".to_owned(), digest(model.as_bytes()).into());
    texts.insert("model".to_owned(), model.into());
    let header = header.to_string();
    Some([&(header.len() as u64).to_le_bytes(), header.as_bytes(), weights].concat())
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
