//! A transformer of either kind, with its preprocessing.

use sha2::{Digest, Sha256};

use super::image::ImageEncoder;
use super::module::Modules;
use super::network::Network;
use super::text::TextEncoder;
use crate::encoder::{Batch, Encoder};
use crate::error::Error;
use crate::modality::Modality;

/// A transformer that can be adapted. Clones share the weights.
#[expect(clippy::large_enum_variant, reason = "only a few exist")]
#[derive(Clone)]
pub enum Transformer {
    /// Of images.
    Image(ImageEncoder),
    /// Of texts.
    Text(TextEncoder),
}

impl Transformer {
    /// The encoder inside.
    fn inner(&self) -> &dyn Encoder {
        match self {
            Transformer::Image(encoder) => encoder,
            Transformer::Text(encoder) => encoder,
        }
    }

    /// The network without its preprocessing.
    pub(crate) fn network(&self) -> Network {
        match self {
            Transformer::Image(encoder) => Network::Vit(encoder.vit().clone()),
            Transformer::Text(encoder) => Network::Bert(encoder.bert().clone()),
        }
    }

    /// The transformer with modules in it. `digest` is that of the modules.
    pub(crate) fn adapted(&self, modules: &Modules, digest: [u8; 32]) -> Transformer {
        let digest = Sha256::new().chain_update(self.digest()).chain_update(digest).finalize().into();
        match (self, self.network().adapted(modules)) {
            (Transformer::Image(encoder), Network::Vit(vit)) => Transformer::Image(encoder.with(vit, digest)),
            (Transformer::Text(encoder), Network::Bert(bert)) => Transformer::Text(encoder.with(bert, digest)),
            _ => unreachable!("a network of the other kind"),
        }
    }
}

impl Encoder for Transformer {
    fn name(&self) -> &str {
        self.inner().name()
    }

    fn modality(&self) -> Modality {
        self.inner().modality()
    }

    fn dim(&self) -> usize {
        self.inner().dim()
    }

    fn layers(&self) -> usize {
        self.inner().layers()
    }

    fn digest(&self) -> [u8; 32] {
        self.inner().digest()
    }

    fn batch(&self) -> usize {
        self.inner().batch()
    }

    fn encode(&self, batch: Batch<'_>, layers: &[usize]) -> Result<Vec<f32>, Error> {
        self.inner().encode(batch, layers)
    }
}
