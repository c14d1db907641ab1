//! Samples, some at a time: what `learn` and `predict` read. A file is never in memory as a whole, whatever its size.
//!
//! [`crate::Dataset`] is for experiments, which need training and test samples at once; this is for work.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use loranpac::Label;

use crate::error::Error;
use crate::formats::{self, Shared, Source};

/// How a file of samples is to be read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which half of a feature file that has two (`x_train`, `x_test`). Files with plain `x` (and `y`) have no halves.
    pub half: Half,
    /// Column, key or array with the labels. None: `label`, `y` or `class` in tables and JSON, `y` (or that of the half)
    /// in feature files. In a CSV file it can also be `first`, `last`, or a number from 0.
    pub label: Option<String>,
    /// Column, key or array with the features. None: `x`, `features`, `embedding` or `embeddings` in Parquet and JSON,
    /// `x` (or that of the half) in feature files. A CSV file has a column for each feature.
    pub features: Option<String>,
    /// Format of standard input, or of a file whose name does not tell: `csv`, `jsonl`, `npy` or another of
    /// [`Format::ALL`].
    pub format: Option<String>,
}

/// Half of a feature file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Half {
    /// `x_train` and `y_train`.
    #[default]
    Train,
    /// `x_test` and `y_test`.
    Test,
}

/// A format that samples come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One array of NumPy's, without labels.
    Npy,
    /// Named arrays of NumPy's.
    Npz,
    /// Named tensors.
    Safetensors,
    /// One sample per line, cells between commas, semicolons or tabs.
    Csv,
    /// One sample per line, cells between tabs.
    Tsv,
    /// One JSON object per line.
    Jsonl,
    /// A table with a column of lists. Only with the crate's feature `parquet`.
    Parquet,
}

impl Format {
    /// All formats that were compiled in.
    pub const ALL: &[Format] = &[
        Format::Npy,
        Format::Npz,
        Format::Safetensors,
        Format::Csv,
        Format::Tsv,
        Format::Jsonl,
        #[cfg(feature = "parquet")]
        Format::Parquet,
    ];

    /// Its name, which is also how file names end.
    pub fn name(self) -> &'static str {
        match self {
            Format::Npy => "npy",
            Format::Npz => "npz",
            Format::Safetensors => "safetensors",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Jsonl => "jsonl",
            Format::Parquet => "parquet",
        }
    }

    /// The format of this name, in any case; `ndjson` is another name for `jsonl`.
    pub fn from_name(name: &str) -> Option<Format> {
        let name = name.to_ascii_lowercase();
        let name = if name == "ndjson" { "jsonl" } else { &name };
        Format::ALL.iter().copied().find(|format| format.name() == name)
    }
}

/// Samples that were read together.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Features, one row per sample.
    pub x: Vec<f32>,
    /// Labels, one per sample, if the file has any.
    pub labels: Option<Vec<Label>>,
    /// Row of the first sample in the whole file, from 0.
    pub first: usize,
}

/// Reads samples, some at a time.
pub struct Reader {
    path: PathBuf,
    rows: Box<dyn Rows>,
    row: usize,
    ended: bool,
}

/// A format's part of the work: rows, one after the other.
pub(crate) trait Rows: Send {
    /// Features per sample.
    fn dim(&self) -> usize;
    /// Whether samples have labels.
    fn has_labels(&self) -> bool;
    /// Number of samples, where the file tells.
    fn len(&self) -> Option<usize>;
    /// The next samples, at most `most`; none at the end.
    fn read(&mut self, most: usize) -> Result<Piece, Error>;
}

/// What [`Rows::read`] gives; `labels` is empty if there are none.
#[derive(Default)]
pub(crate) struct Piece {
    pub x: Vec<f32>,
    pub labels: Vec<Label>,
}

impl Reader {
    /// Opens a file, a folder of `.npy` files, or standard input, which is called `-`.
    pub fn open(path: &Path, options: &Options) -> Result<Reader, Error> {
        if path.as_os_str() == "-" {
            let path = Path::new("standard input");
            return Reader::from_stream(path, std::io::stdin(), format_of(path, options)?, options);
        }
        if path.is_dir() {
            return Ok(Reader::new(path, formats::open_folder(path, options)?));
        }
        let format = format_of(path, options)?;
        let file = File::open(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        Reader::from_source(path, file, format, options)
    }

    /// Reads from anything that can be read at any place, such as a `Cursor` over bytes; `path` is what errors call it.
    pub fn from_source(
        path: &Path,
        source: impl Source + 'static,
        format: Format,
        options: &Options,
    ) -> Result<Reader, Error> {
        let shared = Shared::new(source).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        Ok(Reader::new(path, formats::open_samples(path, shared, format, options)?))
    }

    /// Reads bytes as they come; only formats that can be read from front to back. `path` is what errors call it.
    pub fn from_stream(
        path: &Path,
        source: impl Read + Send + 'static,
        format: Format,
        options: &Options,
    ) -> Result<Reader, Error> {
        Ok(Reader::new(path, formats::open_stream(path, Box::new(source), None, format, options)?))
    }

    fn new(path: &Path, rows: Box<dyn Rows>) -> Reader {
        Reader { path: path.to_owned(), rows, row: 0, ended: false }
    }

    /// Features per sample; at least one.
    pub fn dim(&self) -> usize {
        self.rows.dim()
    }

    /// Whether samples have labels.
    pub fn has_labels(&self) -> bool {
        self.rows.has_labels()
    }

    /// Number of samples, where the file tells before it is read.
    #[expect(clippy::len_without_is_empty, reason = "a file that does not tell its length is not known to be empty")]
    pub fn len(&self) -> Option<usize> {
        self.rows.len()
    }

    /// The next samples, at most `most` of them (but at least one, if there are any); `None` at the end, and after an error.
    ///
    /// Memory is proportional to `most` times the features. Every feature is finite. What is wrong in a file is told
    /// where it is found, and a checksum is known at the end only: samples before that were given out already.
    pub fn next(&mut self, most: usize) -> Result<Option<Batch>, Error> {
        if self.ended {
            return Ok(None);
        }
        // Whoever goes on after an error gets no samples from the middle of a row.
        self.ended = true;
        let Piece { x, labels } = self.rows.read(most.max(1))?;
        if x.is_empty() {
            return Ok(None);
        }
        let (first, dim) = (self.row, self.dim());
        if let Some(at) = x.iter().position(|value| !value.is_finite()) {
            let source = loranpac::Error::NotFinite { row: first + at / dim, column: at % dim, value: x[at] };
            return Err(Error::Feature { path: self.path.clone(), source });
        }
        self.row += x.len() / dim;
        self.ended = false;
        Ok(Some(Batch { x, labels: self.has_labels().then_some(labels), first }))
    }
}

/// The format that was asked for, else that of the file's name.
fn format_of(path: &Path, options: &Options) -> Result<Format, Error> {
    let ending = || path.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
    let format = options.format.clone().unwrap_or_else(ending);
    Format::from_name(&format).ok_or_else(|| {
        let known = Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
        Error::UnknownSamples { path: path.to_owned(), format, known }
    })
}
