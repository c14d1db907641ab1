//! Errors of the engine, with the fields that are needed to correct them.

use crate::words::count;

/// An error of the engine. A call that returns an error leaves the model unchanged, except for [`Error::Eigen`] from
/// learning with a method that truncates afterwards (the LoRanPAC family, OR-Fit): the task is then part of the model,
/// and only its truncation is missing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A feature is NaN or infinite.
    #[error("feature {column} of row {row} is {value}; features must be finite numbers")]
    NotFinite {
        /// Row (sample), from 0.
        row: usize,
        /// Column (feature), from 0.
        column: usize,
        /// The offending value.
        value: f32,
    },
    /// A sample is so large that its lifted features would overflow.
    #[error("row {row} has a feature of size {value:e}; scale the features (anything up to {limit:e} works)")]
    TooLarge {
        /// Row (sample), from 0.
        row: usize,
        /// The largest absolute feature.
        value: f32,
        /// The largest that is accepted.
        limit: f32,
    },
    /// The samples have another number of features than the model.
    #[error("the samples have {} each, but the model was made for {expected}", count(*found, "feature"))]
    Dimension {
        /// The number that the model expects.
        expected: usize,
        /// The number that was given.
        found: usize,
    },
    /// A flat array does not divide into rows.
    #[error("{} cannot be divided into rows of {}", count(*length, "number"), count(*dim, "feature"))]
    Ragged {
        /// Length of the flat array.
        length: usize,
        /// Features per row.
        dim: usize,
    },
    /// Labels and samples differ in number.
    #[error("{} but {}; there must be one label per sample", count(*samples, "sample"), count(*labels, "label"))]
    LabelCount {
        /// Number of samples.
        samples: usize,
        /// Number of labels.
        labels: usize,
    },
    /// Weights and samples differ in number.
    #[error("{} but {}; there must be one weight per sample", count(*samples, "sample"), count(*weights, "weight"))]
    WeightCount {
        /// Number of samples.
        samples: usize,
        /// Number of weights.
        weights: usize,
    },
    /// A weight is negative, not a number, or too large.
    #[error("the weight of row {row} is {value}; weights must be numbers from 0 to {limit:e}")]
    Weight {
        /// Row (sample), from 0.
        row: usize,
        /// The weight.
        value: f64,
        /// The largest that is accepted.
        limit: f64,
    },
    /// All samples of a task have the weight 0.
    #[error("all weights are zero, so that there is nothing to learn")]
    NoWeight,
    /// A task without samples.
    #[error("the task has no samples")]
    EmptyTask,
    /// Prediction was requested before anything was learned.
    #[error("the model has not learned anything yet; give it a task first")]
    NothingLearned,
    /// A setting is outside its range.
    #[error("{name} = {value} is not possible: {reason}")]
    Setting {
        /// Name of the setting, as users spell it.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// What is expected.
        reason: String,
    },
    /// A method does not have a setting.
    #[error("method {method} has no setting {name:?}; its settings: {known}")]
    UnknownSetting {
        /// Method name.
        method: &'static str,
        /// The setting that was given.
        name: String,
        /// The settings that it has.
        known: String,
    },
    /// No such method in the registry.
    #[error("there is no method {name:?}; the methods are {known}")]
    UnknownMethod {
        /// The name that was given.
        name: String,
        /// The methods that exist.
        known: String,
    },
    /// The projection does not fit the features or the width.
    #[error("the projection is {rows} x {columns}, but {reason}")]
    Projection {
        /// Rows of P (the width E).
        rows: usize,
        /// Columns of P (the feature dimension d).
        columns: usize,
        /// Why it does not fit.
        reason: String,
    },
    /// Samples to be unlearned or relabelled were never learned, or not under that label.
    #[error(
        "row {row} was never learned under its label: most of it is new to the model, or the class has no sample left"
    )]
    NeverLearned {
        /// Row (sample), from 0.
        row: usize,
    },
    /// Samples cannot be unlearned exactly, because cuts have removed parts of them.
    #[error(
        "samples cannot be unlearned exactly: {} of the spectrum (a cap on the basis, or the paper schedule) removed parts of \
         them; learn a new model without them",
        count(*cuts, "cut")
    )]
    NotExact {
        /// Cuts so far.
        cuts: usize,
    },
    /// Samples cannot be unlearned, because they are too long compared with the others.
    #[error(
        "samples cannot be unlearned: they are so much longer than the others that rounding would replace the remaining samples; learn \
         anew without them"
    )]
    RoundedAway,
    /// All samples would be unlearned.
    #[error("unlearning {} would leave none; create a new model instead", count(*samples, "sample"))]
    NothingLeft {
        /// Number of samples to be unlearned.
        samples: usize,
    },
    /// Two classes have the same label.
    #[error("two classes have the label {label}")]
    DuplicateLabel {
        /// The label.
        label: String,
    },
    /// Models whose features differ cannot be merged.
    #[error("models with different lifts cannot be merged: {ours} and {theirs}; kind, width and seed must be the same")]
    DifferentLifts {
        /// The lift of the first model.
        ours: String,
        /// The lift of the other model.
        theirs: String,
    },
    /// No class has this label.
    #[error("there is no class {label}; the model has {}", count(*classes, "class"))]
    UnknownClass {
        /// The label that was given.
        label: String,
        /// Number of classes of the model.
        classes: usize,
    },
    /// A table of class priors lacks classes of the model.
    #[error("the table of priors lacks {}: {}", count(missing.len(), "class"), first(missing))]
    PriorTable {
        /// The labels of these classes.
        missing: Vec<String>,
    },
    /// The estimated peak exceeds the available memory.
    #[error("{0}")]
    Memory(String),
    /// A weight of the classifier is beyond the range of single precision.
    #[error(
        "the classifier has weights beyond single precision: the features are too small, or too different in scale; rescale them"
    )]
    Overflow,
    /// No eigensolver converged.
    #[error(
        "the eigendecomposition of the {rank} x {rank} Gram matrix failed with every algorithm; \
         the soft filter (loranpac-soft) does not need one"
    )]
    Eigen {
        /// Size of the Gram matrix.
        rank: usize,
    },
    /// The Gram matrix is not positive definite even with its ridge.
    #[error("S + {ridge:e} I is not positive definite ({rank} x {rank}); set a larger `ridge`")]
    NotPositiveDefinite {
        /// Size of the Gram matrix.
        rank: usize,
        /// The ridge that was added.
        ridge: f64,
    },
}

impl Error {
    /// Creates the error of a setting outside its range.
    pub fn setting(name: &'static str, value: impl ToString, reason: impl Into<String>) -> Self {
        Error::Setting { name, value: value.to_string(), reason: reason.into() }
    }

    /// The same error with another number of its row, as `place` maps it: that in a file, say, rather than in a batch.
    pub fn at_row(self, place: impl FnOnce(usize) -> usize) -> Self {
        match self {
            Error::NotFinite { row, column, value } => Error::NotFinite { row: place(row), column, value },
            Error::TooLarge { row, value, limit } => Error::TooLarge { row: place(row), value, limit },
            Error::Weight { row, value, limit } => Error::Weight { row: place(row), value, limit },
            other => other,
        }
    }

    /// Creates the error of samples without features.
    pub(crate) fn no_features() -> Self {
        Error::setting("dim", 0, "samples need at least one feature")
    }
}

/// Lists labels, but no more than ten.
fn first(labels: &[String]) -> String {
    let more = if labels.len() > 10 { ", ..." } else { "" };
    labels.iter().take(10).cloned().collect::<Vec<_>>().join(", ") + more
}
