//! Around the engine: feature files, streams of tasks, the accuracy matrix and runs.
//!
//! Data flows one way: file -> [`Dataset`] -> [`stream::tasks`] -> [`run::Experiment`] -> [`run::Run`], a plain value
//! that is written as JSON.

pub mod dataset;
pub mod embedded;
pub mod error;
pub mod formats;
pub mod metrics;
pub mod order;
pub mod report;
pub mod run;
pub mod stream;
pub mod system;

pub use dataset::Dataset;
pub use error::Error;
