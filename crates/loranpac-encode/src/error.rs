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
    /// The cache of features cannot be used.
    #[error("cannot use the cache {path}: {source}; delete it, or go on without a cache", path = path.display())]
    Cache {
        /// Its file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A server cannot be used.
    #[error("the embedding server {address}: {problem}")]
    Server {
        /// Its address.
        address: String,
        /// What is wrong.
        problem: ServerProblem,
    },
    /// An ONNX file cannot be used.
    #[error("{path}: {problem}", path = path.display())]
    Onnx {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: OnnxProblem,
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
}

/// What is wrong with an embedding server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerProblem {
    /// It did not answer.
    #[error("no answer: {0}")]
    Unreachable(String),
    /// It refused the request.
    #[error("status {status}: {message}")]
    Status {
        /// The status of its answer.
        status: u16,
        /// The beginning of its answer.
        message: String,
    },
    /// Its answer has another shape.
    #[error("the answer cannot be used: {0}")]
    Answer(String),
}

/// What is wrong with an ONNX file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnnxProblem {
    /// It is damaged, or has operators that are not supported.
    #[error("the model cannot be loaded: {0}")]
    Load(String),
    /// It has another number of inputs.
    #[error("the model has {0} inputs; one input of images is expected")]
    Inputs(usize),
    /// Its input is no batch of images.
    #[error("the input has the shape {0}; (n, 3, height, width) or (n, height, width, 3) is expected")]
    InputShape(String),
    /// Preprocessing makes images of another size.
    #[error("the input has the shape {model}, but preprocessing makes images of {} x {}", found.0, found.1)]
    Size {
        /// Shape of the input.
        model: String,
        /// Height and width after preprocessing.
        found: (usize, usize),
    },
    /// It failed.
    #[error("the model failed: {0}")]
    Run(String),
    /// Its output cannot be used.
    #[error("the output is {0}; features (n, d) or maps (n, d, h, w) are expected")]
    OutputShape(String),
}

fn plural(modality: Modality) -> &'static str {
    match modality {
        Modality::Image => "images",
        Modality::Text => "texts",
    }
}
