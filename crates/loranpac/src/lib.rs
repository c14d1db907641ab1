//! Continual learning on frozen features, in closed form.
//!
//! The engine of *LoRanPAC: Low-rank Random Features and Pre-trained Models for Bridging Theory and Practice in
//! Continual Learning* (ICLR 2025). Embeddings are lifted by random ReLU features; a truncated least-squares
//! classifier is kept up to date task after task, without stored samples.
//!
//! ```
//! use loranpac::{Label, Model};
//!
//! let mut model = Model::builder(2).width(500).build()?;
//! // Classes arrive one after the other, under any labels.
//! model.learn(&[1.0, 0.1, 0.9, -0.1], &["east", "east"])?;
//! model.learn(&[0.1, 1.0, -0.1, 1.1], &["north", "north"])?;
//! // A classifier is a value: it predicts in any thread while the model continues to learn.
//! let classifier = model.classifier()?;
//! assert_eq!(classifier.predict(&[0.0, 0.7])?, [Label::from("north")]);
//! # Ok::<(), loranpac::Error>(())
//! ```
//!
//! This crate reads no files, prints nothing, uses no clock and has no global state; it runs on the rayon pool of its
//! caller. Columns are samples, as in the paper: a C-order `(n, d)` array is the paper's `d x n` matrix.

pub mod auto;
mod band;
mod basis;
mod buffer;
mod certificate;
mod chase;
mod classifier;
mod config;
mod delta;
mod divide;
mod dual;
mod error;
mod factor;
mod features;
pub mod filter;
mod gram;
mod label;
mod learner;
pub mod lift;
mod linalg;
pub mod memory;
mod method;
pub mod methods;
mod orthonormalise;
pub mod plan;
mod prior;
mod reflections;
pub mod registry;
mod scalar;
mod scores;
mod secular;
mod shifted;
mod spectrum;
mod statistics;
mod tridiagonal;
mod truncation;
mod width;
mod words;

pub use certificate::{Assumptions, Bounds, Certificate, Gaussian, Verdict};
pub use classifier::{CHUNK, Classifier, LiftedSamples, UNCALIBRATED, Weights, softmax};
pub use config::{Config, Schedule};
pub use error::Error;
pub use features::{Features, IntoFeatures, Present};
pub use filter::{Filter, Ridge};
pub use label::{Label, LabelTable};
pub use learner::{Learner, StreamSizes, Summary};
pub use lift::FeatureSpace;
pub use methods::{Builder, Edited, Model};
pub use prior::Prior;
pub use scores::Scores;
pub use truncation::Truncation;
pub use width::Width;

/// The parts of models, for code that stores models, extends the engine, or studies it.
pub mod internals {
    pub use crate::basis::{Basis, Columns, Rows, Split};
    pub use crate::buffer::{Buffer, Source};
    pub use crate::delta::{Delta, Receiver};
    pub use crate::dual::packs;
    pub use crate::factor::Factor;
    pub use crate::gram::{Eigen, Gram, Grid};
    pub use crate::methods::{Evicted, ExplicitModel, KeptWeights, KernelModel, KernelState};
    pub use crate::scalar::Scalar;
    pub use crate::statistics::{Cut, DEFAULT_DROP, Losses, Masses, State, Statistics, Step, Weighted};
    pub use crate::words::count;
}

/// Compiles and runs the examples of the documentation page on the library.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/api.md")]
struct ApiPage;
