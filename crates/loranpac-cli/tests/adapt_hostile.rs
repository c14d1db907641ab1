//! `loranpac adapt` with inputs, outputs and checkpoints that cannot be used: a message, an exit code, and nothing lost.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::raw::{Place, bitmap, images, vit};
use loranpac_data::atomic::{AtomicFile, hidden};

struct World(Place);

impl World {
    fn new() -> World {
        let place = Place::new();
        vit(&place.path().join("vit"), 1);
        images(place.path());
        fs::create_dir(place.path().join("out")).unwrap();
        World(place)
    }

    /// Arguments of `adapt` for some inputs, with few epochs.
    fn words(&self, inputs: &str, more: &[&str]) -> Vec<String> {
        let [encoder, inputs, out] = [self.0.at("vit"), self.0.at(inputs), self.out().display().to_string()];
        let words = ["adapt", &encoder, &inputs, "-o", &out, "--epochs", "2", "--batch", "3", "--held-out", "2"];
        words.iter().chain(more).map(|word| (*word).to_owned()).collect()
    }

    fn out(&self) -> std::path::PathBuf {
        self.0.path().join("out").join("a.safetensors")
    }

    /// What is in the folder of the output.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path().join("out")).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[track_caller]
    fn refused(&self, inputs: &str, more: &[&str], expected: &[&str]) {
        let words = self.words(inputs, more);
        let before = self.left();
        self.0.refused(&words.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        assert_eq!(self.left(), before);
    }

    #[track_caller]
    fn accepted(&self, inputs: &str, more: &[&str]) -> String {
        let words = self.words(inputs, more);
        let output = self.0.call(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{stderr}");
        stderr + &String::from_utf8_lossy(&output.stdout)
    }
}

#[test]
fn few_samples_are_refused_or_trained_on() {
    let world = World::new();
    let [one, pair, same] = ["one", "pair", "same"].map(|name| world.0.path().join(name));
    bitmap(&one.join("red/1.bmp"), [0, 0, 200], 3);
    for class in ["red", "green"] {
        bitmap(&pair.join(class).join("1.bmp"), [0, 90, 200], 3);
    }
    (1..5).for_each(|number| bitmap(&same.join(format!("red/{number}.bmp")), [0, 0, 200], number));
    world.refused("one", &[], &["samples of two classes or more, and there is 1 sample of 1 class"]);
    world.refused("same", &[], &["there are 4 samples of 1 class"]);
    // One sample per class: none can be held out.
    let words = world.accepted("pair", &[]);
    assert!(words.contains("no samples were held out, so it is not known whether adaptation helps"), "{words}");
    assert_eq!(world.left(), ["a.safetensors"]);
    let words = world.accepted("pair", &["--only-if-better"]);
    assert!(words.contains("not written"), "{words}");
}

#[test]
fn an_image_that_cannot_be_read_is_named_or_skipped() {
    let world = World::new();
    let bad = world.0.path().join("photos/train/red/bad.png");
    fs::write(&bad, b"\x89PNG\r\n\x1a\n damaged").unwrap();
    world.refused("photos", &[], &["bad.png"]);
    let words = world.accepted("photos", &["--skip-bad"]);
    assert!(
        words.contains("skipped: ")
            && words.contains("bad.png")
            && words.contains("4 samples of 2 classes to train on, 4 held out"),
        "{words}"
    );
    fs::write(&bad, b"").unwrap();
    world.refused("photos", &[], &["bad.png", "empty"]);
}

#[test]
fn a_rate_that_is_too_high_ends_with_the_rate_to_lower() {
    let world = World::new();
    fs::write(world.out(), "an earlier file").unwrap();
    world.refused(
        "photos",
        &["--rate", "1e38", "--module", "ssf"],
        &["is not finite, even at a rate of", "lower --rate"],
    );
    assert_eq!(fs::read(world.out()).unwrap(), b"an earlier file", "the file that was there stays");
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_training() {
    let world = World::new();
    let out = world.out();
    // Another process writes the file.
    let held = AtomicFile::create(&out).unwrap();
    let words = world.words("photos", &[]);
    let output = world.0.call(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(message.contains("it is being written by another process") && !message.contains("measuring"), "{message}");
    drop(held);
    assert!(world.left().is_empty());
    fs::create_dir(&out).unwrap();
    world.refused("photos", &[], &["cannot write", "not a regular file"]);
    fs::remove_dir(&out).unwrap();
    if Path::new("/proc/self").exists() {
        let (encoder, photos) = (world.0.at("vit"), world.0.at("photos"));
        let output = world.0.call(&["adapt", &encoder, &photos, "-o", "/proc/a.safetensors"]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{message}");
        assert!(message.contains("cannot write /proc/a.safetensors") && !message.contains("measuring"), "{message}");
    }
}

/// A limit on the size of files stands for a full disk.
#[cfg(unix)]
#[test]
fn a_disk_that_is_full_loses_nothing() {
    let world = World::new();
    let words = world.words("photos", &["--module", "vpt-shallow"]);
    world.accepted("photos", &["--module", "vpt-shallow"]);
    let expected = fs::read(world.out()).unwrap();
    fs::write(world.out(), "an earlier file").unwrap();
    // In blocks of 512 bytes: too few for a checkpoint.
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let program = env!("CARGO_BIN_EXE_loranpac");
    let output = Command::new("sh").args(["-c", script, program]).args(&words).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(message.contains("cannot write") && !message.contains("panicked"), "{message}");
    assert_eq!(fs::read(world.out()).unwrap(), b"an earlier file");
    world.accepted("photos", &["--module", "vpt-shallow"]);
    assert!(fs::read(world.out()).unwrap() == expected && world.left() == ["a.safetensors"]);
}

#[test]
fn a_checkpoint_that_is_not_one_is_reported_and_replaced() {
    let world = World::new();
    world.accepted("photos", &[]);
    let expected = fs::read(world.out()).unwrap();
    let checkpoint = hidden(&world.out(), "checkpoint").unwrap();
    for bytes in [&b"not a checkpoint"[..], b"", &expected] {
        fs::write(&checkpoint, bytes).unwrap();
        let words = world.accepted("photos", &[]);
        assert!(words.contains("belongs to another training, or is damaged: it is not used"), "{words}");
        assert!(fs::read(world.out()).unwrap() == expected && world.left() == ["a.safetensors"]);
    }
    fs::create_dir(&checkpoint).unwrap();
    let words = world.words("photos", &[]);
    let output = world.0.call(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(message.contains("checkpoint: it is not a regular file"), "{message}");
    assert!(fs::read(world.out()).unwrap() == expected);
}

#[test]
fn an_existing_adapter_is_replaced_and_json_has_everything() {
    let world = World::new();
    fs::write(world.out(), "an earlier file").unwrap();
    let words = world.words("photos", &["--json", "--quiet"]);
    let found = world.0.say(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    for key in
        ["encoder", "digest", "settings", "parameters", "outcome", "helps", "epochs", "halved", "written", "seconds"]
    {
        assert!(!found[key].is_null(), "{key}: {found}");
    }
    assert_eq!(found["epochs"].as_array().unwrap().len(), 2);
    assert_eq!(found["out"], world.out().display().to_string());
    assert!(fs::read(world.out()).unwrap().len() > 1000);
}
