//! From raw inputs to features: inputs in batches, encoded, with a cache.
//!
//! A batch consists of the inputs at fixed places of the source, whatever the cache holds. If the features of one of them
//! are missing, the whole batch is encoded: rounding depends on a batch's composition, and so a run that was killed and
//! run again gives the same bits as one that was not.

use std::sync::Arc;

use loranpac_data::Split;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::cache::{Cache, Key};
use crate::encoder::{Batch, Encoder, Image, check_layers};
use crate::error::Error;
use crate::image::{self, Limits};
use crate::input::{Data, Input, Inputs, Tags};

/// How inputs are encoded.
#[derive(Debug, Clone, Default)]
pub struct EmbeddingOptions {
    /// The encoder's layers, side by side in each row. None: the last.
    pub layers: Option<Vec<usize>>,
    /// The split to encode, of inputs that have one. None: all.
    pub split: Option<Split>,
    /// Whether inputs that cannot be read are skipped.
    pub skip_bad: bool,
    /// Limits on images.
    pub limits: Limits,
}

/// Encodes inputs batch after batch.
pub struct Embedding {
    inputs: Inputs,
    encoder: Arc<dyn Encoder>,
    layers: Vec<usize>,
    cache: Option<Cache>,
    options: EmbeddingOptions,
    skipped: Vec<Error>,
    computed: usize,
}

/// Inputs that were encoded together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Encoded {
    /// Names of the inputs.
    pub names: Vec<String>,
    /// Their tags.
    pub tags: Vec<Tags>,
    /// A row of features for each.
    pub features: Vec<f32>,
}

impl Embedding {
    /// Encodes `inputs`, with features from and to `cache`, which belongs to this encoder and these layers
    /// ([`Embedding::cache_digest`]).
    ///
    /// # Errors
    /// If the encoder does not have one of the layers.
    pub fn new(
        inputs: Inputs,
        encoder: Arc<dyn Encoder>,
        cache: Option<Cache>,
        options: EmbeddingOptions,
    ) -> Result<Embedding, Error> {
        let layers = options.layers.clone().unwrap_or_else(|| vec![encoder.layers() - 1]);
        check_layers(&*encoder, &layers)?;
        Ok(Embedding { inputs, encoder, layers, cache, options, skipped: Vec::new(), computed: 0 })
    }

    /// The digest under which the features of an encoder's layers are cached.
    pub fn cache_digest(encoder: &dyn Encoder, layers: Option<&[usize]>) -> [u8; 32] {
        let last = [encoder.layers() - 1];
        let mut digest = Sha256::new_with_prefix(encoder.digest());
        layers.unwrap_or(&last).iter().for_each(|layer| digest.update((*layer as u64).to_le_bytes()));
        digest.finalize().into()
    }

    /// Numbers per input.
    pub fn row(&self) -> usize {
        self.layers.len() * self.encoder.dim()
    }

    /// Number of inputs, if it is known before they are read; those of the other split included.
    pub fn count_hint(&self) -> Option<usize> {
        self.inputs.count_hint()
    }

    /// Inputs that were encoded so far, rather than found in the cache.
    pub fn computed(&self) -> usize {
        self.computed
    }

    /// Why inputs were skipped so far.
    pub fn skipped(&self) -> &[Error] {
        &self.skipped
    }

    /// Files that were skipped because they are of another kind.
    pub fn other_files(&self) -> impl Iterator<Item = &str> {
        self.inputs.skipped()
    }

    /// The next batch; none at the end.
    ///
    /// # Errors
    /// If an input cannot be read, unless such inputs are skipped; if the encoder fails.
    pub fn next(&mut self) -> Result<Option<Encoded>, Error> {
        loop {
            let batch = self.take()?;
            if batch.is_empty() {
                return Ok(None);
            }
            let encoded = self.encode(batch)?;
            if !encoded.names.is_empty() {
                return Ok(Some(encoded));
            }
        }
    }

    /// The next inputs of the split.
    fn take(&mut self) -> Result<Vec<Input>, Error> {
        let mut batch = Vec::new();
        while batch.len() < self.encoder.batch() {
            match self.inputs.next() {
                None => break,
                Some(Ok(input)) => {
                    let other = |wanted| input.tags.split.is_some_and(|split| split != wanted);
                    if !self.options.split.is_some_and(other) {
                        batch.push(input);
                    }
                }
                Some(Err(error)) => self.skip(error)?,
            }
        }
        Ok(batch)
    }

    fn skip(&mut self, error: Error) -> Result<(), Error> {
        if !self.options.skip_bad || !error.concerns_one_input() {
            return Err(error);
        }
        self.skipped.push(error);
        Ok(())
    }

    fn encode(&mut self, batch: Vec<Input>) -> Result<Encoded, Error> {
        let keys: Vec<Key> = batch.par_iter().map(|input| key(&input.data)).collect();
        let mut known = Vec::with_capacity(batch.len());
        for key in &keys {
            known.push(self.cache.as_mut().map_or(Ok(None), |cache| cache.get(key))?);
        }
        // Images that are not known are decoded first: if none of them can be, nothing is left to encode.
        let limits = &self.options.limits;
        let missing =
            |(input, known): (&Input, &Option<Vec<f32>>)| known.is_none().then(|| decode(input, limits)).flatten();
        let mut images: Vec<Option<Result<Image, Error>>> = batch.par_iter().zip(&known).map(missing).collect();
        let usable: Vec<bool> = images.iter().map(|image| !matches!(image, Some(Err(_)))).collect();
        for image in images.iter_mut().filter(|image| matches!(image, Some(Err(_)))) {
            if let Some(Err(error)) = image.take() {
                self.skip(error)?;
            }
        }
        let row = self.row();
        let kept: Vec<usize> = (0..batch.len()).filter(|&at| usable[at]).collect();
        let mut features = vec![0.0; kept.len() * row];
        if kept.iter().any(|&at| known[at].is_none()) {
            features = self.compute(&batch, &kept, images)?;
        }
        for (&at, target) in kept.iter().zip(features.chunks_exact_mut(row)) {
            match &known[at] {
                Some(found) => target.copy_from_slice(found),
                None => self.computed += 1,
            }
            if let (Some(cache), None) = (&mut self.cache, &known[at]) {
                cache.put(keys[at], target);
            }
        }
        if let Some(cache) = &mut self.cache {
            cache.flush()?;
        }
        let mut encoded = Encoded { features, ..Encoded::default() };
        for (input, _) in batch.into_iter().zip(usable).filter(|(_, usable)| *usable) {
            encoded.names.push(input.name);
            encoded.tags.push(input.tags);
        }
        Ok(encoded)
    }

    /// Features of the inputs at the places `kept`. `images` has those that were decoded before.
    fn compute(
        &self,
        batch: &[Input],
        kept: &[usize],
        mut images: Vec<Option<Result<Image, Error>>>,
    ) -> Result<Vec<f32>, Error> {
        let mut texts = Vec::new();
        let mut decoded = Vec::new();
        for &at in kept {
            match &batch[at].data {
                Data::Text(text) => texts.push(text.as_str()),
                Data::Image(_) => {
                    decoded.push(images[at].take().or_else(|| decode(&batch[at], &self.options.limits)).transpose()?)
                }
            }
        }
        let decoded: Vec<Image> = decoded.into_iter().flatten().collect();
        let inputs = if decoded.is_empty() { Batch::Texts(&texts) } else { Batch::Images(&decoded) };
        let features = self.encoder.encode(inputs, &self.layers)?;
        debug_assert_eq!(features.len(), kept.len() * self.row());
        Ok(features)
    }
}

/// The image of an input that is one.
fn decode(input: &Input, limits: &Limits) -> Option<Result<Image, Error>> {
    match &input.data {
        Data::Image(bytes) => Some(image::decode(&input.name, bytes, limits)),
        Data::Text(_) => None,
    }
}

/// Digest of the contents of an input.
fn key(data: &Data) -> Key {
    let (kind, bytes) = match data {
        Data::Image(bytes) => (b"image\n", bytes.as_slice()),
        Data::Text(text) => (b"texts\n", text.as_bytes()),
    };
    Sha256::new_with_prefix(kind).chain_update(bytes).finalize().into()
}
