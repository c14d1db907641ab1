//! `loranpac embed`: raw inputs become the same feature file every time, whatever happens in between.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::raw::{images, texts};
use common::{loranpac, refused, stdout};
use tempfile::TempDir;

/// Arguments of `embed` with a cache in the folder.
fn embed<'a>(encoder: &'a str, input: &'a str, out: &'a str, cache: &'a str) -> Vec<&'a str> {
    vec!["embed", encoder, input, "-o", out, "--cache", cache]
}

#[test]
fn texts_become_features_that_a_model_learns() {
    let folder = TempDir::new().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (table, out, cache) = (texts(folder.path(), 150), place("tickets.npz"), place("cache"));
    let first = stdout(&loranpac(&embed("text-ngrams", &table, &out, &cache)));
    assert!(first.contains("150 samples of 2048 features, 150 encoded"), "{first}");
    let bytes = fs::read(&out).unwrap();
    let again = stdout(&loranpac(&embed("text-ngrams", &table, &out, &cache)));
    assert!(again.contains("0 encoded") && again.contains("150 from the cache"), "{again}");
    assert_eq!(fs::read(&out).unwrap(), bytes, "the cache changes nothing");
    stdout(&loranpac(&["embed", "text-ngrams", &table, "-o", &out, "--no-cache"]));
    assert_eq!(fs::read(&out).unwrap(), bytes);
    let model = place("tickets.lrp");
    stdout(&loranpac(&["init", &model, "--like", &out, "--width", "300"]));
    stdout(&loranpac(&["learn", &model, &out]));
    let accuracy = stdout(&loranpac(&["eval", &model, &out, "--json"]));
    let accuracy: serde_json::Value = serde_json::from_str(&accuracy).unwrap();
    assert!(accuracy["accuracy"].as_f64().unwrap() > 95.0, "{accuracy}");
}

#[test]
fn images_in_folders_become_features_with_labels_and_splits() {
    let folder = TempDir::new().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (photos, out, cache) = (images(folder.path()), place("photos.npz"), place("cache"));
    let photos = photos.display().to_string();
    let words = stdout(&loranpac(&embed("image-basic", &photos, &out, &cache)));
    assert!(words.contains("12 samples"), "{words}");
    let words = stdout(&loranpac(&["run", "--data", &out, "--method", "simplecil", "--inc", "1", "--json"]));
    let runs: serde_json::Value = serde_json::from_str(&words).unwrap();
    assert_eq!((&runs["runs"][0]["dataset"]["train"], &runs["runs"][0]["dataset"]["test"]), (&8.into(), &4.into()));
    assert_eq!(runs["runs"][0]["final_accuracy"], 100.0, "red and green are different");
}

#[test]
fn a_bad_image_is_named_or_skipped() {
    let folder = TempDir::new().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let photos = images(folder.path());
    let bad = photos.join("train/red/1.bmp");
    let whole = fs::read(&bad).unwrap();
    fs::write(&bad, &whole[..whole.len() / 2]).unwrap();
    let (photos, out, cache) = (photos.display().to_string(), place("photos.npz"), place("cache"));
    let arguments = embed("image-basic", &photos, &out, &cache);
    refused(&arguments, &["train/red/1.bmp", "truncated"]);
    assert!(!Path::new(&out).exists());
    let output = loranpac(&[&arguments[..], &["--skip-bad", "--json"]].concat());
    assert!(String::from_utf8_lossy(&output.stderr).contains("photos/train/red/1.bmp"));
    let found: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&found["samples"], found["skipped"].as_array().unwrap().len()), (&11.into(), 1));
}

#[test]
fn wrong_inputs_and_encoders_are_refused_with_advice() {
    let folder = TempDir::new().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (table, out, cache) = (texts(folder.path(), 6), place("out.npz"), place("cache"));
    refused(&embed("text-magic", &table, &out, &cache), &["text-magic", "text-ngrams", "model.safetensors"]);
    refused(&embed("image-basic", &table, &out, &cache), &["tickets.csv"]);
    refused(&embed("text-ngrams", &place("nothing.csv"), &out, &cache), &["nothing.csv"]);
    refused(&embed("text-ngrams", &table, &place("out.csv"), &cache), &["out.csv", ".npz"]);
    let layers = [&embed("text-ngrams", &table, &out, &cache)[..], &["--layers", "3"]].concat();
    refused(&layers, &["layers 0 to 0, not 3"]);
    fs::write(place("latin.csv"), b"text,label\ncaf\xe9,a\n").unwrap();
    refused(&embed("text-ngrams", &place("latin.csv"), &out, &cache), &["latin.csv", "line 2", "UTF-8"]);
}

#[test]
fn splits_and_labels_are_not_mixed_up() {
    let folder = TempDir::new().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (out, cache) = (place("out.npz"), place("cache"));
    fs::write(place("split.csv"), "text,label,split\na b,1,train\nc d,2,train\ne f,1,test\ng h,other,test\n").unwrap();
    fs::write(place("plain.csv"), "text,label\nx y,1\n").unwrap();
    refused(
        &["embed", "text-ngrams", &place("plain.csv"), &place("split.csv"), "-o", &out, "--cache", &cache],
        &["no split, but other inputs have one"],
    );
    // 1 is a text in the test split, because another label there is one: it is a text in the training split, too.
    stdout(&loranpac(&embed("text-ngrams", &place("split.csv"), &out, &cache)));
    let runs = stdout(&loranpac(&["run", "--data", &out, "--method", "simplecil", "--scenario", "joint", "--json"]));
    let runs: serde_json::Value = serde_json::from_str(&runs).unwrap();
    assert_eq!(runs["runs"][0]["dataset"]["classes"], 3, "{runs}");
    refused(&embed("text-ngrams", &place("split.csv"), &place("missing/out.npz"), &cache), &["folder does not exist"]);
    let long = format!("text,label\na,{}\n", "x".repeat(5_000));
    fs::write(place("long.csv"), long).unwrap();
    refused(&embed("text-ngrams", &place("long.csv"), &out, &cache), &["longer than 4096 bytes"]);
}

/// LORANPAC_KILLS is the number of kills; the file must be the same to the byte after all of them.
#[test]
fn a_killed_embed_resumes_and_writes_the_same_file() {
    let kills: usize = std::env::var("LORANPAC_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    let folder = TempDir::new().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let table = texts(folder.path(), 3_000);
    let out = place("whole.npz");
    stdout(&loranpac(&["embed", "text-ngrams", &table, "-o", &out, "--no-cache"]));
    let whole = fs::read(&out).unwrap();
    let (out, mut killed, mut random) = (place("out.npz"), 0, 88_172_645_463_325_252u64);
    for round in 0.. {
        let cache = place(&format!("cache{round}"));
        let mut finished = false;
        while !finished {
            let mut child = Command::new(env!("CARGO_BIN_EXE_loranpac"))
                .args(embed("text-ngrams", &table, &out, &cache))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            std::thread::sleep(Duration::from_millis(random % 400));
            child.kill().unwrap();
            finished = child.wait().unwrap().success();
            killed += usize::from(!finished);
            assert!(!Path::new(&out).exists() || fs::read(&out).unwrap() == whole, "half a file, or another one");
        }
        assert_eq!(fs::read(&out).unwrap(), whole);
        fs::remove_file(&out).unwrap();
        if killed >= kills {
            break;
        }
    }
    println!("{killed} kills, all the same to the byte");
}
