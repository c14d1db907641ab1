//! Encoders: images and texts in, features out.
//!
//! An [`Encoder`] turns a [`Batch`] of images or texts into rows of features. [`image::decode`] makes an [`Image`] of a
//! file's bytes, and [`Preprocess`] makes the numbers that a network reads of an image.

mod basic;
mod cache;
mod embedding;
mod encoder;
mod error;
pub mod image;
pub mod input;
mod modality;
mod ngrams;
mod onnx;
mod preprocess;
mod server;

pub use basic::ImageBasic;
pub use cache::{Cache, Key};
pub use embedding::{Embedding, EmbeddingOptions, Encoded};
pub use encoder::{Batch, Encoder, Image};
pub use error::{Error, ImageProblem, OnnxProblem, ServerProblem};
pub use modality::Modality;
pub use ngrams::TextNgrams;
pub use onnx::Onnx;
pub use preprocess::{Filter, Preprocess, Resize};
pub use server::Server;
