//! Errors of experiments.

use std::io;
use std::path::PathBuf;

use loranpac_encode::Modality;

/// Why an experiment was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file was refused.
    #[error(transparent)]
    Data(#[from] loranpac_data::Error),
    /// Raw data instead of features.
    #[error(
        "{path} has {what}, not features; encode them first: loranpac embed ENCODER {path} -o FILE.npz",
        path = path.display(),
        what = if *modality == Modality::Image { "images" } else { "texts" },
    )]
    NotFeatures {
        /// The folder, archive or table.
        path: PathBuf,
        /// What it has.
        modality: Modality,
    },
    /// Raw data were refused.
    #[error(transparent)]
    Encode(Box<loranpac_encode::Error>),
    /// The folder or archive of a data set lacks something.
    #[error("{path}: {source}", path = path.display())]
    Images {
        /// The folder or archive.
        path: PathBuf,
        /// What is missing.
        source: Box<loranpac_encode::Error>,
    },
    /// A file cannot be opened or read.
    #[error(transparent)]
    Read(#[from] loranpac_data::ReadError),
    /// An invalid recipe, or an invalid configuration of another program.
    #[error("{name}: {message}")]
    Recipe {
        /// Its name.
        name: String,
        /// What is wrong, and where.
        message: String,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The user has stopped the run.
    #[error("interrupted")]
    Interrupted,
    /// A class order that does not name every class of the data once.
    #[error("{0}")]
    ClassOrder(String),
    /// An experiment that cannot be run on this data.
    #[error("{0}")]
    Experiment(String),
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] loranpac::Error),
}

impl From<loranpac_encode::Error> for Error {
    fn from(error: loranpac_encode::Error) -> Error {
        Error::Encode(Box::new(error))
    }
}
