//! Experiments with the engine: streams of tasks, runs, recipes, sweeps and reports.
//!
//! Data flows one way: a [`source::Source`] and some [`spec::Spec`]s make a [`plan::Plan`], which makes [`run::Run`]s, plain
//! values that are written as JSON.

pub mod adapted;
mod adapters;
pub mod by_class;
pub mod cache;
pub mod chart;
pub mod choice;
pub mod choices;
pub mod effort;
pub mod error;
pub mod images;
mod kept;
pub mod maps;
pub mod measure;
pub mod metrics;
pub mod order;
pub mod origin;
pub mod page;
pub mod paper;
pub mod pilot;
pub mod plan;
pub mod preflight;
pub mod prompted;
pub mod raw;
pub mod recipe;
pub mod record;
pub mod report;
pub mod run;
pub mod say;
pub mod settings;
pub mod source;
pub mod spec;
pub mod stability;
pub mod stream;
pub mod sweep;
pub mod value;
pub mod view;

pub use error::Error;
