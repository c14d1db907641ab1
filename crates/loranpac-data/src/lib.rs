//! Data for the loranpac engine: file formats in and out, and data sets in memory.
//!
//! [`Reader`] reads samples in batches, whatever the size of the file; [`Texts`] reads a column of texts; [`Dataset`] holds the training and test samples of
//! an experiment; [`AtomicFile`] writes files.

pub mod atomic;
pub mod dataset;
pub mod disk;
pub mod embedded;
pub mod error;
pub mod fence;
pub mod formats;
mod open;
mod reader;
mod rows;
pub mod safetensors;
pub mod system;
pub mod text;
mod texts;

pub use atomic::AtomicFile;
pub use dataset::Dataset;
pub use error::{Error, ReadError};
pub use formats::Format;
pub use reader::Reader;
pub use rows::{Batch, DOMAIN, EncodedBy, LABEL, Options, Piece, Rows, SPLIT, Split, TAGS, TextOptions};
pub use texts::{TextRow, Texts};
