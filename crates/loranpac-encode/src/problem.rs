//! What can be wrong with an image, an embedding server, or an ONNX file.

use std::time::Duration;

/// Why an image was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageProblem {
    /// No bytes.
    #[error("the file is empty")]
    Empty,
    /// The bytes begin like no supported format.
    #[error("not an image; JPEG, PNG, WebP, BMP, GIF and TIFF can be read")]
    UnknownFormat,
    /// A side is zero.
    #[error("the image has no pixels ({width} x {height})")]
    NoPixels {
        /// Pixels per row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// More pixels than the limit.
    #[error("the image has {width} x {height} pixels, more than the limit of {} million", limit / 1_000_000)]
    TooLarge {
        /// Pixels per row.
        width: u32,
        /// Rows.
        height: u32,
        /// The most pixels.
        limit: u64,
    },
    /// Decoding needs more memory than the limit.
    #[error(
        "decoding {width} x {height} pixels needs up to {} MiB, more than the limit of {} MiB",
        needed.div_ceil(1 << 20),
        limit >> 20
    )]
    Memory {
        /// Pixels per row.
        width: u32,
        /// Rows.
        height: u32,
        /// Bytes that are needed.
        needed: u64,
        /// The most bytes.
        limit: u64,
    },
    /// The decoder stopped at the limit on memory.
    #[error("decoding needs more memory than the limit")]
    DecoderMemory,
    /// The data ends too early.
    #[error("the image is truncated")]
    Truncated,
    /// The data cannot be decoded.
    #[error("the image is damaged: {0}")]
    Damaged(String),
    /// A rare kind of image.
    #[error("this kind of image is not supported: {0}")]
    Unsupported(String),
}

/// What is wrong with an embedding server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerProblem {
    /// The address has a password, or more than the model's name behind the question mark.
    #[error(
        "an address may have nothing but `?model=NAME` behind the question mark, and no password; set a key in the environment variable \
         LORANPAC_API_KEY"
    )]
    Credentials,
    /// It did not answer.
    #[error("no answer: {0}")]
    Unreachable(String),
    /// It did not answer in time, or not to the end.
    #[error("no complete answer within {0:?}; `timeout` allows more")]
    Timeout(Duration),
    /// It refused the request.
    #[error("status {status}{}{message}", if message.is_empty() { "" } else { ": " })]
    Status {
        /// The status of its answer.
        status: u16,
        /// The beginning of its answer.
        message: String,
    },
    /// It refers to another address.
    #[error("status {status}: it refers to {target}; give that address if you trust it with your texts")]
    Redirect {
        /// The status of its answer.
        status: u16,
        /// The other address.
        target: String,
    },
    /// Its answer has another shape.
    #[error("the answer cannot be used: {0}")]
    Answer(String),
    /// It answers one text differently than before.
    #[error("its model has changed since the command began, or its answers vary; run the command again")]
    Changed,
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
