//! File formats. Each is one file with one reader, and one line in [`open`].

mod npy;
mod npz;
mod safetensors;

use std::collections::BTreeMap;
use std::path::Path;

use loranpac::Label;

use crate::error::{ArrayProblem, Error};

pub use npy::read_file as read_npy;

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
