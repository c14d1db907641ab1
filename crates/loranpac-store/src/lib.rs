//! Models on disk, and exports of them.
//!
//! A model is a folder `NAME.lrp`: segments that are written once, and a manifest that is replaced atomically
//! (`docs/format.md` describes every detail). [`Session`] opens it, changes it in memory and commits all changes at
//! once: after a power cut, a full disk or a killed process, the model is in its previous or in its new state, never in
//! between.

mod commit;
mod digest;
pub mod disk;
mod edit;
mod encoder;
pub mod error;
pub mod folder;
mod history;
pub mod inference;
pub mod lift;
mod load;
pub mod manifest;
mod merge;
mod needs;
pub mod onnx;
pub mod output;
mod precision;
mod prior;
mod save;
mod segment;
mod session;
pub mod temperature;
mod verify;

pub use digest::{Fingerprint, TaskDigest};
pub use edit::{EDIT_ROWS, Edited};
pub use encoder::{Encoder, Identity, Reference};
pub use error::Error;
pub use history::Rolled;
pub use inference::Inference;
pub use lift::LiftRecord;
pub use manifest::{Manifest, Settings};
pub use merge::{Merged, merge, merged_before};
pub use precision::Precision;
pub use segment::FileEntry;
pub use session::{ROWS, Session};
pub use verify::Verified;
