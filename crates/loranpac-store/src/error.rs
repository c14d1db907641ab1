//! Errors of models on disk.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a model, or of a file derived from one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the engine.
    #[error(transparent)]
    Engine(#[from] loranpac::Error),
    /// A file cannot be opened or read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The model was replaced, but the change may not survive a power cut.
    #[error("{path} has changed, but it may not survive a power cut: {source}", path = path.display())]
    NotDurable {
        /// The model.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The contents of a file are invalid.
    #[error("{path} is damaged: {reason}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// A file of the model is missing.
    #[error("{path} is missing, but the model needs it", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The path of a new model or file is taken.
    #[error("{path} exists already; choose another name, or remove it", path = path.display())]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// A file seems intact, but is of another kind.
    #[error("{path} is not a {expected} file: {found}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The kind that was expected.
        expected: &'static str,
        /// The kind that was found.
        found: String,
    },
    /// The version of a file is not supported.
    #[error("{path} is of version {found}, but this program reads version {known}; a newer program may read it", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The supported version.
        known: u32,
    },
    /// The digest of a file does not match its contents.
    #[error("{path} is damaged: the sha256 digest of its weights is {found}, but should be {expected}", path = path.display())]
    Digest {
        /// The file.
        path: PathBuf,
        /// The digest in the header.
        expected: String,
        /// The digest of the bytes.
        found: String,
    },
    /// A weight is beyond the range of half precision.
    #[error("class {class} has the weight {value}, beyond half precision's largest number 65504; use single precision")]
    HalfRange {
        /// The label of the class.
        class: String,
        /// The weight.
        value: f32,
    },
    /// The request is not valid for this model.
    #[error("{0}")]
    Refused(String),
}

impl Error {
    /// Returns whether the contents of a file are damaged. Unreadable and newer files are not.
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Damaged { .. } | Error::Missing { .. } | Error::Digest { .. })
    }

    /// Creates the error of a file that cannot be read.
    pub(crate) fn read(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
        |source| Error::Read { path: path.to_owned(), source }
    }

    /// Creates the error of a file that cannot be written.
    pub(crate) fn write(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
        |source| Error::Write { path: path.to_owned(), source }
    }

    /// Creates the error of a damaged file.
    pub(crate) fn damaged(path: &Path, reason: impl ToString) -> Error {
        Error::Damaged { path: path.to_owned(), reason: reason.to_string() }
    }
}
