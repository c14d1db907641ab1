//! A folder in which `loranpac embed` is called, with a limit on memory and an output file that must not change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The most memory of a command: its address space in KiB, the program and its threads included.
const LIMIT: usize = 2 << 20;
/// What the output file has before a command.
const BEFORE: &[u8] = b"written before";

/// A folder of inputs and encoders.
pub struct World(TempDir);

impl World {
    /// A folder with an output file.
    pub fn new() -> World {
        let world = World(TempDir::new().unwrap());
        world.write("out.npz", BEFORE);
        world
    }

    /// A path in the folder.
    pub fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and the folders of its name.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Calls `embed ENCODER INPUT -o out.npz` with further arguments.
    pub fn embed(&self, encoder: &str, input: &str, more: &[&str]) -> Output {
        let arguments = ["embed", encoder, input, "-o", "out.npz", "--no-cache", "--threads", "2"];
        self.call(&[&arguments[..], more].concat())
    }

    /// Calls a command, which succeeds or refuses within the limit.
    pub fn call(&self, arguments: &[&str]) -> Output {
        let output = Command::new("sh")
            .args(["-c", "ulimit -v $0 && exec \"$@\"", &LIMIT.to_string(), env!("CARGO_BIN_EXE_loranpac")])
            .args(arguments)
            .current_dir(self.0.path())
            .output()
            .unwrap();
        let message = message(&output);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}: {message}", output.status);
        assert!(!message.contains("panicked") && !message.contains("out of memory"), "{message}");
        output
    }

    /// A command that is refused with all of these words, and changes nothing.
    #[track_caller]
    pub fn refused(&self, encoder: &str, input: &str, words: &[&str]) {
        let output = self.embed(encoder, input, &[]);
        let message = message(&output);
        assert_eq!(output.status.code(), Some(1), "{input} is accepted: {message}");
        assert!(output.stdout.is_empty() && message.starts_with("error: "), "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{words:?}: {message}");
        assert!(fs::read(self.at("out.npz")).unwrap() == BEFORE, "the output has changed");
        assert!(message.len() < 2_000 && message.lines().count() == 1, "{message}");
    }

    /// A command that succeeds. Gives what it prints to standard error.
    #[track_caller]
    pub fn accepted(&self, encoder: &str, input: &str, more: &[&str]) -> String {
        let output = self.embed(encoder, input, more);
        let message = message(&output);
        assert_eq!(output.status.code(), Some(0), "{input}: {message}");
        assert!(fs::read(self.at("out.npz")).unwrap() != BEFORE);
        self.write("out.npz", BEFORE);
        message
    }

    /// With `--skip-bad`, exactly these inputs are skipped, each with a reason.
    #[track_caller]
    pub fn skips(&self, encoder: &str, input: &str, names: &[&str]) {
        let message = self.accepted(encoder, input, &["--skip-bad"]);
        let mut skipped: Vec<&str> = message.lines().filter_map(|line| line.strip_prefix("skipped: ")).collect();
        skipped.sort_unstable();
        let mut names = names.to_vec();
        names.sort_unstable();
        assert_eq!(skipped.len(), names.len(), "{names:?}: {message}");
        for (line, name) in skipped.iter().zip(names) {
            assert!(line.contains(name) && line.contains(": "), "{name}: {line}");
        }
    }
}

/// What a command prints to standard error.
pub fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file of a fuzzer's corpus.
pub fn seed(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name)).unwrap()
}
