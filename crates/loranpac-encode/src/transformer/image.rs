//! A vision transformer with its preprocessing.

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::vit::Vit;
use crate::encoder::{Batch, Encoder, check_layers};
use crate::error::Error;
use crate::image;
use crate::modality::Modality;
use crate::preprocess::Preprocess;

/// Images whose pixels are in memory as numbers at the same time, and the most of these numbers.
const IMAGES: usize = 32;
const NUMBERS: usize = 1 << 26;

/// A vision transformer with its preprocessing, which gives images of [`Vit::side`] pixels. Clones share the weights.
#[derive(Clone)]
pub struct ImageEncoder {
    vit: Vit,
    preprocess: Preprocess,
    digest: [u8; 32],
}

impl ImageEncoder {
    /// Puts them together.
    pub fn new(vit: Vit, preprocess: Preprocess) -> ImageEncoder {
        let digest = Sha256::new().chain_update(vit.digest()).chain_update(preprocess.to_string());
        let digest = image::add_version(digest, image::VERSION).finalize().into();
        ImageEncoder { vit, preprocess, digest }
    }

    /// The network.
    pub(super) fn vit(&self) -> &Vit {
        &self.vit
    }

    /// The preprocessing.
    pub(crate) fn preprocess(&self) -> &Preprocess {
        &self.preprocess
    }

    /// The same preprocessing with another network of the same sizes. `digest` is that of the result.
    pub(super) fn with(&self, vit: Vit, digest: [u8; 32]) -> ImageEncoder {
        ImageEncoder { vit, preprocess: self.preprocess.clone(), digest }
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
        self.digest
    }

    fn encode(&self, batch: Batch<'_>, layers: &[usize]) -> Result<Vec<f32>, Error> {
        check_layers(self, layers)?;
        let images = batch.images(self.name())?;
        let size = 3 * self.vit.side() * self.vit.side();
        let most = (NUMBERS / size).clamp(1, IMAGES);
        let mut planes = vec![0.0; images.len().min(most) * size];
        let mut features = Vec::with_capacity(images.len() * layers.len() * self.dim());
        for images in images.chunks(most) {
            let planes = &mut planes[..images.len() * size];
            planes.par_chunks_mut(size).zip(images).for_each(|(planes, image)| self.preprocess.apply(image, planes));
            features.extend(self.vit.features(planes, images.len(), layers));
        }
        Ok(features)
    }
}
