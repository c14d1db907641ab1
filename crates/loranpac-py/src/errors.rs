//! Errors as Python exceptions. Messages escape control characters of labels and paths.

use std::fmt::Display;
use std::io;

use loranpac::registry::METHODS;
use loranpac_bench::settings::{self, spell};
use loranpac_data::text::escape;
use pyo3::exceptions::{
    PyConnectionError, PyFileNotFoundError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyTypeError, PyValueError,
};
use pyo3::{PyErr, Python};

/// An error of the engine. Settings are named by their keywords.
pub fn engine(error: loranpac::Error) -> PyErr {
    match error {
        loranpac::Error::Setting { name, value: given, reason } => {
            let keyword = keyword(name).unwrap_or_else(|| name.replace('-', "_"));
            value(format!("{keyword}={given} is not possible: {reason}"))
        }
        loranpac::Error::Memory(message) => PyMemoryError::new_err(shown(message)),
        other => value(other),
    }
}

/// An error of a model on disk.
pub fn store(error: loranpac_store::Error) -> PyErr {
    use loranpac_store::Error;
    match error {
        Error::Engine(error) => engine(error),
        Error::Read(_) | Error::Write { .. } | Error::NotDurable { .. } => PyOSError::new_err(shown(error)),
        other => value(other),
    }
}

/// An error of an experiment.
pub fn bench(error: loranpac_bench::Error) -> PyErr {
    use loranpac_bench::Error;
    use loranpac_data::error::{ArrayProblem, Error as DataError};
    match error {
        Error::Engine(error) => engine(error),
        Error::Data(DataError::Engine(error)) => engine(error),
        Error::Data(DataError::Array { problem: ArrayProblem::Memory(_), .. }) => PyMemoryError::new_err(shown(error)),
        Error::Read(_) | Error::Data(DataError::Read(_)) => PyOSError::new_err(shown(error)),
        other => value(other),
    }
}

/// An error of an encoder or of its inputs.
pub fn encode(error: loranpac_encode::Error) -> PyErr {
    use loranpac_encode::Error;
    match &error {
        Error::Read { source, .. } | Error::Cache { source, .. } | Error::Write { source, .. } => {
            io(source.kind(), error)
        }
        Error::Engine(loranpac::Error::Memory(_)) => PyMemoryError::new_err(shown(error)),
        Error::NotFound { .. } | Error::AdapterNotFound { .. } => PyFileNotFoundError::new_err(shown(error)),
        Error::ServerInModel { .. } => value(format!("{error}: load(path, encoder=...)")),
        Error::Server { .. } => PyConnectionError::new_err(shown(error)),
        Error::Modality { .. } => PyTypeError::new_err(shown(error)),
        _ => value(error),
    }
}

/// An error of the system, as the exception of its kind.
pub fn io(kind: io::ErrorKind, message: impl Display) -> PyErr {
    io::Error::new(kind, shown(message)).into()
}

/// An error about an invalid value.
pub fn value(error: impl Display) -> PyErr {
    PyValueError::new_err(shown(error))
}

/// An interrupt with words about what was done until then; other exceptions unchanged.
pub fn interrupt(py: Python<'_>, error: PyErr, words: impl FnOnce() -> String) -> PyErr {
    if !error.is_instance_of::<PyKeyboardInterrupt>(py) {
        return error;
    }
    let interrupt = PyKeyboardInterrupt::new_err(words());
    interrupt.set_cause(py, Some(error));
    interrupt
}

/// Warnings, for Python to issue.
pub fn warnings(texts: Vec<String>) -> Vec<String> {
    texts.into_iter().map(shown).collect()
}

/// An error of training. Settings are named by their keywords.
pub fn adapt(error: loranpac_encode::Error) -> PyErr {
    use loranpac_encode::Error;
    let keyword = |name: &str| Some(name.replace('-', "_"));
    match &error {
        Error::Adapt { .. } | Error::Diverged { .. } | Error::NoAdapter { .. } => {
            value(spell(&error.to_string(), keyword))
        }
        Error::Engine(loranpac::Error::Memory(text)) => PyMemoryError::new_err(shown(spell(text, keyword))),
        _ => encode(error),
    }
}

fn shown(message: impl Display) -> String {
    escape(&spell(&message.to_string(), keyword)).into_owned()
}

/// The keyword of a setting in Python.
fn keyword(name: &str) -> Option<String> {
    let own = || METHODS.iter().any(|method| method.knows(name)).then(|| name.to_owned());
    settings::find(name).map(|setting| setting.keyword()).or_else(own)
}
