//! Every file of the fuzzers' corpus, and everything that they ever found, through the readers; each also changed at
//! random, in the same way every time.

mod files;
#[path = "files/promises.rs"]
mod promises;

use std::path::{Path, PathBuf};

use loranpac_data::formats::FORMATS;

/// Changed copies of each file.
const CHANGES: usize = 2_000;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The files of a folder, in the order of their names.
fn files_of(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = folder.read_dir().into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// A test of its own for the whole, because memory is counted for the whole process.
#[test]
fn no_file_makes_a_reader_panic_or_take_too_much_memory() {
    // A panic of the Parquet decoder becomes an error of the reader. Printing it takes memory, for a backtrace.
    #[cfg(feature = "parquet")]
    {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !loranpac_data::formats::is_decoding() {
                usual(panic);
            }
        }));
    }
    for format in FORMATS.iter().map(|format| format.name()) {
        let folders = ["corpus", "regressions"].map(|folder| fuzz().join(folder).join(format));
        let paths: Vec<PathBuf> = folders.iter().flat_map(|folder| files_of(folder)).collect();
        assert!(!paths.is_empty() || format == "tsv", "{format} has no corpus");
        for path in paths {
            let bytes = std::fs::read(&path).unwrap();
            let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ bytes.len() as u64);
            let told = Told(&path);
            promises::check(format, &bytes);
            for _ in 0..CHANGES {
                promises::check(format, &random.change(&bytes));
            }
            std::mem::forget(told);
        }
    }
}

/// Says which file it was when a test panics.
struct Told<'a>(&'a Path);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        eprintln!("it was {}", self.0.display());
    }
}

/// Writes the corpus anew: every file whole, cut in half, and with one bit turned.
/// `cargo test -p loranpac-data --features parquet --test corpus -- --ignored`
#[test]
#[ignore = "writes files"]
fn write_the_corpus() {
    for (format, name, bytes) in files::all() {
        let folder = fuzz().join("corpus").join(format);
        std::fs::create_dir_all(&folder).unwrap();
        let write = |kind: &str, bytes: &[u8]| std::fs::write(folder.join(format!("{name}-{kind}")), bytes).unwrap();
        write("whole", &bytes);
        write("cut", &bytes[..bytes.len() / 2]);
        let mut flipped = bytes.clone();
        let at = flipped.len() * 2 / 3;
        flipped[at] ^= 4;
        write("flipped", &flipped);
    }
}

/// Xorshift: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    /// A copy with one to four changes.
    fn change(&mut self, bytes: &[u8]) -> Vec<u8> {
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
