//! Transformers: ViT and BERT from safetensors files.
//!
//! Activations and weights are matrices of strips (`strips`), so that one kernel (`kernel`) computes linear layers and attention without
//! packing. `scheme` has the names that libraries give to tensors.

mod attention;
mod bert;
mod block;
mod config;
mod gradient;
mod image;
mod kernel;
mod linear;
mod math;
mod model;
mod module;
mod network;
mod norm;
mod open;
mod pooling;
mod positions;
mod scheme;
mod strips;
#[cfg(test)]
mod testing;
mod text;
mod train;
mod vision;
mod vit;
mod weights;
#[cfg(test)]
pub(crate) mod whole;

pub use image::ImageEncoder;
pub use model::Transformer;
pub use module::ModuleKind;
pub(crate) use module::{Modules, Parameters, Random, Start, Tensor};
pub(crate) use network::{Given, Network};
pub use open::open;
pub use text::TextEncoder;
pub(crate) use train::{Dropout, Inserter, Inserts, Pooled, Prefix, Tokens, Tuner};
pub use vit::Vit;
pub(crate) use weights::Weights;
