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
}

fn plural(modality: Modality) -> &'static str {
    match modality {
        Modality::Image => "images",
        Modality::Text => "texts",
    }
}
