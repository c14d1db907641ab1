//! What the tests of the command line share: calling it, and data to call it on.
#![allow(dead_code)] // Not every test file uses everything.

#[path = "../../../loranpac-data/tests/npy/mod.rs"]
mod array;
pub mod raw;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// Calls the program.
pub fn loranpac(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loranpac")).args(arguments).output().unwrap()
}

/// Calls the program, and kills it after a random share of a time, the next that `random` gives. Returns whether it had finished before.
pub fn killed(arguments: &[String], random: &mut u64, most: Duration) -> bool {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let moment = most.mul_f64((*random >> 40) as f64 / (1u64 << 24) as f64);
    let mut child = Command::new(env!("CARGO_BIN_EXE_loranpac"))
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(moment.min(Duration::from_secs(5)));
    let _ = child.kill();
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    let done = output.status.success();
    assert!(done || output.status.code().is_none(), "neither finished nor killed: {message}");
    done
}

/// What it printed, if it succeeded.
pub fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A refused command: its message, on standard error, with nothing on standard output.
#[track_caller]
pub fn refused(arguments: &[&str], words: &[&str]) {
    let output = loranpac(arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{message}");
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    assert!(!message.contains("panicked"), "{message}");
}

/// An array in npy format.
pub fn npy(path: &Path, descr: &str, shape: &str, data: Vec<u8>) {
    std::fs::write(path, array::npy(descr, false, shape, &data)).unwrap();
}

/// A folder with six well separated classes in five dimensions: 12 training and 4 test samples of each.
pub fn data() -> TempDir {
    let folder = TempDir::new().unwrap();
    for (half, each) in [("train", 12i64), ("test", 4)] {
        let rows = 6 * each;
        let value = |row: i64, column: i64| {
            let class = row % 6;
            let noise = ((row * 7919 + column * 104_729 + each) % 1000) as f32 / 1000.0 - 0.5;
            let centre = if column == class % 5 {
                3.0
            } else if class == 5 {
                -1.0
            } else {
                0.0
            };
            centre + 0.4 * noise
        };
        let x = (0..rows).flat_map(|r| (0..5).flat_map(move |c| value(r, c).to_le_bytes())).collect();
        npy(&folder.path().join(format!("x_{half}.npy")), "<f4", &format!("({rows}, 5)"), x);
        let y = (0..rows).flat_map(|r| (r % 6 + 10).to_le_bytes()).collect();
        npy(&folder.path().join(format!("y_{half}.npy")), "<i8", &format!("({rows},)"), y);
    }
    folder
}

/// What it printed, as JSON.
pub fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&stdout(&loranpac(arguments))).unwrap()
}

/// Returns the score of each class, for each sample in a file.
pub fn scores(model: &str, file: &str) -> Vec<f64> {
    let text = stdout(&loranpac(&["predict", model, file, "--scores", "--to", "jsonl"]));
    let rows = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    rows.flat_map(|row| row["scores"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect::<Vec<_>>())
        .collect()
}
