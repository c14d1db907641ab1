//! Errors of encoders.

use std::io;
use std::path::PathBuf;

use crate::encoder::Modality;

/// Why an encoder or an input was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The encoder reads another kind of input.
    #[error("the encoder {encoder} reads {}, not {}", plural(*wanted), plural(*given))]
    Modality {
        /// Name of the encoder.
        encoder: String,
        /// What it reads.
        wanted: Modality,
        /// What it was given.
        given: Modality,
    },
    /// A layer that the encoder does not have.
    #[error("the encoder {encoder} has layers 0 to {}, not {layer}", layers - 1)]
    Layer {
        /// Name of the encoder.
        encoder: String,
        /// Number of its layers.
        layers: usize,
        /// The layer that was asked for.
        layer: usize,
    },
    /// A file of weights is damaged.
    #[error("{path}: {reason}", path = path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// No architecture has the names of a file's tensors.
    #[error("{path}: no supported architecture has a tensor {name} (supported are ViT, DeiT, DINOv2, CLIP and BERT)", path = path.display())]
    Architecture {
        /// The file.
        path: PathBuf,
        /// The first of its tensors.
        name: String,
    },
    /// A tensor is missing.
    #[error("{path}: tensor {name} is missing", path = path.display())]
    TensorMissing {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A tensor has another shape.
    #[error("{path}: tensor {name} has shape {found:?} instead of {expected:?}", path = path.display())]
    TensorShape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The shape that follows from the other tensors.
        expected: Vec<usize>,
        /// Its shape.
        found: Vec<usize>,
    },
    /// A tensor has a type of element that is not read.
    #[error("{path}: tensor {name} has type {dtype} (convert it to F32, F16 or BF16)", path = path.display())]
    TensorType {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its type.
        dtype: String,
    },
    /// A tensor that the architecture does not have: the model would compute something else.
    #[error("{path}: tensor {name} has no place in a {model} that loranpac supports", path = path.display())]
    TensorUnknown {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The architecture that was recognised.
        model: &'static str,
    },
    /// A setting of a model is not supported.
    #[error("{path}: {reason}", path = path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A tokenizer cannot be read, or does not fit its model.
    #[error("{path}: {reason}", path = path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A text cannot be divided into tokens.
    #[error("a text cannot be divided into tokens: {reason}")]
    Tokenize {
        /// What the tokenizer reports.
        reason: String,
    },
}

fn plural(modality: Modality) -> &'static str {
    match modality {
        Modality::Image => "images",
        Modality::Text => "texts",
    }
}
