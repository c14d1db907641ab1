//! Encoders: images and texts in, features out.
//!
//! An [`Encoder`] turns a [`Batch`] of images or texts into rows of features. [`image::decode`] makes an [`Image`] of a
//! file's bytes, and [`Preprocess`] makes the numbers that a network reads of an image. [`Inputs`] are raw inputs in
//! folders, archives and tables, [`Embedding`] encodes them batch after batch, and a [`FeatureSet`] is all of it. [`adapt`] trains
//! small modules inside a transformer, [`prompt`] learns tasks by prompts for it.

pub mod adapt;
mod basic;
mod cache;
mod embedding;
mod encoder;
mod error;
mod features;
mod find;
mod hex;
pub mod image;
pub mod input;
mod modality;
mod ngrams;
mod onnx;
mod open;
mod preprocess;
mod problem;
pub mod prompt;
mod regular;
mod rows;
mod sealed;
mod server;
mod tokenize;
mod transformer;

pub use basic::ImageBasic;
pub use cache::{Cache, Key};
pub use embedding::{Embedding, EmbeddingOptions, Encoded};
pub use encoder::{Batch, Encoder, Image, encoded_by};
pub use error::Error;
pub use features::{FeatureSet, Needs};
pub use find::{find, find_adapter};
pub use hex::hex;
pub use image::Limits;
pub use input::{Data, Input, InputOptions, Inputs, Layout, Outline, Present, Tags};
pub use modality::Modality;
pub use ngrams::TextNgrams;
pub use onnx::Onnx;
pub use open::{BUILT_IN, BuiltIn, OpenOptions, is_encoder, open, open_transformer};
pub use preprocess::{Filter, Preprocess, Resize};
pub use problem::{ImageProblem, OnnxProblem, ServerProblem};
pub use rows::{RawOptions, RawSource, Watch, read_raw};
pub use server::Server;
pub use transformer::{ImageEncoder, ModuleKind, TextEncoder, Transformer, Vit};

/// What only tests and fuzz targets call.
#[doc(hidden)]
pub mod internals {
    pub use crate::adapt::{Probe, ProbeInput, read_unsealed, resume_unsealed};
    pub use crate::prompt::PromptProbe;
    pub use crate::server::features as server_features;
}
