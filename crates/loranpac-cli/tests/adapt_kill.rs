//! `loranpac adapt` is killed again and again, at any moment, and its file is the same in the end.
//!
//! 60 kills by default; `LORANPAC_KILLS=10000 cargo test --release -p loranpac-cli --test adapt_kill -- --nocapture` for more.

mod common;

use std::fs;
use std::time::Instant;

use common::raw::{images, vit};
use common::{killed, loranpac, stdout};
use tempfile::TempDir;

#[test]
fn training_survives_being_killed_at_any_moment() {
    let wanted: usize = std::env::var("LORANPAC_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let folder = TempDir::new().unwrap();
    vit(&folder.path().join("vit"), 1);
    images(folder.path());
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let words = |file: &str| -> Vec<String> {
        let [encoder, photos, file] = [place("vit"), place("photos"), place(file)];
        let fixed = ["--epochs", "12", "--batch", "2", "--held-out", "2", "--patience", "0", "--quiet"];
        let given = ["adapt", &encoder, &photos, "-o", &file, "--threads", "1"];
        given.iter().chain(&fixed).map(|word| (*word).to_owned()).collect()
    };
    let clock = Instant::now();
    stdout(&loranpac(&words("whole.safetensors").iter().map(String::as_str).collect::<Vec<_>>()));
    let whole_time = clock.elapsed();
    let expected = fs::read(place("whole.safetensors")).unwrap();

    let (mut kills, mut finished, mut random) = (0, 0, 1u64);
    while kills < wanted {
        let done = killed(&words("out/a.safetensors"), &mut random, whole_time.mul_f64(0.9));
        kills += usize::from(!done);
        let file = out.join("a.safetensors");
        if file.exists() {
            assert!(fs::read(&file).unwrap() == expected, "after {kills} kills the file differs");
        }
        if done {
            finished += 1;
            let left: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(left, ["a.safetensors"], "nothing is left beside the file");
            fs::remove_file(&file).unwrap();
        }
    }
    stdout(&loranpac(&words("out/a.safetensors").iter().map(String::as_str).collect::<Vec<_>>()));
    assert!(fs::read(out.join("a.safetensors")).unwrap() == expected);
    println!("{kills} kills, {finished} trainings finished in spite of them, all files the same to the byte");
}
