//! Inference files: a header, JSON in it, and weights.

use std::fs::{self, File};
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::obeyed;
use crate::ways::{hex, replace, replacements};
use crate::world::{prepare, run, snapshot};

/// Bits of a file that are flipped, one at a time.
const FLIPS: usize = 40;

/// What it is, whether it is in the text `model`, where, the value as JSON, and the exit code.
const EDITS: &[(&str, bool, &str, &str, i32)] = &[
    ("no features", true, "/lift/dim", "0", 3),
    ("too many features", true, "/lift/dim", "18446744073709551615", 3),
    ("features that no memory holds", true, "/lift/dim", "16777216", 1),
    ("no width", true, "/lift/width", "0", 3),
    ("another width", true, "/lift/width", "21", 3),
    ("all widths", true, "/lift/width", "18446744073709551615", 3),
    ("an unknown lift", true, "/lift/name", "\"\\u001b[2J\"", 3),
    ("an infinite lift", true, "/lift/name", "\"arc-cosine\"", 3),
    ("a gamma of null", true, "/lift/gamma", "null", 3),
    ("a gamma beyond", true, "/lift/gamma", "1e999", 3),
    ("two labels alike", true, "/labels/1", "\"c0\"", 3),
    ("a label of null", true, "/labels/0", "null", 3),
    ("no labels", true, "/labels", "[]", 3),
    ("a hostile label", true, "/labels/0", "\"\\u001b[2J\\u0007\"", 0),
    ("a temperature of 0", true, "/temperature", "0", 3),
    ("a temperature of -1", true, "/temperature", "-1", 3),
    ("a temperature beyond", true, "/temperature", "1e999", 3),
    ("an exponent below", true, "/exponent", "-1", 3),
    ("an exponent beyond", true, "/exponent", "2147483647", 3),
    ("another checksum", true, "/sha256", "\"\\u001b[2J\"", 3),
    ("an unknown field", true, "/colour", "1", 3),
    ("another format", false, "/__metadata__/format", "\"\\u001b[2J\"", 1),
    ("a newer version", false, "/__metadata__/version", "\"3\"", 5),
    ("version 0", false, "/__metadata__/version", "\"0\"", 3),
    ("version -1", false, "/__metadata__/version", "\"-1\"", 3),
    ("a version that is no number", false, "/__metadata__/version", "\"\\u001b[2J\"", 3),
    ("version 1 with a checksum", false, "/__metadata__/version", "\"1\"", 3),
    ("an unknown text", false, "/__metadata__/\u{1b}", "\"\"", 3),
    ("another checksum of the model", false, "/__metadata__/sha256", "\"00\"", 3),
    ("a deep model", false, "/__metadata__/model", "\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"", 3),
    ("another dtype", false, "/weights/dtype", "\"I32\"", 3),
    ("an unknown dtype", false, "/weights/dtype", "\"\\u001b[2J\"", 3),
    ("other shapes", false, "/weights/shape", "[20, 5]", 3),
    ("three axes", false, "/weights/shape", "[1, 5, 20]", 3),
    ("a shape that overflows", false, "/weights/shape", "[9223372036854775808, 4]", 3),
    ("offsets that are not aligned", false, "/weights/data_offsets", "[1, 401]", 3),
    ("offsets backwards", false, "/weights/data_offsets", "[400, 0]", 3),
    ("offsets beyond", false, "/weights/data_offsets", "[0, 18446744073709551615]", 3),
    ("a second tensor", false, "/more", "{\"dtype\": \"F32\", \"shape\": [0], \"data_offsets\": [400, 400]}", 3),
    ("overlapping tensors", false, "/more", "{\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}", 3),
];

/// The header of a file as JSON, and the weights.
fn parts(bytes: &[u8]) -> (Value, &[u8]) {
    let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    (serde_json::from_slice(&bytes[8..end]).unwrap(), &bytes[end..])
}

/// A file with one other value, and the right checksum of its metadata.
fn edited(bytes: &[u8], in_model: bool, pointer: &str, text: &str) -> Vec<u8> {
    let (mut header, weights) = parts(bytes);
    if in_model {
        let model: Value = serde_json::from_str(header["__metadata__"]["model"].as_str().unwrap()).unwrap();
        let model = replace(model, pointer, text);
        header["__metadata__"]["sha256"] = hex(model.as_bytes()).into();
        header["__metadata__"]["model"] = model.into();
    }
    let header = if in_model { header.to_string() } else { replace(header, pointer, text) };
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), weights].concat()
}

/// Runs what opens an inference file on `m.safetensors`; each command must end with this code.
fn check(folder: &Path, name: &str, code: i32) -> Vec<String> {
    let before = snapshot(folder);
    let mut wrong = Vec::new();
    for command in ["predict", "eval"] {
        let done = run(folder, &[command, "m.safetensors", "first.csv"]);
        let message = &done.stderr;
        let named = code == 0 || (message.contains("error: ") && message.contains("m.safetensors"));
        let shown = obeyed(message) || (command != "predict" && obeyed(&done.stdout));
        if done.status.code() != Some(code) || !named || shown || snapshot(folder) != before {
            wrong.push(format!("{name} / {command}: {} instead of {code}: {message:.300}", done.status));
        }
    }
    wrong
}

#[test]
fn a_hostile_inference_file_harms_nobody() {
    let place = prepare(&["--width", "20"]);
    let (folder, file) = (place.path(), place.path().join("m.safetensors"));
    assert!(run(folder, &["export", "m.lrp", "m.safetensors"]).status.success());
    let bytes = fs::read(&file).unwrap();
    let mut wrong = check(folder, "nothing", 0);
    for (name, in_model, pointer, text, code) in EDITS {
        fs::write(&file, edited(&bytes, *in_model, pointer, text)).unwrap();
        wrong.extend(check(folder, name, *code));
    }
    for (name, code, spoil) in replacements() {
        fs::write(&file, &bytes).unwrap();
        spoil(&file);
        // A user may name a link; the others lead to nothing here. A folder is taken for a model.
        let code = match *name {
            "a link to its copy" => 0,
            "a link to nothing" | "a link to a victim" | "a folder" => 1,
            _ => *code,
        };
        wrong.extend(check(folder, name, code));
        let _ = fs::remove_file(&file).or_else(|_| fs::remove_dir(&file));
    }
    for flip in 0..FLIPS {
        let mut bytes = bytes.clone();
        let at = flip * (bytes.len() - 1) / (FLIPS - 1);
        bytes[at] ^= 1 << (flip % 8);
        fs::write(&file, bytes).unwrap();
        // What a bit means decides the code; none may go unnoticed.
        let code = run(folder, &["predict", "m.safetensors", "first.csv"]).status.code();
        if !matches!(code, Some(1 | 3 | 5)) {
            wrong.push(format!("bit {} of byte {at} / predict: {code:?}", flip % 8));
        }
    }
    let file = File::create(&file).unwrap();
    file.set_len(300 << 20).unwrap();
    wrong.extend(check(folder, "300 MB of nothing", 3));
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn an_inference_file_of_version_1_is_still_read() {
    let place = TempDir::new().unwrap();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../loranpac-store/tests/models");
    for (from, to) in [("even.safetensors", "m.safetensors"), ("first.csv", "first.csv")] {
        fs::copy(models.join(from), place.path().join(to)).unwrap();
    }
    let wrong = check(place.path(), "version 1", 0);
    assert!(wrong.is_empty(), "{wrong:?}");
}
