//! The vocabulary of the readers: options, batches, and the trait that each format implements.

use loranpac::Label;

use crate::error::Error;

/// How a file of samples is read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The split to read, where a file has two: arrays `x_train` and `x_test`, or a column `split`.
    pub split: Split,
    /// Whether to read the other split where a file lacks this one. Standard input does not fall back in a table: it
    /// can be read only once.
    pub fallback: bool,
    /// Column, key or array with the labels. None: `y`, `labels`, `label`, `class` or `target`. In a CSV file it can
    /// also be `first`, `last`, or a number from 0.
    pub label: Option<String>,
    /// Column, key or array with the features. None: `x`, `embeddings`, `embedding` or `features`. A CSV file has a
    /// column for each feature instead.
    pub features: Option<String>,
    /// Column, key or array with the weights of samples. None: in files of arrays, `weight` (`weight_train` with `x_train`), if it
    /// is there.
    pub weights: Option<String>,
    /// Format of standard input, or of a file with another extension: `csv`, `jsonl`, `npy` or another of
    /// [`crate::formats::FORMATS`].
    pub format: Option<String>,
}

/// How a table of texts is read.
#[derive(Debug, Clone, Default)]
pub struct TextOptions {
    /// Column or key with the texts. None: the one of `usual` that occurs.
    pub text: Option<String>,
    /// Usual names of the texts, in lower case.
    pub usual: &'static [&'static str],
    /// Column or key with the labels. None: `y`, `labels`, `label`, `class` or `target`.
    pub label: Option<String>,
    /// Format of a file with another extension: `csv`, `tsv`, `jsonl` or `parquet`.
    pub format: Option<String>,
}

/// Split of a feature file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Split {
    /// Training samples: arrays `x_train` and `y_train`; rows whose `split` is `train`, `val` or `valid`.
    #[default]
    Train,
    /// Test samples: arrays `x_test` and `y_test`; rows whose `split` is `test`.
    Test,
}

impl Split {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Test => "test",
        }
    }

    /// The other one.
    pub fn other(self) -> Split {
        match self {
            Split::Train => Split::Test,
            Split::Test => Split::Train,
        }
    }

    /// The end of its arrays' names.
    pub fn suffix(self) -> &'static str {
        match self {
            Split::Train => "_train",
            Split::Test => "_test",
        }
    }

    /// The split that a cell names.
    pub(crate) fn of_cell(cell: &Label) -> Option<Split> {
        match cell {
            Label::Text(name) => Split::from_name(name),
            Label::Integer(_) => None,
        }
    }

    /// The split of this name, in any case: `train`, `val`, `valid` and `validation` are training samples.
    pub fn from_name(name: &str) -> Option<Split> {
        match name.trim().to_ascii_lowercase().as_str() {
            "train" | "val" | "valid" | "validation" => Some(Split::Train),
            "test" => Some(Split::Test),
            _ => None,
        }
    }
}

/// Samples that were read together.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Features, one row per sample.
    pub x: Vec<f32>,
    /// Labels, one per sample, if the file has any.
    pub labels: Option<Vec<Label>>,
    /// Weights, one per sample, if the file has any. Samples of weight 0 are left out.
    pub weights: Option<Vec<f64>>,
    /// Names of the samples, if they were encoded from raw inputs.
    pub names: Option<Vec<String>>,
    /// Row of each sample in the file or the array, from 0: other splits and inputs that were skipped count.
    pub rows: Vec<usize>,
}

/// A sample can have three tags besides its features: a label, a split and a domain. Arrays of this length are indexed
/// by [`LABEL`], [`SPLIT`] and [`DOMAIN`].
pub const TAGS: usize = 3;
/// The index of labels among the tags.
pub const LABEL: usize = 0;
/// The index of splits among the tags.
pub const SPLIT: usize = 1;
/// The index of domains among the tags.
pub const DOMAIN: usize = 2;

/// A source of samples: rows in order. [`crate::Reader`] reads them in batches.
#[expect(clippy::len_without_is_empty, reason = "a source of unknown length is not known to be empty")]
pub trait Rows: Send {
    /// Features per sample.
    fn dim(&self) -> usize;
    /// Whether samples have this tag.
    fn has(&self, tag: usize) -> bool;
    /// Number of samples, if known before they are read.
    fn len(&self) -> Option<usize> {
        None
    }
    /// The split that is read, of a file that keeps its splits apart.
    fn split(&self) -> Option<Split> {
        None
    }
    /// The encoder that computed the features, if it is recorded.
    fn encoder(&self) -> Option<&EncodedBy> {
        None
    }
    /// Whether samples have names.
    fn has_names(&self) -> bool {
        false
    }
    /// Why inputs were skipped so far.
    fn skipped(&self) -> Vec<String> {
        Vec::new()
    }
    /// The next samples, at most `most`; none at the end.
    fn read(&mut self, most: usize) -> Result<Piece, Error>;
}

/// The encoder of a file of features.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedBy {
    /// Its name.
    pub name: String,
    /// SHA-256 of everything that determines its features, in hexadecimal.
    pub digest: String,
}

/// The result of [`Rows::read`]. A tag that samples do not have is empty, and so are names.
#[derive(Default)]
pub struct Piece {
    /// Features, one row per sample.
    pub x: Vec<f32>,
    /// Label, split and domain of each sample.
    pub tags: [Vec<Label>; TAGS],
    /// Weights of the samples.
    pub weights: Vec<f64>,
    /// Names of the samples.
    pub names: Vec<String>,
    /// Row of each sample; empty if rows follow one another.
    pub rows: Vec<usize>,
}
