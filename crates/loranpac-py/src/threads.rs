//! Work without the interpreter lock, on a chosen number of threads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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

/// How often signals are looked for while other threads work.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs work on `threads` threads, and calls `each` on this one for every message that it sends. An exception of `each`, or
/// an interrupt, sets `stop`, and is returned beside the result when the work has ended.
pub fn watched<T: Send, M: Send>(
    py: Python<'_>,
    threads: usize,
    stop: &AtomicBool,
    work: impl FnOnce(Sender<M>) -> T + Send,
    mut each: impl FnMut(M) -> PyResult<()>,
) -> PyResult<(T, PyResult<()>)> {
    let pool = pool(threads)?;
    let (sender, receiver) = channel();
    // Only one thread receives, but without the interpreter lock.
    let receiver = Mutex::new(receiver);
    let mut raised = Ok(());
    let done = std::thread::scope(|scope| {
        let worker = scope.spawn(|| pool.install(|| work(sender)));
        loop {
            let next = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PATIENCE);
            let found = match py.detach(next) {
                Ok(message) => py.check_signals().and_then(|()| each(message)),
                Err(RecvTimeoutError::Timeout) => py.check_signals(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if raised.is_ok() && found.is_err() {
                stop.store(true, Ordering::Relaxed);
                raised = found;
            }
        }
        py.detach(|| worker.join())
    });
    // A panic continues on this thread.
    let done = done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    Ok((done, raised))
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
