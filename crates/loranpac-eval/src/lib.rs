//! Around the engine: feature files, streams of tasks, the accuracy matrix and runs.
//!
//! Data flows one way: file -> [`Dataset`] -> [`stream::tasks`] -> [`run::Experiment`] -> [`run::Run`], a plain value
//! that is written as JSON.

pub mod chart;
pub mod dataset;
pub mod embedded;
pub mod error;
pub mod formats;
pub mod metrics;
pub mod order;
pub mod page;
pub mod paper;
pub mod pilot;
pub mod plan;
pub mod recipe;
pub mod report;
pub mod run;
pub mod samples;
pub mod spec;
pub mod stability;
pub mod stream;
pub mod sweep;
pub mod system;
pub mod text;
pub mod view;

pub use dataset::Dataset;
pub use error::Error;
