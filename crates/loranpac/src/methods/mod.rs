//! The methods, one file each.

pub(crate) mod air;
pub(crate) mod anacp;
mod builder;
#[cfg(test)]
pub(crate) mod dummy;
pub(crate) mod ease;
mod explicit;
mod factors;
pub(crate) mod family;
pub(crate) mod fecam;
pub(crate) mod fly_cl;
mod holdout;
pub(crate) mod incremental_svd;
mod kernel;
pub(crate) mod klda;
pub(crate) mod knn;
pub mod lda;
mod lifted;
mod model;
pub mod ogd;
pub(crate) mod prompts;
pub(crate) mod ranpac;
pub(crate) mod ridge_truncated;
pub(crate) mod rls;
mod shuffle;
pub(crate) mod simplecil;
pub(crate) mod softmax;

pub use air::Air;
pub use anacp::AnaCp;
pub use builder::Builder;
pub use explicit::ExplicitModel;
pub use fecam::FeCam;
pub use fly_cl::FlyCl;
pub use holdout::{GRID, validation_errors};
pub use incremental_svd::IncrementalSvd;
pub use kernel::{Evicted, KeptWeights, KernelModel, KernelState};
pub use klda::Klda;
pub use knn::Knn;
pub use lda::Lda;
pub use model::Model;
pub use ogd::Ogd;
pub use ranpac::RanPac;
pub use ridge_truncated::RidgeTruncated;
pub use rls::Rls;
pub use simplecil::SimpleCil;
pub use softmax::Softmax;

use crate::delta::Delta;

/// The result of an edit.
#[derive(Debug, Clone)]
pub struct Edited {
    /// Samples that could not be verified to have been learned under their labels; the certificate counts them.
    pub unchecked: usize,
    /// The changes.
    pub delta: Delta,
}
