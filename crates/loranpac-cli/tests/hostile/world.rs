//! A folder with a model, the files around it, and commands that are run in it under limits.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::ways::edit;

/// Guards against commands that never end; none of them takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(20);
/// Address space of a command in kilobytes: what reads a device without end fails.
const MEMORY: usize = 4 << 20;
/// Files beyond this are compared by their size alone.
const LARGE: u64 = 16 << 20;

/// What a command did.
pub struct Run {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the program in a folder. A command that does not end is killed, and the test fails.
pub fn run(folder: &Path, arguments: &[&str]) -> Run {
    let record = TempDir::new().unwrap();
    let [out, err] = ["out", "err"].map(|name| record.path().join(name));
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_loranpac")])
        .args(arguments)
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if start.elapsed() > PATIENCE => {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    Run { status, stdout: read(&out), stderr: read(&err) }
}

/// What lies at a place, so that two moments can be compared.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    Folder,
    Link(PathBuf),
    Pipe,
    Bytes(Vec<u8>),
    Large(u64),
}

/// Everything below a folder.
pub fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Found> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap();
            let found = if kind.is_symlink() {
                Found::Link(fs::read_link(&path).unwrap())
            } else if kind.is_dir() {
                folders.push(path.clone());
                Found::Folder
            } else if !kind.is_file() {
                Found::Pipe
            } else if kind.len() > LARGE {
                Found::Large(kind.len())
            } else {
                // Empty if this user may not read it.
                Found::Bytes(fs::read(&path).unwrap_or_default())
            };
            all.insert(path.strip_prefix(folder).unwrap().to_owned(), found);
        }
    }
    all
}

/// Copies a folder of folders and files.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().unwrap().is_dir() {
            true => copy(&source, &target),
            false => drop(fs::copy(&source, &target).unwrap()),
        }
    }
}

/// Samples of classes `c<first>` to `c<last>`, four features each.
fn samples(path: &Path, classes: std::ops::Range<i64>, each: i64) {
    let mut text = "a,b,c,d,label\n".to_owned();
    for (row, class) in (0..each).flat_map(|row| classes.clone().map(move |class| (row, class))) {
        let noise = |c: i64| ((row * 7919 + class * 31 + c * 104_729) % 1000) as f32 / 1000.0;
        let x: Vec<String> = (0..4).map(|c| (noise(c) + 3.0 * (c == class % 4) as u8 as f32).to_string()).collect();
        text += &format!("{},c{class}\n", x.join(","));
    }
    fs::write(path, text).unwrap();
}

/// The folder that every case begins with: a model with a past, another to merge it with, samples, and a file that nobody
/// may touch.
pub fn prepare(init: &[&str]) -> TempDir {
    // So few samples at a time that some are evicted where there is a limit.
    let chunk = |place: &Path| edit(&place.join("MANIFEST"), "/config/chunk", "4");
    let place = TempDir::new().unwrap();
    let at = |name: &str| place.path().join(name);
    samples(&at("first.csv"), 0..3, 5);
    samples(&at("second.csv"), 1..5, 3);
    samples(&at("new.csv"), 4..6, 4);
    fs::write(at("victim"), "untouched").unwrap();
    let steps: &[&[&str]] = &[
        &["learn", "m.lrp", "first.csv"],
        &["calibrate", "m.lrp", "first.csv"],
        &["learn", "m.lrp", "second.csv"],
        &["learn", "other.lrp", "new.csv"],
    ];
    let inits = ["m.lrp", "other.lrp"].map(|name| [&["init", name, "--dim", "4"], init].concat());
    let all = |steps: &[&[&str]]| {
        for step in steps {
            let done = run(place.path(), step);
            assert!(done.status.success(), "{step:?}: {}", done.stderr);
        }
    };
    all(&inits.each_ref().map(Vec::as_slice));
    ["m.lrp", "other.lrp"].iter().for_each(|name| chunk(&at(name)));
    all(steps);
    place
}
