//! Every command under a limit of its address space: it succeeds, or refuses with a message. It never aborts, and the model is
//! whole afterwards.
#![cfg(target_os = "linux")]

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::{loranpac, stdout};
use loranpac_store::Manifest;
use loranpac_store::Session;
use loranpac_store::folder::MANIFEST;
use tempfile::TempDir;

/// Calls the program with `ulimit -v`, in kilobytes, on two threads.
fn limited(limit: usize, folder: &Path, command: &str) -> Output {
    let words = command.split(' ').map(|word| word.replace('_', " "));
    Command::new("sh")
        .args(["-c", "ulimit -v $0 && exec \"$@\"", &limit.to_string(), env!("CARGO_BIN_EXE_loranpac")])
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// What every command is called with; a space within a word is written `_`.
const COMMANDS: [&str; 18] = [
    "inspect m.lrp --threads 2",
    "verify m.lrp --threads 2",
    "predict m.lrp d/new.csv --threads 2",
    "predict m.lrp d/new.csv --novelty --threads 2",
    "eval m.lrp d/test.csv --threads 2",
    "calibrate m.lrp d/test.csv --threads 2",
    "learn m.lrp d/week2.csv --quiet --threads 2",
    "unlearn m.lrp d/some.csv --threads 2",
    "relabel m.lrp d/some.csv --to other --threads 2",
    "forget m.lrp digit_3 --threads 2",
    "rename m.lrp digit_3 three",
    "rollback m.lrp",
    "merge m.lrp other.lrp -o merged.lrp --threads 2",
    "export m.lrp out.onnx --threads 2",
    "export m.lrp out.safetensors --threads 2",
    "init new.lrp --like d/week1.csv",
    "run --data digits --method loranpac-soft --width 300 --threads 2",
    "demo --width 300",
];

/// The smallest limit with which the system can load the program at all, in kilobytes.
fn smallest(folder: &Path) -> usize {
    (1..).map(|step| step * 4096).find(|limit| limited(*limit, folder, "--version").status.success()).unwrap()
}

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

#[test]
fn no_command_aborts_however_little_memory_there_is() {
    let place = TempDir::new().unwrap();
    let folder = place.path();
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    stdout(&loranpac(&["demo", "--files", &at("d")]));
    for (model, week) in [("start.lrp", "d/week1.csv"), ("other.lrp", "d/week2.csv")] {
        stdout(&loranpac(&["init", &at(model), "--like", &at(week), "--width", "600"]));
        stdout(&loranpac(&["learn", &at(model), &at(week), "--quiet"]));
    }
    let week = std::fs::read_to_string(folder.join("d/week1.csv")).unwrap();
    std::fs::write(
        folder.join("d/some.csv"),
        week.lines().take(100).map(|line| line.to_owned() + "\n").collect::<String>(),
    )
    .unwrap();
    let start = Manifest::read(&folder.join("start.lrp").join(MANIFEST)).unwrap();
    let model = folder.join("m.lrp");
    let least = smallest(folder);
    // From where nothing fits to where everything does; in between, each command meets its own.
    let limits = [0, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 4096].map(|more| least + 1024 * more);
    let (mut done, mut refused) = (0, 0);
    for limit in limits {
        for command in COMMANDS {
            copy(&folder.join("start.lrp"), &model);
            let _ = std::fs::remove_dir_all(folder.join("merged.lrp"));
            let _ = std::fs::remove_dir_all(folder.join("new.lrp"));
            let output = limited(limit, folder, command);
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            let place = format!("{command} with {limit} KiB: {:?}, {message}", output.status);
            match output.status.code() {
                Some(0) => done += 1,
                Some(1) => {
                    assert!(message.contains("error: "), "{place}");
                    assert_eq!(Manifest::read(&model.join(MANIFEST)).unwrap(), start, "{place}");
                    assert!(limit < limits[12], "there is enough for everything: {place}");
                    refused += 1;
                }
                _ => panic!("{place}"),
            }
            assert!(!message.contains("panicked"), "{place}");
            let damage = Session::verify(&model).unwrap().damage;
            assert!(damage.is_empty(), "{place}: {damage:?}");
        }
    }
    assert!(done >= COMMANDS.len() && refused >= COMMANDS.len(), "{done} done, {refused} refused");
}

#[test]
fn a_lift_beyond_the_limits_is_refused_before_it_is_made() {
    let place = TempDir::new().unwrap();
    let model = place.path().join("m.lrp");
    let model = model.to_str().unwrap();
    common::refused(&["init", model, "--dim", "99999999999"], &["99999999999 features", "too large", "1000000"]);
    common::refused(&["init", model, "--dim", "8", "--width", "99999999999"], &["width 99999999999", "too large"]);
    common::refused(&["init", model, "--dim", "99999999999", "--width", "infinite"], &["too large"]);
    assert!(!Path::new(model).exists());
}

#[test]
fn a_model_that_does_not_fit_is_refused_with_both_sizes() {
    let place = TempDir::new().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    stdout(&loranpac(&["demo", "--files", &at("d")]));
    stdout(&loranpac(&["init", &at("m.lrp"), "--like", &at("d/week1.csv"), "--width", "10000000"]));
    let output = limited(2 << 20, place.path(), "learn m.lrp d/week1.csv --threads 2");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    for words in ["width 10000000 needs about", "GiB are available", "nothing has changed", "--width"] {
        assert!(message.contains(words), "{message}");
    }
}
