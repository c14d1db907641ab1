//! An array in memory, and its use as features or labels.

use loranpac::Label;

use crate::error::ArrayProblem;

/// An array in C order.
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

impl Array {
    /// Converts a two-dimensional array of numbers to features. Returns (data, rows, columns).
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

    /// Converts a one-dimensional array of integers, strings or whole floats to labels.
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
