//! Encoders: images and texts in, features out.
//!
//! An [`Encoder`] turns a [`Batch`] of images or texts into rows of features.

mod encoder;
mod error;
mod tokenize;
mod transformer;

pub use encoder::{Batch, Encoder, Image, Modality};
pub use error::Error;
pub use transformer::{ImageEncoder, Prepare, TextEncoder, Vit};
