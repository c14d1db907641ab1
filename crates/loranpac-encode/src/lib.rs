//! Encoders: images and texts in, features out.
//!
//! An [`Encoder`] turns a [`Batch`] of images or texts into rows of features. [`image::decode`] makes an [`Image`] of a
//! file's bytes, and [`Preprocess`] makes the numbers that a network reads of an image.

mod basic;
mod cache;
mod embedding;
mod encoder;
mod error;
mod find;
pub mod image;
pub mod input;
mod modality;
mod ngrams;
mod onnx;
mod open;
mod preprocess;
mod rows;
mod server;
mod tokenize;
mod transformer;

pub use basic::ImageBasic;
pub use cache::{Cache, Key};
pub use embedding::{Embedding, EmbeddingOptions, Encoded};
pub use encoder::{Batch, Encoder, Image};
pub use error::{Error, ImageProblem, OnnxProblem, ServerProblem};
pub use find::find;
pub use image::Limits;
pub use input::{Data, Input, InputOptions, Inputs, Present, Tags};
pub use modality::Modality;
pub use ngrams::TextNgrams;
pub use onnx::Onnx;
pub use open::{BUILT_IN, BuiltIn, OpenOptions, is_encoder, open};
pub use preprocess::{Filter, Preprocess, Resize};
pub use rows::{RawOptions, Watch, read_raw};
pub use server::Server;
pub use transformer::{ImageEncoder, TextEncoder, Vit};

/// A digest in hexadecimal.
pub fn hex(digest: &[u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
