//! Errors of files.

use std::io;
use std::path::{Path, PathBuf};

use loranpac::internals::count;

/// A file cannot be opened or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}: {source}", path = path.display())]
pub struct ReadError {
    /// The file.
    pub path: PathBuf,
    /// The error of the system.
    pub source: io::Error,
}

impl ReadError {
    /// Creates the error of a path.
    pub fn new(path: &Path, source: io::Error) -> ReadError {
        ReadError { path: path.to_owned(), source }
    }

    /// Returns whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// Why a file was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] loranpac::Error),
    /// The file cannot be opened or read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A source of samples outside this crate failed.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// The container (zip, safetensors header) is damaged.
    #[error("{path}: damaged, or not of the format that its name suggests: {reason}", path = path.display())]
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
    /// An array, a column or a key is missing.
    #[error("{path}: no {what} {name}; the file has {found}{advice}", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What is missing: an array, a label column, a features key.
        what: &'static str,
        /// The names that would fit.
        name: String,
        /// The existing names.
        found: String,
        /// What to do, after a semicolon; may be empty.
        advice: &'static str,
    },
    /// The format is unknown.
    #[error(
        "{path}: unsupported feature file ({kind}); supported are {supported} and folders of .npy files{advice}",
        path = path.display(),
        kind = if format.is_empty() { "no extension".to_owned() } else { format!("format {format:?}") },
    )]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Its extension, or the format in the options.
        format: String,
        /// The formats that were compiled in.
        supported: String,
        /// What to do, after a semicolon; may be empty.
        advice: &'static str,
    },
    /// A file for an experiment has no training and test samples.
    #[error(
        "{path}: no training and test samples; add a column split with train or test in each row, or use arrays x_train, \
         y_train, x_test and y_test",
        path = path.display()
    )]
    NoSplit {
        /// The file.
        path: PathBuf,
    },
    /// A file for an experiment has no labels.
    #[error("{path}: no labels; call their column y, labels, label, class or target", path = path.display())]
    NoLabels {
        /// The file.
        path: PathBuf,
    },
    /// A table has no samples of a split.
    #[error("{path}: no row whose split is {split}{advice}", path = path.display())]
    EmptySplit {
        /// The file.
        path: PathBuf,
        /// The split.
        split: &'static str,
        /// What to do, after a semicolon; may be empty.
        advice: &'static str,
    },
    /// A cell of the column `split` is neither training nor test.
    #[error("{path}: row {row}: split is {split:?}; use train, val, valid or test", path = path.display())]
    UnknownSplit {
        /// The file.
        path: PathBuf,
        /// The row, from 0.
        row: usize,
        /// The cell, or its beginning.
        split: String,
    },
    /// A format that cannot be read from a pipe.
    #[error("{path}: {format} cannot be read from a pipe; give a file, or send csv, tsv, jsonl or npy", path = path.display())]
    NotStreamed {
        /// The source.
        path: PathBuf,
        /// The format.
        format: &'static str,
    },
    /// A format without columns of texts.
    #[error("{path}: {format} has no columns of texts; give csv, tsv, jsonl or parquet", path = path.display())]
    NotATable {
        /// The file.
        path: PathBuf,
        /// The format.
        format: &'static str,
    },
    /// Several columns or arrays have a usual name.
    #[error("{path}: {found} could each be the {what}; keep one{}", chosen_with(what), path = path.display())]
    Ambiguous {
        /// The file.
        path: PathBuf,
        /// What was searched.
        what: &'static str,
        /// The names that fit.
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

/// Why an array was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayProblem {
    /// Not an npy file.
    #[error("not in NumPy's npy format ({0})")]
    NotNpy(String),
    /// The container's checksum or compressed data is wrong.
    #[error("is damaged: {0}")]
    Damaged(String),
    /// It is too large for the memory.
    #[error("does not fit into memory: {0}")]
    Memory(String),
    /// The header is malformed.
    #[error("its header cannot be read: {0}")]
    Header(String),
    /// Pickled Python objects, which are never loaded.
    #[error("holds pickled Python objects (dtype object); save plain numbers or strings instead")]
    Pickle,
    /// An unsupported type of element.
    #[error("has dtype {found}, but {expected} is needed")]
    Dtype {
        /// As NumPy writes it.
        found: String,
        /// What is needed.
        expected: &'static str,
    },
    /// Fewer bytes than the shape needs.
    #[error("its shape {shape:?} needs {needed} bytes, but the file has {found}: it is truncated")]
    Truncated {
        /// The shape in the header.
        shape: Vec<usize>,
        /// Bytes that the shape needs.
        needed: u128,
        /// Bytes that exist, as far as known.
        found: u64,
    },
    /// Wrong number of dimensions, or of rows.
    #[error("has shape {found:?}, but {expected} is needed")]
    Shape {
        /// The shape in the header.
        found: Vec<usize>,
        /// What is needed.
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

/// Why a line of a text file was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineProblem {
    /// More or fewer cells than in the first line.
    #[error("has {}, but the first line has {expected}", count(*found, "cell"))]
    Cells {
        /// Cells of this line.
        found: usize,
        /// Cells of the first line.
        expected: usize,
    },
    /// More or fewer features than in the first sample.
    #[error("has {}, but the first sample has {expected}", count(*found, "feature"))]
    Features {
        /// Features of this sample.
        found: usize,
        /// Features of the first sample.
        expected: usize,
    },
    /// A feature is not a number.
    #[error("column {column}: {cell:?} is not a number{hint}")]
    NotANumber {
        /// Name or number of the column.
        column: String,
        /// The cell, or its beginning.
        cell: String,
        /// The likely reason.
        hint: &'static str,
    },
    /// A label, split or domain is empty.
    #[error("column {column}: the {what} is empty")]
    Empty {
        /// Name or number of the column.
        column: String,
        /// What is empty.
        what: &'static str,
    },
    /// A column has no name.
    #[error(
        "column {number} of the header has no name; pandas writes its index like that: leave it out with index=False"
    )]
    NoName {
        /// Its number, from 1.
        number: usize,
    },
    /// A quoted cell without an end.
    #[error("has a quote that is never closed; a quote within a quoted cell is written twice")]
    OpenQuote,
    /// A quoted cell of several lines, in a table with tabs.
    #[error(
        "a quoted cell continues on the next line; write the table as .csv, or put a cell that begins with a quote into \
         quotes, with its quotes doubled"
    )]
    Lines,
    /// Not text.
    #[error("is not valid UTF-8")]
    NotText,
    /// Longer than any sample; the rest was not read.
    #[error("is longer than {} MiB; one sample per line is expected", limit >> 20)]
    TooLong {
        /// The most bytes that are read.
        limit: usize,
    },
    /// Not a JSON object with the expected keys.
    #[error("{0}")]
    Json(String),
}

/// The setting that chooses among columns.
fn chosen_with(what: &str) -> String {
    match what.split(' ').next() {
        Some("split" | "domain") => String::new(),
        Some(setting @ ("label" | "text")) => format!(", or choose it with `{setting}`"),
        _ => ", or choose it with `features` or `label`".to_owned(),
    }
}
