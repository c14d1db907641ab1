//! Transformers: ViT and BERT from safetensors files.
//!
//! Activations and weights are matrices of strips (`strips`), so that one kernel (`kernel`) computes linear layers and attention without
//! packing. `scheme` has the names that libraries give to tensors.

mod attention;
mod bert;
mod block;
mod config;
mod image;
mod kernel;
mod linear;
mod math;
mod module;
mod norm;
mod open;
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
mod whole;

pub use image::ImageEncoder;
pub use open::open;
pub use text::TextEncoder;
pub use vit::Vit;
