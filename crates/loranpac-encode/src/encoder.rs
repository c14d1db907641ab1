//! The vocabulary of encoders: images, batches, and the trait that each kind of encoder implements.

use loranpac_data::EncodedBy;

use crate::error::Error;
use crate::hex::hex;
use crate::modality::Modality;

/// An image with 8 bits for each of red, green and blue, upright (its orientation was applied).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Pixels per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Red, green and blue of each pixel, row by row.
    pub pixels: Vec<u8>,
}

/// Inputs that are encoded together.
#[derive(Debug, Clone, Copy)]
pub enum Batch<'a> {
    /// Images of any sizes.
    Images(&'a [Image]),
    /// Texts of any lengths.
    Texts(&'a [&'a str]),
}

impl<'a> Batch<'a> {
    /// Its texts; an error for another kind of input. `encoder` is the name of the encoder that reads texts.
    pub fn texts(self, encoder: &str) -> Result<&'a [&'a str], Error> {
        match self {
            Batch::Texts(texts) => Ok(texts),
            Batch::Images(_) => Err(wrong(encoder, Modality::Text, Modality::Image)),
        }
    }

    /// Its images; an error for another kind of input. `encoder` is the name of the encoder that reads images.
    pub fn images(self, encoder: &str) -> Result<&'a [Image], Error> {
        match self {
            Batch::Images(images) => Ok(images),
            Batch::Texts(_) => Err(wrong(encoder, Modality::Image, Modality::Text)),
        }
    }

    /// Number of inputs.
    pub fn len(&self) -> usize {
        match self {
            Batch::Images(images) => images.len(),
            Batch::Texts(texts) => texts.len(),
        }
    }

    /// Whether it has no inputs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What its inputs are.
    pub fn modality(&self) -> Modality {
        match self {
            Batch::Images(_) => Modality::Image,
            Batch::Texts(_) => Modality::Text,
        }
    }
}

/// Turns inputs into features. The features of an input do not depend on the other inputs of its batch beyond rounding.
pub trait Encoder: Send + Sync {
    /// A short name for people, such as `vit-base-patch16-224`.
    fn name(&self) -> &str;

    /// What it reads.
    fn modality(&self) -> Modality;

    /// Features per input and layer.
    fn dim(&self) -> usize;

    /// Number of layers whose features can be had, at least 1. The last, `layers() - 1`, is the encoder's output.
    fn layers(&self) -> usize {
        1
    }

    /// SHA-256 of everything that determines its features: weights, architecture and preprocessing.
    fn digest(&self) -> [u8; 32];

    /// The features of a fixed input, where the digest does not determine them: the weights of a server may change. A cache
    /// compares them with those of its other features.
    fn probe(&self) -> Option<&[f32]> {
        None
    }

    /// Inputs per batch at which it is fastest.
    fn batch(&self) -> usize {
        32
    }

    /// Features of a batch: a row of `layers.len() * dim()` numbers for each input, the given layers side by side.
    ///
    /// # Errors
    /// If the inputs are of the other modality, a layer is out of range, or an input cannot be encoded.
    fn encode(&self, batch: Batch<'_>, layers: &[usize]) -> Result<Vec<f32>, Error>;
}

/// Name and digest of an encoder, as a file of its features records them.
pub fn encoded_by(encoder: &dyn Encoder) -> EncodedBy {
    EncodedBy { name: encoder.name().to_owned(), digest: hex(&encoder.digest()) }
}

/// The largest difference of two answers to one text, as a share of their length: rounding varies from machine to machine.
const DRIFT: f64 = 0.01;

/// Whether two answers to one text are those of the same weights.
pub(crate) fn same_answers(before: &[f32], now: &[f32]) -> bool {
    let length = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let drift = length(&mut before.iter().zip(now).map(|(&before, &now)| f64::from(before) - f64::from(now)));
    drift <= DRIFT * length(&mut before.iter().map(|&value| f64::from(value)))
}

/// Refuses layers that an encoder does not have.
pub(crate) fn check_layers(encoder: &dyn Encoder, layers: &[usize]) -> Result<(), Error> {
    let count = encoder.layers();
    match layers.iter().find(|&&layer| layer >= count) {
        Some(&layer) => Err(Error::Layer { encoder: encoder.name().to_owned(), layers: count, layer }),
        None => Ok(()),
    }
}

fn wrong(encoder: &str, wanted: Modality, given: Modality) -> Error {
    Error::Modality { encoder: encoder.to_owned(), wanted, given }
}
