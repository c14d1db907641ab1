//! Experiments with the engine: streams of tasks, runs, recipes, sweeps and reports.
//!
//! Data flows one way: file -> [`loranpac_data::Dataset`] -> [`stream::tasks`] -> [`run::Experiment`] -> [`run::Run`], a plain value
//! that is written as JSON.

pub mod chart;
pub mod error;
pub mod measure;
pub mod metrics;
pub mod order;
pub mod origin;
pub mod page;
pub mod paper;
pub mod pilot;
pub mod plan;
pub mod recipe;
pub mod report;
pub mod run;
pub mod spec;
pub mod stability;
pub mod stream;
pub mod sweep;
pub mod value;
pub mod view;

pub use error::Error;
