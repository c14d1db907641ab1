//! The vocabulary of the readers: options, formats, batches, and the trait that each format implements.

use loranpac::Label;

use crate::error::Error;

/// How a file of samples is to be read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which half of a feature file that has two (`x_train`, `x_test`). Files with plain `x` (and `y`) have no halves.
    pub split: Split,
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

/// Split of a feature file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Split {
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
