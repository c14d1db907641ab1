//! What can be wrong with files and experiments.

use std::io;
use std::path::PathBuf;

/// Why a file or an experiment was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] loranpac::Error),
    /// The file cannot be opened or read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The name does not tell which format it is.
    #[error(
        "{path}: not a feature file that we know; give a .npz or .safetensors file, or a folder of .npy files",
        path = path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// The container (zip, safetensors header) is damaged.
    #[error("{path}: damaged or not what its name says: {reason}", path = path.display())]
    Container {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// An array inside a file cannot be used.
    #[error("{path}: array {array}: {problem}", path = path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// Name of the array.
        array: String,
        /// What is wrong with it.
        problem: ArrayProblem,
    },
    /// An array is not there.
    #[error("{path}: there is no array {array}; it has {found}", path = path.display())]
    MissingArray {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        array: String,
        /// What is there.
        found: String,
    },
    /// A recipe, or another program's configuration, that cannot be followed.
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
        /// What the system said.
        source: io::Error,
    },
    /// The user wants no more.
    #[error("interrupted")]
    Interrupted,
    /// An experiment that cannot be run on this data.
    #[error("{0}")]
    Experiment(String),
}

/// What can be wrong with an array.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayProblem {
    /// Not an npy file.
    #[error("not in NumPy's npy format ({0})")]
    NotNpy(String),
    /// The container's checksum or compression does not hold.
    #[error("is damaged: {0}")]
    Damaged(String),
    /// The header cannot be understood.
    #[error("its header cannot be read: {0}")]
    Header(String),
    /// Pickled Python objects, which we never load.
    #[error("holds pickled Python objects (dtype object); save plain numbers or strings instead")]
    Pickle,
    /// A type of element that does not serve here.
    #[error("has dtype {found}, but {expected} is needed")]
    Dtype {
        /// As NumPy writes it.
        found: String,
        /// What would do.
        expected: &'static str,
    },
    /// Fewer bytes than the shape promises.
    #[error("its header promises {promised} bytes for shape {shape:?}, but the file has {found}: it is truncated")]
    Truncated {
        /// The shape in the header.
        shape: Vec<usize>,
        /// Bytes that the shape needs.
        promised: u128,
        /// Bytes that are there, as far as is known.
        found: u64,
    },
    /// Wrong number of dimensions, or of rows.
    #[error("has shape {found:?}, but {expected} is needed")]
    Shape {
        /// The shape in the header.
        found: Vec<usize>,
        /// What would do.
        expected: String,
    },
    /// A label that is not a whole number in range.
    #[error("row {row}: the label cannot be used: {reason}")]
    Label {
        /// Row, from 0.
        row: usize,
        /// Why.
        reason: String,
    },
}
