//! Models on disk, and what leaves them.
//!
//! A model is a folder `NAME.lrp`: segments that are written once, and a manifest that is replaced in one step
//! (`docs/format.md` has every detail). [`Model`] opens it, changes it in memory and commits the change as a whole: a
//! power cut, a full disk or a killed process leaves the model as it was or as it is to be, and nothing in between.

mod beside;
mod commit;
mod digest;
pub mod disk;
mod encoder;
pub mod error;
pub mod inference;
pub mod lift;
mod load;
pub mod manifest;
mod merge;
mod model;
pub mod onnx;
mod precision;
mod segment;
pub mod temperature;

pub use beside::Beside as AtomicFile;
pub use digest::TaskDigest;
pub use encoder::Encoder;
pub use error::Error;
pub use inference::Inference;
pub use lift::LiftRecord;
pub use manifest::Manifest;
pub use merge::{Merged, Part, merge};
pub use model::{Model, Settings, Verified};
pub use precision::Precision;
pub use segment::FileEntry;
