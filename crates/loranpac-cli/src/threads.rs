//! The number of threads.

use anyhow::{Result, bail};

use crate::words::count;

/// The maximum number of threads: more do not make anything faster, and each takes memory.
const MOST_THREADS: usize = 64;

/// Returns the number of threads that the user chose, or all cores.
pub fn threads(chosen: Option<usize>) -> Result<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let most = MOST_THREADS.max(4 * cores);
    match chosen {
        Some(0) => bail!("--threads 0 is not possible: at least one thread is needed"),
        Some(threads) if threads > most => {
            bail!("--threads {threads} is too many for the {} of this machine: at most {most}", count(cores, "core"))
        }
        Some(threads) => Ok(threads),
        None => Ok(cores),
    }
}
