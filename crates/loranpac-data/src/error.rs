//! What can be wrong with files.

use std::io;
use std::path::PathBuf;

/// Why a file was refused.
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
    /// Samples in a file whose name does not tell the format, or in a format that is not known.
    #[error("{path}: the format {format:?} is not one of {known}; name one of them", path = path.display())]
    UnknownSamples {
        /// The file.
        path: PathBuf,
        /// The ending of its name, or the format that was asked for.
        format: String,
        /// The formats that this program reads.
        known: String,
    },
    /// A format that needs more than one look at the file.
    #[error("{path}: {format} cannot be read from a pipe; give a file, or send csv, tsv, jsonl or npy", path = path.display())]
    NotStreamed {
        /// What was to be read.
        path: PathBuf,
        /// The format.
        format: &'static str,
    },
    /// A column, or a key, is not there.
    #[error("{path}: there is no {what} {column}; it has {found}", path = path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// What it would be: a label column, a feature column.
        what: &'static str,
        /// What was looked for.
        column: String,
        /// What is there.
        found: String,
    },
    /// Several columns could be the one that is needed.
    #[error("{path}: {found} could each be the {what}; name one of them", path = path.display())]
    Ambiguous {
        /// The file.
        path: PathBuf,
        /// What is needed.
        what: &'static str,
        /// The columns.
        found: String,
    },
    /// A column cannot be used.
    #[error("{path}: column {column}: {reason}", path = path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// Its name.
        column: String,
        /// Why.
        reason: String,
    },
    /// A line of a text file cannot be used.
    #[error("{path}: line {line}: {problem}", path = path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: LineProblem,
    },
    /// A feature cannot be used.
    #[error("{path}: {source}", path = path.display())]
    Feature {
        /// The file.
        path: PathBuf,
        /// Which, by row and column from 0, and why.
        source: loranpac::Error,
    },
    /// The layers of the training samples are not those of the test samples.
    #[error("{path}: layers differ between [{train}] and [{test}]", path = path.display())]
    Layers {
        /// The file.
        path: PathBuf,
        /// Layers of the training samples.
        train: String,
        /// Layers of the test samples.
        test: String,
    },
}

/// What can be wrong with an array.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayProblem {
    /// Not an npy file.
    #[error("not in NumPy's npy format ({0})")]
    NotNpy(String),
    /// The container's checksum or compression does not hold.
    #[error("is damaged: {0}")]
    Damaged(String),
    /// It is too large to be read whole.
    #[error("does not fit into memory: {0}")]
    Memory(String),
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
    /// A feature cannot be used.
    #[error("{0}")]
    Feature(Box<loranpac::Error>),
    /// A label that is not a whole number in range.
    #[error("row {row}: the label cannot be used: {reason}")]
    Label {
        /// Row, from 0.
        row: usize,
        /// Why.
        reason: String,
    },
}

/// What can be wrong with a line of a text file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineProblem {
    /// More or fewer cells than in the first line.
    #[error("has {found} cells, but the first line has {expected}")]
    Cells {
        /// Cells of this line.
        found: usize,
        /// Cells of the first line.
        expected: usize,
    },
    /// More or fewer features than in the first sample.
    #[error("has {found} features, but the first sample has {expected}")]
    Features {
        /// Features of this sample.
        found: usize,
        /// Features of the first sample.
        expected: usize,
    },
    /// A feature is no number.
    #[error("column {column}: {cell:?} is not a number{hint}")]
    NotANumber {
        /// Name or number of the column.
        column: String,
        /// What is there instead, or its beginning.
        cell: String,
        /// What may be the reason.
        hint: &'static str,
    },
    /// A label is not there.
    #[error("column {column}: the label is empty")]
    EmptyLabel {
        /// Name or number of the column.
        column: String,
    },
    /// A column has no name.
    #[error("column {number} of the header has no name; pandas writes its index so: leave it out with index=False")]
    NoName {
        /// Its number, from 1.
        number: usize,
    },
    /// Not text.
    #[error("is not text in UTF-8")]
    NotText,
    /// Longer than any sample; the rest of it was not read.
    #[error("is longer than {} MiB; one sample per line is expected", limit >> 20)]
    TooLong {
        /// The most bytes that are read.
        limit: usize,
    },
    /// Not an object, or not as the first one was.
    #[error("{0}")]
    Json(String),
}
