//! The engine as a Python extension, `loranpac._engine`. It is thin: it takes C-order float32 arrays or raw inputs, and
//! labels as indices into a list; it returns facts as JSON. The public interface is in `python/loranpac`.

mod adapt;
mod bench;
mod encoder;
mod errors;
mod inputs;
mod learner;
mod models;
mod samples;
mod shared;
mod state;
mod threads;

use std::ffi::OsString;

use pyo3::prelude::*;

/// The command line; returns the exit code.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| loranpac_cli::main(arguments))
}

#[pymodule]
mod _engine {
    #[pymodule_export]
    use super::command;
    #[pymodule_export]
    use crate::adapt::adapt;
    #[pymodule_export]
    use crate::bench::{list_settings, methods, run};
    #[pymodule_export]
    use crate::encoder::{Encoder, find_adapter, is_encoder};
    #[pymodule_export]
    use crate::learner::Learner;
    #[pymodule_export]
    use crate::models::{auto_width, drop_history, history, keep_versions, merge_models, rollback, verify};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    const GAMMA: f64 = loranpac::lift::DEFAULT_GAMMA;
    #[pymodule_export]
    const CAP: usize = loranpac::Config::cap(loranpac::Width::Finite(1));
    #[pymodule_export]
    const SAMPLE_CAP: usize = loranpac::Config::cap(loranpac::Width::Infinite);
    #[pymodule_export]
    const UNCALIBRATED: f64 = loranpac::UNCALIBRATED;
}
