//! Every file of the fuzzers' corpus, and everything that they ever found, through the readers; each also changed at
//! random, in the same way every time.

mod archives;
#[path = "../../loranpac-data/tests/files/changes.rs"]
mod changes;
mod made;
mod promises;
mod seeds;

use std::fs;

use changes::{Random, Told, fuzz};
use loranpac_data::fence::is_fenced;
use peak_alloc::PeakAlloc;
use promises::{PROMISES, check};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Changed copies of each file.
const CHANGES: usize = 150;

/// A test of its own for the whole, because memory is counted for the whole process.
#[test]
fn no_file_breaks_a_promise() {
    // A panic of a decoder becomes an error. Printing it takes memory, for a backtrace.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !is_fenced() {
            usual(panic);
        }
    }));
    let folder = tempfile::tempdir().unwrap();
    for promise in PROMISES {
        let paths = changes::seeds(promise.name);
        assert!(!paths.is_empty(), "{} has no corpus", promise.name);
        for path in paths {
            let bytes = fs::read(&path).unwrap();
            let mut random = Random::new(&bytes);
            let told = Told(&path);
            check(&MEMORY, folder.path(), promise.name, &bytes);
            // Without a bound on memory, a changed file could take all of it.
            for _ in 0..if promise.memory.is_some() { CHANGES } else { 0 } {
                check(&MEMORY, folder.path(), promise.name, &random.change(&bytes));
            }
            std::mem::forget(told);
        }
    }
}

/// Writes the corpora anew, but those of images and Parquet (`fuzz/seeds.py`).
/// `cargo test -p loranpac-encode --features parquet --test corpus -- --ignored`
#[test]
#[ignore = "writes files"]
fn write_the_corpus() {
    for (target, name, bytes) in seeds::all() {
        let folder = fuzz().join("corpus").join(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
    }
}
