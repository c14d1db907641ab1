//! Work without the interpreter lock, on a chosen number of threads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Pools by process and size: estimators with the same number of threads share a pool. A forked process does not have the
/// threads of its parent and needs its own pools.
static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

type Pools = HashMap<(u32, usize), Arc<ThreadPool>>;

/// Runs work on `threads` threads (0: all cores) without the interpreter lock.
pub fn detached<T: Send>(py: Python<'_>, threads: usize, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let pool = pool(threads)?;
    Ok(py.detach(|| pool.install(work)))
}

fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let pools = pools.get_or_insert_default();
    let key = (std::process::id(), threads);
    if let Some(pool) = pools.get(&key) {
        return Ok(pool.clone());
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = Arc::new(pool.map_err(|e| PyValueError::new_err(format!("n_jobs: {e}")))?);
    pools.insert(key, pool.clone());
    Ok(pool)
}
