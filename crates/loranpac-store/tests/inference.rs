//! Inference files: what is written is read back, and whatever is not right is refused.

mod exports;

use std::fs;
use std::path::{Path, PathBuf};

use exports::{labels, learned, model, mutate, samples, scores, with_weights};
use loranpac::lift::LIFTS;
use loranpac::{Features, Label, Width};
use loranpac_store::{Error, Inference, LiftRecord, Precision};
use tempfile::TempDir;

/// Everything that a file holds.
fn parts(model: &Inference) -> (LiftRecord, Vec<Label>, Vec<Vec<f32>>, Option<f64>) {
    let Inference { lift, classifier, .. } = model;
    let weights = classifier.weights().unwrap().columns().map(|column| column.to_vec()).collect();
    (lift.clone(), classifier.labels().to_vec(), weights, classifier.temperature())
}

fn heated(model: Inference, temperature: f64) -> Inference {
    Inference { classifier: model.classifier.with_temperature(Some(temperature)), ..model }
}

fn saved(model: &Inference, precision: Precision) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    model.save(&path, precision).unwrap();
    (folder, path)
}

#[test]
fn single_precision_comes_back_to_the_last_bit() {
    for lift in LIFTS {
        let model = model(lift.name, 24, 301);
        let (_folder, path) = saved(&model, Precision::F32);
        let back = Inference::load(&path).unwrap();
        assert_eq!(parts(&back), parts(&model));
        let x = samples(400, 24, 1e4);
        assert_eq!(scores(&back, &x), scores(&model, &x), "{}", lift.name);
    }
}

#[test]
fn scores_are_those_of_the_learner_to_the_last_bit() {
    let (mut learner, model) = learned(24, 1001);
    let x = samples(500, 24, 1e4);
    assert_eq!(scores(&model, &x), learner.classifier().unwrap().scores(Features::new(&x, 24).unwrap()).unwrap());
}

/// Measured: 8.2e-4 (sigmoid-random) to 1.5e-3 (rvfl) of the sample's largest score, the worst of 400 samples.
#[test]
fn half_precision_scores_are_within_two_thousandths_of_the_largest() {
    for lift in LIFTS {
        let model = model(lift.name, 24, 301);
        let (_folder, path) = saved(&model, Precision::F16);
        let back = Inference::load(&path).unwrap();
        let x = samples(400, 24, 1e4);
        let mut worst = 0.0f32;
        for (found, expected) in scores(&back, &x).rows().zip(scores(&model, &x).rows()) {
            let largest = expected.iter().fold(0.0f32, |most, v| most.max(v.abs()));
            let error = found.iter().zip(expected).fold(0.0f32, |most, (a, b)| most.max((a - b).abs()));
            worst = worst.max(if largest > 0.0 { error / largest } else { error });
        }
        println!("{}: {worst:e}", lift.name);
        assert!(worst < 2e-3, "{}: {worst:e}", lift.name);
        assert!(worst > 0.0, "{}: nothing was rounded", lift.name);
    }
}

#[test]
fn the_same_model_gives_the_same_bytes_and_half_precision_half_the_size() {
    let model = model("relu-random", 24, 3001);
    let [(_a, one), (_b, two), (_c, half)] = [Precision::F32, Precision::F32, Precision::F16].map(|p| saved(&model, p));
    assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&two).unwrap());
    let (whole, half) = (one.metadata().unwrap().len(), half.metadata().unwrap().len());
    assert!((whole - half).abs_diff(2 * 5 * 3001) < 64, "{whole} {half}");
}

/// Other programs see an ordinary safetensors file.
#[test]
fn the_file_is_a_safetensors_file() {
    let model = model("relu-random", 24, 301);
    let (_folder, path) = saved(&model, Precision::F32);
    let bytes = std::fs::read(&path).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let weights = tensors.tensor("weights").unwrap();
    assert_eq!(weights.shape(), [5, 301]);
    assert_eq!(weights.data()[..4], model.classifier.weights().unwrap().of(0)[0].to_le_bytes());
    assert_eq!(weights.data()[4 * 301..][..4], model.classifier.weights().unwrap().of(1)[0].to_le_bytes());
}

/// A file of version 1, written by hand. It must stay readable forever.
#[test]
fn a_file_of_version_one_is_read() {
    let model = r#"{"lift":{"name":"identity","dim":2,"width":2,"seed":0,"gamma":0.1},"labels":[7,"x"],"temperature":0.5,
        "exponent":1,"sha256":"DIGEST"}"#;
    let weights = [1.0f32, -2.0, 0.5, 6.0].map(|v| half::f16::from_f32(v).to_le_bytes()).concat();
    let digest = "6634918def5e953bc65310d3b3c7d75a183d33f3c0133f6f3fab7a52585aea3a";
    let texts = serde_json::json!({
        "__metadata__": {"format": "loranpac-inference", "version": "1", "model": model.replace("DIGEST", digest)},
        "weights": {"dtype": "F16", "shape": [2, 2], "data_offsets": [0, 8]},
    });
    let header = texts.to_string();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.safetensors");
    let size = (header.len() as u64).to_le_bytes();
    std::fs::write(&path, [&size, header.as_bytes(), &weights].concat()).unwrap();
    let lift = LiftRecord { name: "identity".into(), dim: 2, width: Width::Finite(2), seed: 0, gamma: 0.1 };
    // Stored numbers are 2^1 times the weights.
    let expected =
        with_weights(lift, &[Label::from(7), Label::from("x")], |class, i| [[0.5, -1.0], [0.25, 3.0]][class][i]);
    let expected = heated(expected, 0.5);
    assert_eq!(parts(&Inference::load(&path).unwrap()), parts(&expected));
}

#[test]
fn a_model_whose_parts_do_not_fit_is_not_written() {
    let fine = || model("relu-random", 24, 301);
    let lift = |change: fn(&mut LiftRecord)| {
        let mut model = fine();
        change(&mut model.lift);
        model
    };
    let wrong = [
        ("0 labels", with_weights(fine().lift, &[], |_, _| 0.0)),
        ("weights have 301", lift(|lift| lift.width = Width::Finite(300))),
        ("the weight inf", with_weights(fine().lift, &labels(), |_, _| f32::INFINITY)),
        ("temperature", heated(fine(), 0.0)),
        ("temperature", heated(fine(), f64::NAN)),
        ("the lifts are", lift(|lift| lift.name = "relu-randon".into())),
        ("at least one feature", lift(|lift| lift.dim = 0)),
        ("too many", lift(|lift| lift.dim = 1 << 50)),
        ("computes 24 features", lift(|lift| lift.name = "identity".into())),
        ("gamma", lift(|lift| (lift.name, lift.gamma) = ("fourier".into(), -1.0))),
        ("width", lift(|lift| (lift.name, lift.dim) = ("rvfl".into(), 301))),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (reason, model) in wrong {
        let message = model.save(&folder.path().join("m"), Precision::F32).unwrap_err().to_string();
        assert!(message.contains(reason), "{reason}: {message}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn half_precision_refuses_what_it_cannot_hold_by_the_name_of_the_class() {
    let lift = model("relu-random", 24, 301).lift;
    let model = with_weights(lift, &labels(), |class, i| if (class, i) == (1, 17) { 1e5 } else { 1e-5 });
    let folder = tempfile::tempdir().unwrap();
    let refused = model.save(&folder.path().join("m"), Precision::F16);
    assert!(matches!(refused, Err(Error::HalfRange { class, value: 1e5 }) if class == "a \"bird\""));
}

/// One change of a good file, and a part of what is said about it.
fn check(reason: &str, change: impl Fn(&mut Vec<u8>)) {
    let (_folder, path) = saved(&model("relu-random", 24, 301), Precision::F16);
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes);
    std::fs::write(&path, bytes).unwrap();
    let message = Inference::load(&path).unwrap_err().to_string();
    assert!(message.contains(reason), "{reason}: {message}");
}

/// Replaces a text in the header, whatever becomes of its length.
fn replace(bytes: &mut Vec<u8>, from: &str, to: &str) {
    let size = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = String::from_utf8(bytes[8..8 + size].to_vec()).unwrap();
    assert!(header.contains(from), "{header}");
    let header = signed(header.replace(from, to));
    *bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &bytes[8 + size..]].concat();
}

/// A header with the checksum that belongs to its metadata.
fn signed(header: String) -> String {
    use sha2::{Digest, Sha256};
    let Ok(value) = serde_json::from_str::<serde_json::Value>(&header) else { return header };
    let texts = &value["__metadata__"];
    let (Some(model), Some(old)) = (texts["model"].as_str(), texts["sha256"].as_str()) else { return header };
    header.replace(old, &Sha256::digest(model).iter().map(|b| format!("{b:02x}")).collect::<String>())
}

#[test]
fn no_bit_of_the_metadata_can_change_unnoticed() {
    let model = model("relu-random", 24, 31);
    let (_folder, path) = saved(&model, Precision::F16);
    let bytes = fs::read(&path).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for bit in 0..8 * header {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &flipped).unwrap();
        assert!(Inference::load(&path).is_err(), "bit {bit} of {}", 8 * header);
    }
}

#[test]
fn every_way_in_which_a_file_can_be_wrong_is_told() {
    check("it has 3 bytes", |bytes| bytes.truncate(3));
    check("header should have", |bytes| bytes[7] = 0x7f);
    check("header should have", |bytes| bytes.truncate(100));
    check("bytes, but", |bytes| bytes.truncate(bytes.len() - 1));
    check("bytes, but", |bytes| bytes.push(0));
    check("is damaged", |bytes| bytes[8] = b'[');
    check("sha256", |bytes| *bytes.last_mut().unwrap() ^= 1);
    check("not a loranpac-inference file", |bytes| replace(bytes, "loranpac-inference", "something-else"));
    check("is of version 3", |bytes| replace(bytes, r#""version":"2""#, r#""version":"3""#));
    check("its metadata are", |bytes| replace(bytes, r#""version":"2""#, r#""version":"1""#));
    check("one tensor, weights", |bytes| replace(bytes, r#""weights""#, r#""weighty""#));
    check("BF16", |bytes| replace(bytes, r#""F16""#, r#""BF16""#));
    check("is damaged", |bytes| replace(bytes, r#""F16""#, r#""F32""#));
    check("instead of 2", |bytes| replace(bytes, "[5,301]", "[5,301,1]"));
    check("computes 301", |bytes| replace(bytes, "[5,301]", "[301,5]"));
    check("is damaged", |bytes| replace(bytes, "[5,301]", "[4611686018427387904,8]"));
    check("4 labels for 5", |bytes| replace(bytes, r#"[5,\"a"#, r#"[\"a"#));
    check("two classes -1", |bytes| replace(bytes, r#"[5,\"a"#, r#"[-1,\"a"#));
    check("cannot be read", |bytes| replace(bytes, r#"[5,\"a"#, r#"[5.5,\"a"#));
    check("temperature is -0.1", |bytes| replace(bytes, "0.1,", "-0.1,"));
    check("exponent is", |bytes| replace(bytes, r#"exponent\":"#, r#"exponent\":9"#));
    check("the lifts are", |bytes| replace(bytes, "relu-random", "relu-rondom"));
    check("too many", |bytes| replace(bytes, r#"dim\":24"#, r#"dim\":2400000000"#));
    check("at least one feature", |bytes| replace(bytes, r#"dim\":24"#, r#"dim\":0"#));
    check("unknown field", |bytes| replace(bytes, "exponent", "components"));
    let nothing = Inference::load(Path::new("no/such/file"));
    assert!(matches!(nothing, Err(Error::Read(_))));
}

#[test]
fn weights_that_are_not_numbers_are_refused_even_under_a_right_digest() {
    use sha2::{Digest, Sha256};
    let hex = |bytes: &[u8]| Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect::<String>();
    check("the weight NaN", |bytes| {
        let from = bytes.len() - 2 * 5 * 301;
        let before = hex(&bytes[from..]);
        bytes[from..from + 2].copy_from_slice(&half::f16::NAN.to_le_bytes());
        let after = hex(&bytes[from..]);
        replace(bytes, &before, &after);
    });
}

#[test]
fn no_change_of_a_file_makes_reading_it_panic() {
    let model = model("relu-random", 24, 31);
    let (_folder, path) = saved(&model, Precision::F16);
    let mut refused = 0;
    mutate(&path, |changed| refused += usize::from(Inference::load(changed).is_err()));
    assert!(refused > 1900, "{refused} of 2000");
}

#[test]
fn bad_samples_are_refused() {
    let model = model("relu-random", 24, 301);
    let x = samples(3, 24, 1e4);
    assert!(model.classifier.scores(Features::new(&x, 12).unwrap()).is_err());
    assert_eq!(model.classifier.scores(Features::new(&[], 24).unwrap()).unwrap().rows().len(), 0);
}
