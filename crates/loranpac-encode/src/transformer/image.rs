//! A vision transformer with its preprocessing.

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::vit::Vit;
use crate::encoder::{Batch, Encoder, Image, Modality};
use crate::error::Error;

/// Images whose pixels are in memory as numbers at the same time.
const IMAGES: usize = 32;

/// How an image becomes the input of a network.
pub trait Prepare: Send + Sync {
    /// Writes the red, green and blue planes of an image, resized and normalised, row by row. All have the same size, a square.
    fn apply(&self, image: &Image, planes: &mut [f32]);

    /// All that determines its result, for digests.
    fn description(&self) -> String;
}

/// A vision transformer with its preprocessing, which gives images of [`Vit::side`] pixels.
pub struct ImageEncoder {
    vit: Vit,
    prepare: Box<dyn Prepare>,
}

impl ImageEncoder {
    /// Puts them together.
    pub fn new(vit: Vit, prepare: Box<dyn Prepare>) -> ImageEncoder {
        ImageEncoder { vit, prepare }
    }
}

impl Encoder for ImageEncoder {
    fn name(&self) -> &str {
        self.vit.name()
    }

    fn modality(&self) -> Modality {
        Modality::Image
    }

    fn dim(&self) -> usize {
        self.vit.dim()
    }

    fn layers(&self) -> usize {
        self.vit.layers()
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::new().chain_update(self.vit.digest()).chain_update(self.prepare.description()).finalize().into()
    }

    fn encode(&self, batch: Batch<'_>, layers: &[usize]) -> Result<Vec<f32>, Error> {
        if let Some(layer) = layers.iter().find(|layer| **layer >= self.layers()) {
            return Err(Error::Layer { encoder: self.name().to_owned(), layers: self.layers(), layer: *layer });
        }
        let Batch::Images(images) = batch else {
            let (encoder, wanted) = (self.name().to_owned(), Modality::Image);
            return Err(Error::Modality { encoder, wanted, given: batch.modality() });
        };
        let size = 3 * self.vit.side() * self.vit.side();
        let mut planes = vec![0.0; images.len().min(IMAGES) * size];
        let mut features = Vec::with_capacity(images.len() * layers.len() * self.dim());
        for images in images.chunks(IMAGES) {
            let planes = &mut planes[..images.len() * size];
            planes.par_chunks_mut(size).zip(images).for_each(|(planes, image)| self.prepare.apply(image, planes));
            features.extend(self.vit.features(planes, images.len(), layers));
        }
        Ok(features)
    }
}
