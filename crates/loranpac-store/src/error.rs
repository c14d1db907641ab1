//! What can go wrong with a model on disk.

use std::io;
use std::path::PathBuf;

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
    /// What was asked for makes no sense for this model.
    #[error("{0}")]
    Refused(String),
}
