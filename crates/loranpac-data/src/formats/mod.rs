//! File formats. Each is one file with one reader, and one line in [`open`] (data sets, whole) or `open_samples`
//! (samples, some at a time).

mod container;
mod csv;
mod element;
mod jsonl;
mod npy;
mod npz;
#[cfg(feature = "parquet")]
mod parquet;
mod safetensors;
mod source;
mod stream;
mod text;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use loranpac::Label;

use crate::error::{ArrayProblem, Error};
use crate::rows::{Format, Options, Rows};

pub use npy::read_file as read_npy;
pub(crate) use source::Shared;
pub use source::Source;

/// An array as it was read, in C order.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its elements.
    pub data: Elements,
}

/// Elements, narrowed to the types that the project works with.
#[derive(Debug, Clone, PartialEq)]
pub enum Elements {
    /// float16, float32 or float64.
    Float(Vec<f32>),
    /// Any integer type, or bool.
    Integer(Vec<i64>),
    /// Strings.
    Text(Vec<String>),
}

/// The named arrays of a feature file.
pub type Arrays = BTreeMap<String, Array>;

/// Reads those arrays of a feature file whose name `wanted` accepts. The format is told by the name.
pub fn open(path: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Arrays, Error> {
    if path.is_dir() {
        return npy::read_folder(path, wanted);
    }
    match path.extension().and_then(|e| e.to_str()) {
        Some("npz") => npz::read(path, wanted),
        Some("safetensors") => safetensors::read(path, wanted),
        _ => Err(Error::UnknownFormat { path: path.to_owned() }),
    }
}

/// Opens samples of a file that can be read at any place.
pub(crate) fn open_samples(
    path: &Path,
    shared: Shared,
    format: Format,
    options: &Options,
) -> Result<Box<dyn Rows>, Error> {
    match format {
        Format::Npz => Ok(Box::new(container::choose(path, npz::Npz::open(path, &shared)?, options)?)),
        Format::Safetensors => {
            Ok(Box::new(container::choose(path, safetensors::Tensors::open(path, &shared)?, options)?))
        }
        #[cfg(feature = "parquet")]
        Format::Parquet => Ok(Box::new(parquet::Parquet::open(path, shared, options)?)),
        _ => open_stream(path, Box::new(shared.whole()), Some(shared.length()), format, options),
    }
}

/// Opens samples that come one after the other, as from standard input; `length` is the number of bytes, if it is known.
pub(crate) fn open_stream(
    path: &Path,
    source: Box<dyn Read + Send>,
    length: Option<u64>,
    format: Format,
    options: &Options,
) -> Result<Box<dyn Rows>, Error> {
    match format {
        Format::Npy => {
            let x = stream::Stream::npy(source, length.unwrap_or(u64::MAX));
            let refuse = |problem| Error::Array { path: path.to_owned(), array: "x".to_owned(), problem };
            Ok(Box::new(container::Pair::new(path, ("x".to_owned(), x.map_err(refuse)?), None)?))
        }
        Format::Csv => Ok(Box::new(csv::Csv::open(path, source, None, options)?)),
        Format::Tsv => Ok(Box::new(csv::Csv::open(path, source, Some(b'\t'), options)?)),
        Format::Jsonl => Ok(Box::new(jsonl::Jsonl::open(path, source, options)?)),
        Format::Npz | Format::Safetensors | Format::Parquet => {
            Err(Error::NotStreamed { path: path.to_owned(), format: format.name() })
        }
    }
}

/// Opens samples in a folder of `.npy` files.
pub(crate) fn open_folder(path: &Path, options: &Options) -> Result<Box<dyn Rows>, Error> {
    Ok(Box::new(container::choose(path, npy::Folder(path.to_owned()), options)?))
}

/// Whether a path looks like a feature file, by its name.
pub fn looks_like_features(path: &Path) -> bool {
    let known = path.extension().is_some_and(|e| e == "npz" || e == "safetensors");
    known || path.join("x_train.npy").is_file()
}

impl Array {
    /// As features: two dimensions, any real type. Gives (data, rows, columns).
    pub fn into_features(self) -> Result<(Vec<f32>, usize, usize), ArrayProblem> {
        let [rows, columns] = self.shape[..] else {
            return Err(ArrayProblem::Shape { found: self.shape, expected: "(samples, features)".to_owned() });
        };
        match self.data {
            Elements::Float(data) => Ok((data, rows, columns)),
            Elements::Integer(data) => Ok((data.into_iter().map(|v| v as f32).collect(), rows, columns)),
            Elements::Text(_) => {
                Err(ArrayProblem::Dtype { found: "string".to_owned(), expected: "a floating point or integer type" })
            }
        }
    }

    /// As labels: one dimension, integers or strings (or floats that are whole numbers).
    pub fn into_labels(self) -> Result<Vec<Label>, ArrayProblem> {
        if self.shape.len() != 1 {
            return Err(ArrayProblem::Shape { found: self.shape, expected: "(samples,)".to_owned() });
        }
        match self.data {
            Elements::Integer(data) => Ok(data.into_iter().map(Label::Integer).collect()),
            Elements::Text(data) => Ok(data.into_iter().map(Label::Text).collect()),
            Elements::Float(data) => data
                .into_iter()
                .enumerate()
                .map(|(row, v)| match v {
                    v if v.fract() == 0.0 && v.abs() < 1e7 => Ok(Label::Integer(v as i64)),
                    v => Err(ArrayProblem::Label { row, reason: format!("{v} is not a whole number") }),
                })
                .collect(),
        }
    }
}
