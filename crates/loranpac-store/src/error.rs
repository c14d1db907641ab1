//! What can go wrong with a model on disk.

use std::io;
use std::path::{Path, PathBuf};

/// Why a model, or a file made from one, was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] loranpac::Error),
    /// A file cannot be opened or read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The model was replaced, but the system does not say that this is safe from a power cut.
    #[error("{path} has changed, but it may not survive a power cut: {source}", path = path.display())]
    Unsure {
        /// The model.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{path} is damaged: {reason}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A file that the model needs is not there.
    #[error("{path} is missing, but the model needs it", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// There is something where a new model or file should be.
    #[error("{path} exists already; choose another name, or remove it", path = path.display())]
    Exists {
        /// The place.
        path: PathBuf,
    },
    /// A file is whole, as far as one can tell, but of another kind.
    #[error("{path} is not a {expected} file: {found}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The kind that was expected.
        expected: &'static str,
        /// What it has instead.
        found: String,
    },
    /// A file is of a version that this program does not know.
    #[error("{path} is of version {found}, but this program reads version {known}; a newer one may read it", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version that can be read.
        known: u32,
    },
    /// The numbers in a file are not the ones that were written.
    #[error("{path} is damaged: the sha256 digest of its weights is {found}, but should be {expected}", path = path.display())]
    Digest {
        /// The file.
        path: PathBuf,
        /// The digest in the header.
        expected: String,
        /// The digest of the bytes.
        found: String,
    },
    /// Half precision cannot hold a weight.
    #[error("class {class} has the weight {value}, beyond half precision's largest number 65504; use single precision")]
    HalfRange {
        /// The label of the class.
        class: String,
        /// The weight.
        value: f32,
    },
    /// What was asked for makes no sense for this model.
    #[error("{0}")]
    Refused(String),
}

impl Error {
    /// Whether it says that a file is not what was written: neither that it could not be read, nor that it is newer.
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Damaged { .. } | Error::Missing { .. } | Error::Digest { .. })
    }

    /// A file that cannot be read.
    pub(crate) fn read(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
        |source| Error::Read { path: path.to_owned(), source }
    }

    /// A file that cannot be written.
    pub(crate) fn write(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
        |source| Error::Write { path: path.to_owned(), source }
    }

    /// A file that is not what it should be.
    pub(crate) fn damaged(path: &Path, reason: impl ToString) -> Error {
        Error::Damaged { path: path.to_owned(), reason: reason.to_string() }
    }
}
