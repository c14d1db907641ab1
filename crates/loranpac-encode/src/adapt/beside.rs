//! Frozen and adapted features side by side.

use sha2::{Digest, Sha256};

use crate::encoder::{Batch, Encoder};
use crate::error::Error;
use crate::modality::Modality;
use crate::transformer::Transformer;

/// An encoder before and after adaptation: each row has the frozen features of a layer, then the adapted ones.
pub struct SideBySide {
    frozen: Transformer,
    adapted: Transformer,
}

impl SideBySide {
    /// Puts them together.
    pub fn new(frozen: Transformer, adapted: Transformer) -> SideBySide {
        SideBySide { frozen, adapted }
    }
}

impl Encoder for SideBySide {
    fn name(&self) -> &str {
        self.frozen.name()
    }

    fn modality(&self) -> Modality {
        self.frozen.modality()
    }

    fn dim(&self) -> usize {
        self.frozen.dim() + self.adapted.dim()
    }

    fn layers(&self) -> usize {
        self.frozen.layers()
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::new_with_prefix("frozen and adapted\n").chain_update(self.adapted.digest()).finalize().into()
    }

    fn batch(&self) -> usize {
        self.frozen.batch()
    }

    fn encode(&self, batch: Batch<'_>, layers: &[usize]) -> Result<Vec<f32>, Error> {
        let [frozen, adapted] = [self.frozen.encode(batch, layers)?, self.adapted.encode(batch, layers)?];
        let d = self.frozen.dim();
        Ok(frozen.chunks(d).zip(adapted.chunks(d)).flat_map(|(a, b)| [a, b].concat()).collect())
    }
}
