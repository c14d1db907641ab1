//! Models on disk, and what leaves them.

mod beside;
pub mod error;
pub mod inference;
pub mod lift;
pub mod onnx;
mod precision;

pub use error::Error;
pub use inference::Inference;
pub use lift::LiftRecord;
pub use precision::Precision;
