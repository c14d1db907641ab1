//! What sequences do to a model, and what they remember of it.

use std::path::PathBuf;

use loranpac::Label;

use crate::reference::Sample;

/// What was looked at, to see that tests test.
#[derive(Debug, Default)]
pub struct Seen {
    pub checked: usize,
    pub compared: usize,
    pub exact: usize,
    pub bounded: usize,
    pub killed: usize,
    pub repeated: usize,
    pub refused: usize,
}

impl Seen {
    pub fn add(&mut self, other: &Seen) {
        self.checked += other.checked;
        self.compared += other.compared;
        self.exact += other.exact;
        self.bounded += other.bounded;
        self.killed += other.killed;
        self.repeated += other.repeated;
        self.refused += other.refused;
    }
}

/// What a version of the model has learned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    pub samples: Vec<Sample>,
    /// Whether samples were taken back or moved that had never been learned.
    pub tainted: bool,
    /// Whether classes or samples were removed or moved.
    pub edited: bool,
    /// Squared length of the longest samples that were taken back: their rounding stays in the Gram matrix.
    pub taken_back: f64,
}

/// A change with everything it was given, so that it can be repeated.
#[derive(Clone)]
pub enum Change {
    Learn(Vec<f32>, Vec<Label>),
    Forget(Label),
    Rename(Label, Label),
    Relabel(Vec<f32>, Vec<Label>, Vec<Label>),
    Unlearn(Vec<f32>, Vec<Label>),
    Calibrate(Vec<f32>, Vec<Label>),
    /// Another model with its samples, and the place of the merged one.
    Merge {
        ours: PathBuf,
        other: PathBuf,
        x: Vec<f32>,
        y: Vec<Label>,
        target: PathBuf,
    },
    Rollback(u64),
}

/// What a change has done.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    Done { unchecked: usize },
    Already,
    Refused,
}
