//! Exported ONNX models: onnxruntime gives the engine's scores, and what they say about themselves can be read back.

mod exports;
#[path = "../../loranpac/tests/skip/mod.rs"]
mod skip;

use std::fs;
use std::path::Path;
use std::process::Command;

use exports::{labels, learned, model, mutate, samples, scores, with_weights};
use loranpac::lift::LIFTS;
use loranpac_store::onnx::{OnnxMetadata, OnnxOptions, export, read_metadata};
use loranpac_store::{Error, Inference, Precision};

const DIM: usize = 24;

fn half() -> OnnxOptions {
    OnnxOptions { precision: Precision::F16, ..OnnxOptions::default() }
}

/// External data from the first byte on.
fn external(precision: Precision) -> OnnxOptions {
    OnnxOptions { precision, embed_limit: 0, ..OnnxOptions::default() }
}

/// Files in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn write_numbers<'a>(path: &Path, values: impl IntoIterator<Item = &'a f32>) {
    fs::write(path, values.into_iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
}

/// Exports a model with the engine's scores beside it, as `onnx_check.py` reads them.
fn case(folder: &Path, name: &str, model: &Inference, options: &OnnxOptions, tolerance: f64) -> serde_json::Value {
    let file = |end: &str| format!("{name}{end}");
    export(model, &folder.join(file(".onnx")), options).unwrap();
    // Half precision rounds P, which moves `P x` by some 2e-4 |x|: for samples of length 1e4 that is more than the width of
    // a sigmoid, whose few features near zero then change sides.
    let longest = if options.precision == Precision::F16 { 30.0 } else { 1e4 };
    let x = samples(50, model.lift.dim, longest);
    write_numbers(&folder.join(file(".x")), &x);
    write_numbers(&folder.join(file(".scores")), scores(model, &x).rows().flatten());
    serde_json::json!({
        "model": file(".onnx"), "samples": file(".x"), "scores": file(".scores"), "dim": model.lift.dim,
        "labels": model.classifier.labels(), "lift": model.lift, "temperature": model.classifier.temperature(),
        "version": env!("CARGO_PKG_VERSION"), "probabilities": options.probabilities,
        "half": options.precision == Precision::F16, "tolerance": tolerance,
    })
}

/// Needs Python 3 and three packages from PyPI.
///
/// Measured with onnxruntime 1.31, the worst of 50 samples as a part of the sample's largest score: 1.9e-6 in single
/// precision (fourier; 1.0e-6 for the others), 1.3e-3 in half precision (random, sigmoid-random).
#[test]
fn onnxruntime_gives_the_scores_of_the_engine() {
    let python = match exports::python::environment(
        "python-onnx",
        &["numpy", "onnxruntime", "onnx"],
        "import numpy, onnx, onnxruntime",
    ) {
        Ok(python) => python,
        Err(why) => return skip::skipped("onnxruntime", "onnxruntime_gives_the_scores_of_the_engine", &why),
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (single, rounded) = (1e-4, 4e-3);
    let mut cases = Vec::new();
    for lift in LIFTS {
        let (odd, even) = (model(lift.name, DIM, 301), model(lift.name, DIM, 2000));
        let probabilities = OnnxOptions { probabilities: true, ..OnnxOptions::default() };
        cases.push(case(folder, &format!("{}-odd", lift.name), &odd, &probabilities, single));
        cases.push(case(folder, &format!("{}-even", lift.name), &even, &OnnxOptions::default(), single));
        cases.push(case(folder, &format!("{}-half", lift.name), &even, &half(), rounded));
    }
    // P of 20,000 x 24 takes two strips.
    let large = model("relu-random", DIM, 20_000);
    cases.push(case(folder, "external", &large, &external(Precision::F32), single));
    cases.push(case(folder, "external-half", &large, &external(Precision::F16), rounded));
    let (_, learned) = learned(DIM, 2000);
    cases.push(case(folder, "learned", &learned, &OnnxOptions::default(), single));
    cases.push(case(folder, "learned-half", &learned, &half(), rounded));
    fs::write(folder.join("cases.json"), serde_json::to_vec(&cases).unwrap()).unwrap();

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/onnx_check.py");
    let output = Command::new(python).arg(script).arg(folder).output().unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_a_model_says_about_itself_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    for options in [OnnxOptions::default(), half(), external(Precision::F32)] {
        for temperature in [None, Some(0.1)] {
            let Inference { lift, classifier, encoder } = model("relu-random", DIM, 301);
            let model = Inference { lift, encoder, classifier: classifier.with_temperature(temperature) };
            export(&model, &path, &options).unwrap();
            let (labels, lift) = (model.classifier.labels().to_vec(), model.lift);
            let loranpac_version = env!("CARGO_PKG_VERSION").to_owned();
            assert_eq!(read_metadata(&path).unwrap(), OnnxMetadata { labels, lift, temperature, loranpac_version });
        }
    }
}

#[test]
fn large_numbers_go_beside_the_model_and_nothing_else_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    let model = model("relu-random", DIM, 301);
    let bytes = 4 * 301 * (DIM as u64 + 5);

    let exact = OnnxOptions { embed_limit: bytes, ..OnnxOptions::default() };
    let inside = export(&model, &path, &exact).unwrap();
    assert_eq!((inside.data, inside.bytes), (None, path.metadata().unwrap().len()));
    assert_eq!(names(folder.path()), ["m.onnx"]);

    let below = OnnxOptions { embed_limit: bytes - 1, ..OnnxOptions::default() };
    let outside = export(&model, &path, &below).unwrap();
    assert_eq!(names(folder.path()), ["m.onnx", "m.onnx.data"]);
    let data = folder.path().join("m.onnx.data").metadata().unwrap().len();
    assert_eq!(outside.bytes, data + path.metadata().unwrap().len());
    // W begins at the next multiple of 64 KiB after P.
    assert_eq!(data, 65536 + 4 * 301 * 5);

    // Over an older export, too.
    export(&model, &path, &below).unwrap();
    assert_eq!(names(folder.path()), ["m.onnx", "m.onnx.data"]);
}

#[test]
fn what_cannot_be_exported_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    let fine = || model("relu-random", DIM, 301);
    let probabilities = OnnxOptions { probabilities: true, ..OnnxOptions::default() };
    let large = with_weights(fine().lift, &labels(), |class, i| if (class, i) == (1, 3) { -7e4 } else { 1e-5 });
    let heated = |temperature| {
        let Inference { lift, encoder, classifier } = fine();
        Inference { lift, encoder, classifier: classifier.with_temperature(temperature) }
    };
    let refuse = |model: Inference, options: &OnnxOptions, reason: &str| {
        let message = export(&model, &path, options).unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
    };
    refuse(heated(None), &probabilities, "need a temperature");
    refuse(heated(Some(1e300)), &probabilities, "beyond single precision");
    refuse(large, &half(), "bird");
    assert!(names(folder.path()).is_empty());
    let nowhere = folder.path().join("no such folder/m.onnx");
    assert!(matches!(export(&fine(), &nowhere, &half()), Err(Error::Write { .. })));
}

/// A good file in which one text has been replaced by another of the same length.
fn check(from: &str, to: &str, reason: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    export(&model("relu-random", DIM, 301), &path, &OnnxOptions::default()).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    fs::write(&path, bytes).unwrap();
    let message = read_metadata(&path).unwrap_err().to_string();
    assert!(message.contains(reason), "{message}");
}

#[test]
fn files_of_others_and_damaged_ones_are_told_apart() {
    check("loranpac-onnx", "somebody-else", "not a loranpac-onnx file");
    check("format_version\u{12}\u{1}1", "format_version\u{12}\u{1}2", "is of version 2");
    check("\"name\"", "\"game\"", "its lift cannot be read");
    check("[5,", "[5;", "its labels cannot be read");
    check("temperature\u{12}\u{3}0.1", "temperature\u{12}\u{3}0.0", "temperature");
    check("labels", "format", "twice");
    assert!(matches!(read_metadata(Path::new("no/such/file")), Err(Error::Read(_))));
}

#[test]
fn no_change_of_a_file_makes_reading_its_metadata_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    export(&model("relu-random", 4, 9), &path, &OnnxOptions::default()).unwrap();
    let mut refused = 0;
    mutate(&path, |changed| refused += usize::from(read_metadata(changed).is_err()));
    assert!((500..2000).contains(&refused), "{refused} of 2000");
}
