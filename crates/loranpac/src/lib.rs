//! Continual learning on frozen features, in closed form.
//!
//! The engine of *LoRanPAC: Low-rank Random Features and Pre-trained Models for Bridging Theory and Practice in
//! Continual Learning* (ICLR 2025). Embeddings are lifted by random ReLU features; a truncated least-squares
//! classifier is kept up to date task after task, without stored samples.
//!
//! ```
//! use std::sync::Arc;
//! use loranpac::{Config, Features, Label, Learner, LoRanPac, lift};
//!
//! let lift = Arc::new(lift::Random::new(lift::Projection::from_seed(500, 2, 0, true), lift::Activation::Relu));
//! let mut model = LoRanPac::new(lift, Config::default())?;
//! // Classes arrive one after the other, under any labels.
//! model.learn(Features::new(&[1.0, 0.1, 0.9, -0.1], 2)?, &[Label::from("east"), Label::from("east")])?;
//! model.learn(Features::new(&[0.1, 1.0, -0.1, 1.1], 2)?, &[Label::from("north"), Label::from("north")])?;
//! let winners = model.predict(Features::new(&[0.0, 0.7], 2)?)?;
//! assert_eq!(model.classes().labels()[winners[0]], Label::from("north"));
//! # Ok::<(), loranpac::Error>(())
//! ```
//!
//! This crate reads no files, prints nothing, knows no clock and has no global state; it runs on the rayon pool of
//! its caller. Columns are samples, as in the paper: a C-order `(n, d)` array is the paper's `d x n` matrix.

mod band;
mod basis;
mod buffer;
mod certificate;
mod error;
mod features;
pub mod filter;
mod gram;
mod label;
pub mod learner;
pub mod lift;
mod linalg;
pub mod memory;
mod orthonormalise;
pub mod registry;
mod scalar;
mod shifted;
mod statistics;
mod tridiagonal;
mod truncation;

pub use basis::{Basis, Split};
pub use buffer::{Buffer, Source};
pub use certificate::{Assumptions, Bounds, Certificate, Gaussian, Verdict};
pub use error::Error;
pub use features::Features;
pub use filter::{Filter, Ridge};
pub use gram::{Eigen, Gram};
pub use label::{Label, LabelTable};
pub use learner::{
    Config, Editable, Form, Gone, Infinite, Kept, Learner, LoRanPac, Schedule, Scores, SimpleCil, StreamSizes, Summary,
};
pub use scalar::Scalar;
pub use statistics::{Changes, Cut, DEFAULT_DROP, Factor, Losses, State, Statistics, Step};
pub use truncation::Truncation;
