//! Errors as the exceptions that Python users expect.

use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyValueError};

/// An error of the engine.
pub fn engine(error: loranpac::Error) -> PyErr {
    match error {
        loranpac::Error::Memory(message) => PyMemoryError::new_err(message),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// An error of a model on disk.
pub fn store(error: loranpac_store::Error) -> PyErr {
    use loranpac_store::Error;
    match error {
        Error::Engine(error) => engine(error),
        Error::Read { .. } | Error::Write { .. } | Error::Unsure { .. } => PyOSError::new_err(error.to_string()),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// An error of an experiment.
pub fn eval(error: loranpac_eval::Error) -> PyErr {
    use loranpac_eval::Error;
    use loranpac_eval::error::ArrayProblem;
    match error {
        Error::Engine(error) => engine(error),
        Error::Array { problem: ArrayProblem::Memory(_), .. } => PyMemoryError::new_err(error.to_string()),
        Error::Read { .. } => PyOSError::new_err(error.to_string()),
        other => PyValueError::new_err(other.to_string()),
    }
}
