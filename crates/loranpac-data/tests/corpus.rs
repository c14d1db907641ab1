//! Every file of the fuzzers' corpus, and everything that they ever found, through the readers; each also changed at
//! random, in the same way every time.

#[path = "files/changes.rs"]
mod changes;
mod files;
#[path = "files/promises.rs"]
mod promises;

use changes::{Random, Told, fuzz, seeds};
use loranpac_data::formats::FORMATS;

/// Changed copies of each file.
const CHANGES: usize = 2_000;

/// A test of its own for the whole, because memory is counted for the whole process.
#[test]
fn no_file_makes_a_reader_panic_or_take_too_much_memory() {
    // A panic of the Parquet decoder becomes an error of the reader. Printing it takes memory, for a backtrace.
    #[cfg(feature = "parquet")]
    {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !loranpac_data::fence::is_fenced() {
                usual(panic);
            }
        }));
    }
    for format in FORMATS.iter().map(|format| format.name()) {
        let paths = seeds(format);
        assert!(!paths.is_empty() || format == "tsv", "{format} has no corpus");
        for path in paths {
            let bytes = std::fs::read(&path).unwrap();
            let mut random = Random::new(&bytes);
            let told = Told(&path);
            promises::check(format, &bytes);
            for _ in 0..CHANGES {
                promises::check(format, &random.change(&bytes));
            }
            std::mem::forget(told);
        }
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
