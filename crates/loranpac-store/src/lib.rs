//! Models on disk, and what leaves them.

pub mod error;
pub mod lift;

pub use error::Error;
pub use lift::LiftRecord;
