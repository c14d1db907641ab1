//! The files of the fuzzers' corpus and what they found, and random changes of bytes. Tests of several crates share this
//! file.

use std::path::{Path, PathBuf};

/// The folder of the fuzzers.
pub fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The corpus of a target and what it found, in the order of their names.
pub fn seeds(target: &str) -> Vec<PathBuf> {
    let folders = ["corpus", "regressions"].map(|folder| fuzz().join(folder).join(target));
    folders.iter().flat_map(|folder| files_of(folder)).collect()
}

/// The files of a folder, in the order of their names.
fn files_of(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = folder.read_dir().into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Says which file it was when a test panics.
pub struct Told<'a>(pub &'a Path);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        eprintln!("it was {}", self.0.display());
    }
}

/// Xorshift: the same numbers on every machine.
pub struct Random(u64);

impl Random {
    /// Begins with a number that the bytes determine.
    pub fn new(bytes: &[u8]) -> Random {
        Random(0x9e37_79b9_7f4a_7c15 ^ bytes.len() as u64)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    /// A copy with one to four changes.
    pub fn change(&mut self, bytes: &[u8]) -> Vec<u8> {
        const TELLING: [u8; 12] = [0, 1, 2, 127, 128, 254, 255, b'"', b',', b'\n', b'9', b'-'];
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            let some = self.below(9).min(bytes.len() - at);
            match self.below(6) {
                _ if bytes.is_empty() => bytes.push(self.below(256) as u8),
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = TELLING[self.below(TELLING.len())],
                2 => bytes[at..at + some].fill(TELLING[self.below(TELLING.len())]),
                3 => drop(bytes.drain(at..at + some)),
                4 => {
                    let from = self.below(bytes.len() - some + 1);
                    let piece = bytes[from..from + some].to_vec();
                    bytes.splice(at..at, piece);
                }
                _ => bytes.truncate(at),
            }
        }
        bytes
    }
}
