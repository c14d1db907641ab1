//! Data for the loranpac engine: file formats in and out, data sets in memory, and samples some at a time.
//!
//! [`Reader`] reads samples in batches, whatever the size of the file; [`Dataset`] holds training and test samples of an
//! experiment.

pub mod atomic;
pub mod dataset;
pub mod disk;
pub mod embedded;
pub mod error;
pub mod formats;
mod reader;
mod rows;
pub mod system;
pub mod text;

pub use atomic::AtomicFile;
pub use dataset::Dataset;
pub use error::Error;
pub use reader::Reader;
pub use rows::{Batch, Format, Options, Split};
