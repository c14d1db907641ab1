//! From raw inputs to features: inputs in batches, encoded, with a cache.
//!
//! A batch consists of the inputs at fixed places of the source, whatever the cache holds. If the features of one of them
//! are missing, the whole batch is encoded: rounding depends on a batch's composition, and so a run that was killed and
//! run again gives the same bits as one that was not.

use std::collections::HashMap;
use std::sync::Arc;

use loranpac::Features;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::cache::{Cache, Key};
use crate::encoder::{Batch, Encoder, Image, check_layers, same_answers};
use crate::error::Error;
use crate::image::{self, Limits};
use crate::input::{Data, Input, Inputs, Present, Tags};
use crate::modality::Modality;

/// Bytes of inputs beyond which a batch is complete.
const MOST_BYTES: usize = 64 << 20;
/// Images that are decoded at a time.
const DECODED: usize = 8;
/// Pixels of decoded images beyond which they are encoded.
const MOST_PIXELS: usize = 64_000_000;

/// Skipped inputs that are listed.
const MOST_LISTED: usize = 1_000;

/// How inputs are encoded.
#[derive(Debug, Clone, Default)]
pub struct EmbeddingOptions {
    /// The encoder's layers, side by side in each row. None: the last.
    pub layers: Option<Vec<usize>>,
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
    /// Why inputs were skipped.
    skipped: Vec<String>,
    /// Inputs that were skipped besides these.
    unlisted: usize,
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
    /// Their rows ([`Input::row`]).
    pub rows: Vec<usize>,
}

impl Embedding {
    /// Encodes `inputs`, with features from and to `cache`, which belongs to this encoder and these layers
    /// ([`Embedding::cache_digest`]).
    ///
    /// # Errors
    /// If the encoder does not have one of the layers, or the cache has features of other weights.
    pub fn new(
        inputs: Inputs,
        encoder: Arc<dyn Encoder>,
        mut cache: Option<Cache>,
        options: EmbeddingOptions,
    ) -> Result<Embedding, Error> {
        let layers = options.layers.clone().unwrap_or_else(|| vec![encoder.layers() - 1]);
        check_layers(&*encoder, &layers)?;
        let repeated = (1..layers.len()).any(|at| layers[..at].contains(&layers[at]));
        if layers.is_empty() || repeated || encoder.dim() == 0 {
            return Err(Error::Layers { encoder: encoder.name().to_owned() });
        }
        if let Some(cache) = &mut cache {
            check_probe(&*encoder, cache)?;
        }
        Ok(Embedding { inputs, encoder, layers, cache, options, skipped: Vec::new(), unlisted: 0, computed: 0 })
    }

    /// The digest under which the features of an encoder's layers are cached. It contains the version of what turns files
    /// into pixels, which an encoder's own digest does not.
    pub fn cache_digest(encoder: &dyn Encoder, layers: Option<&[usize]>) -> [u8; 32] {
        let last = [encoder.layers() - 1];
        let mut digest = Sha256::new_with_prefix(encoder.digest());
        if encoder.modality() == Modality::Image {
            digest.update(format!("pixels {}\n", image::VERSION));
        }
        layers.unwrap_or(&last).iter().for_each(|layer| digest.update((*layer as u64).to_le_bytes()));
        digest.finalize().into()
    }

    /// The encoder.
    pub fn encoder(&self) -> &dyn Encoder {
        &*self.encoder
    }

    /// The encoder's layers that stand side by side in each row.
    pub fn chosen_layers(&self) -> &[usize] {
        &self.layers
    }

    /// Numbers per input.
    pub fn row(&self) -> usize {
        self.layers.len() * self.encoder.dim()
    }

    /// Which tags the inputs have.
    pub fn present(&self) -> Present {
        self.inputs.present()
    }

    /// Number of inputs, if it is known before they are read.
    pub fn count_hint(&self) -> Option<usize> {
        self.inputs.count_hint()
    }

    /// Inputs that were encoded so far, rather than found in the cache.
    pub fn computed(&self) -> usize {
        self.computed
    }

    /// The cache, for further inputs of the same encoder and layers.
    pub fn into_cache(self) -> Option<Cache> {
        self.cache
    }

    /// Why inputs were skipped so far, files of other kinds first. After many of them, the last entry is the number of the
    /// others.
    pub fn skipped(&self) -> Vec<String> {
        let other = |name: &str| format!("{name}: not a kind of file that this encoder reads");
        let more = (self.unlisted > 0).then(|| format!("{} more inputs", self.unlisted));
        self.inputs.skipped().map(other).chain(self.skipped.iter().cloned()).chain(more).collect()
    }

    /// The next batch; none at the end.
    ///
    /// # Errors
    /// If an input cannot be read, unless such inputs are skipped; if the encoder fails.
    pub fn next_batch(&mut self) -> Result<Option<Encoded>, Error> {
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

    /// The next inputs, which [`Embedding::encode`] encodes together; none at the end. With it, a program that has to read
    /// inputs on one thread can encode them on others.
    ///
    /// # Errors
    /// If an input cannot be read, unless such inputs are skipped.
    pub fn take(&mut self) -> Result<Vec<Input>, Error> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < self.encoder.batch() && bytes < MOST_BYTES {
            match self.inputs.next() {
                None => break,
                Some(Ok(input)) => {
                    bytes += match &input.data {
                        Data::Image(bytes) => bytes.len(),
                        Data::Pixels(image) => image.pixels.len(),
                        Data::Text(text) => text.len(),
                    };
                    batch.push(input);
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
        match self.skipped.len() {
            MOST_LISTED.. => self.unlisted += 1,
            _ => self.skipped.push(error.to_string()),
        }
        Ok(())
    }

    /// Encodes the inputs of a batch.
    ///
    /// # Errors
    /// If one of them cannot be decoded, unless such inputs are skipped; if the encoder fails.
    pub fn encode(&mut self, batch: Vec<Input>) -> Result<Encoded, Error> {
        let keys: Vec<Key> = batch.par_iter().map(|input| input.data.digest()).collect();
        let mut rows = Vec::with_capacity(batch.len());
        for key in &keys {
            rows.push(self.cache.as_mut().map_or(Ok(None), |cache| cache.get(key))?);
        }
        let missing: Vec<usize> = (0..batch.len()).filter(|&at| rows[at].is_none()).collect();
        // If other inputs are known, those that are missing may only be missing because they cannot be decoded.
        let partly = !missing.is_empty() && missing.len() < batch.len();
        let decodable = |at: &usize| !matches!(decode(&batch[*at], &self.options.limits), Some(Err(_)));
        let worth = !partly || groups(&batch, &missing).into_iter().any(|group| group.par_iter().any(decodable));
        let wanted: Vec<usize> = if worth { (0..batch.len()).collect() } else { missing.clone() };
        if !missing.is_empty() {
            for (at, row) in self.compute(&batch, &wanted)? {
                if rows[at].is_none() {
                    self.computed += 1;
                    if let Some(cache) = &mut self.cache {
                        cache.put(keys[at], &row);
                    }
                    rows[at] = Some(row);
                }
            }
        }
        if let Some(cache) = &mut self.cache {
            cache.flush()?;
        }
        // Equal inputs have equal features, whatever their places in the batch.
        let mut first: HashMap<Key, usize> = HashMap::new();
        let mut encoded = Encoded::default();
        for (at, input) in batch.into_iter().enumerate() {
            if let Some(row) = &rows[*first.entry(keys[at]).or_insert(at)] {
                encoded.features.extend_from_slice(row);
                encoded.rows.push(input.row);
                encoded.names.push(input.name);
                encoded.tags.push(input.tags);
            }
        }
        Ok(encoded)
    }

    /// The features of the inputs at these places, without those that cannot be decoded. Images are decoded a few at a
    /// time, and encoded as soon as they have many pixels together.
    fn compute(&mut self, batch: &[Input], places: &[usize]) -> Result<Vec<(usize, Vec<f32>)>, Error> {
        let texts: Vec<(usize, &str)> = places
            .iter()
            .filter_map(|&at| match &batch[at].data {
                Data::Text(text) => Some((at, text.as_str())),
                Data::Image(_) | Data::Pixels(_) => None,
            })
            .collect();
        let mut computed = Vec::new();
        if !texts.is_empty() {
            let (places, texts): (Vec<usize>, Vec<&str>) = texts.into_iter().unzip();
            self.run(Batch::Texts(&texts), &places, &mut computed)?;
        }
        let (mut group, mut images, mut pixels) = (Vec::new(), Vec::new(), 0);
        for chunk in groups(batch, places) {
            let limits = &self.options.limits;
            let decoded: Vec<_> = chunk.par_iter().map(|&at| decode(&batch[at], limits)).collect();
            for (&at, image) in chunk.iter().zip(decoded) {
                match image {
                    Some(Ok(image)) => {
                        pixels += image.width * image.height;
                        group.push(at);
                        images.push(image);
                    }
                    Some(Err(error)) => self.skip(error)?,
                    None => {}
                }
            }
            if pixels > MOST_PIXELS {
                self.run(Batch::Images(&images), &group, &mut computed)?;
                (pixels, group, images) = (0, Vec::new(), Vec::new());
            }
        }
        if !images.is_empty() {
            self.run(Batch::Images(&images), &group, &mut computed)?;
        }
        Ok(computed)
    }

    fn run(&self, inputs: Batch<'_>, places: &[usize], computed: &mut Vec<(usize, Vec<f32>)>) -> Result<(), Error> {
        let features = self.encoder.encode(inputs, &self.layers)?;
        let usable = Features::new(&features, self.row()).and_then(|rows| rows.validate(self.row()));
        if features.len() != places.len() * self.row() || usable.is_err() {
            return Err(Error::Features { encoder: self.encoder.name().to_owned() });
        }
        computed.extend(places.iter().zip(features.chunks_exact(self.row())).map(|(&at, row)| (at, row.to_vec())));
        Ok(())
    }
}

/// Compares an encoder with the features in its cache, where its digest does not determine them.
fn check_probe(encoder: &dyn Encoder, cache: &mut Cache) -> Result<(), Error> {
    let Some(probe) = encoder.probe() else { return Ok(()) };
    let key: Key = Sha256::digest(b"probe\n").into();
    // Without an intact record, nobody knows which weights computed the other features.
    cache.keep_with(&key)?;
    match cache.get(&key)? {
        None => {
            cache.put(key, probe);
            Ok(())
        }
        Some(before) if same_answers(&before, probe) => Ok(()),
        Some(_) => Err(Error::OtherAnswers { encoder: encoder.name().to_owned(), path: cache.path().to_owned() }),
    }
}

/// The places in groups of [`DECODED`] inputs, or fewer if their images are large: decoders need many bytes per pixel.
fn groups<'p>(batch: &[Input], places: &'p [usize]) -> Vec<&'p [usize]> {
    let (mut groups, mut start, mut pixels) = (Vec::new(), 0, 0u64);
    for (end, &at) in places.iter().enumerate() {
        let more = match &batch[at].data {
            Data::Image(bytes) => image::claimed_pixels(bytes),
            Data::Pixels(image) => (image.width * image.height) as u64,
            Data::Text(_) => 0,
        };
        if end > start && (end - start == DECODED || pixels.saturating_add(more) > MOST_PIXELS as u64) {
            groups.push(&places[start..end]);
            (start, pixels) = (end, 0);
        }
        pixels = pixels.saturating_add(more);
    }
    groups.push(&places[start..]);
    groups
}

/// The image of an input that is one.
fn decode(input: &Input, limits: &Limits) -> Option<Result<Image, Error>> {
    match &input.data {
        Data::Image(bytes) => Some(image::decode(&input.shown(), bytes, limits)),
        Data::Pixels(image) => Some(Ok(image.clone())),
        Data::Text(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::input::InputOptions;

    /// Gives the length of a text and the number of the call, so that features show when they were computed.
    struct Counting {
        calls: AtomicUsize,
        /// What it gives in place of the number of the call.
        damaged: Option<f32>,
        probe: Option<[f32; 2]>,
    }

    impl Encoder for Counting {
        fn name(&self) -> &str {
            "counting"
        }
        fn modality(&self) -> Modality {
            Modality::Text
        }
        fn dim(&self) -> usize {
            2
        }
        fn digest(&self) -> [u8; 32] {
            [9; 32]
        }
        fn probe(&self) -> Option<&[f32]> {
            self.probe.as_ref().map(<[f32; 2]>::as_slice)
        }
        fn batch(&self) -> usize {
            4
        }
        fn encode(&self, batch: Batch<'_>, _: &[usize]) -> Result<Vec<f32>, Error> {
            let call = self.calls.fetch_add(1, Ordering::Relaxed) as f32;
            let last = self.damaged.unwrap_or(call);
            Ok(batch.texts("counting")?.iter().flat_map(|text| [text.len() as f32, last]).collect())
        }
    }

    fn encoder(damaged: Option<f32>) -> Arc<Counting> {
        Arc::new(Counting { calls: AtomicUsize::new(0), damaged, probe: None })
    }

    fn embedding(
        folder: &Path,
        encoder: &Arc<Counting>,
        cached: bool,
        options: EmbeddingOptions,
    ) -> Result<Embedding, Error> {
        let inputs = Inputs::open(&[folder.join("t.csv")], &InputOptions::new(Modality::Text))?;
        let digest = Embedding::cache_digest(&**encoder, None);
        let cache = cached.then(|| Cache::open(folder, &digest, 2)).transpose()?;
        Embedding::new(inputs, encoder.clone(), cache, options)
    }

    fn drain(mut embedding: Embedding) -> Result<(Vec<f32>, usize), Error> {
        let mut features = Vec::new();
        while let Some(encoded) = embedding.next_batch()? {
            assert_eq!(encoded.features.len(), 2 * encoded.names.len());
            features.extend(encoded.features);
        }
        Ok((features, embedding.computed()))
    }

    #[test]
    fn known_inputs_are_not_encoded_again_and_equal_ones_are_equal() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.csv"), "text\na\nbb\na\nccc\ndddd\nbb\n").unwrap();
        let counting = encoder(None);
        let first = drain(embedding(folder.path(), &counting, true, EmbeddingOptions::default()).unwrap()).unwrap();
        assert_eq!(first, (vec![1., 0., 2., 0., 1., 0., 3., 0., 4., 1., 2., 0.], 5), "bb is known in the second batch");
        let again = drain(embedding(folder.path(), &counting, true, EmbeddingOptions::default()).unwrap()).unwrap();
        assert_eq!(again, (first.0, 0));
        assert_eq!(counting.calls.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_cache_with_answers_of_other_weights_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.csv"), "text\na\n").unwrap();
        let open = |probe: [f32; 2], cached: bool| {
            let server = Arc::new(Counting { calls: AtomicUsize::new(0), damaged: None, probe: Some(probe) });
            drain(embedding(folder.path(), &server, cached, EmbeddingOptions::default())?)
        };
        assert_eq!(open([1.0, 2.0], true).unwrap().1, 1);
        assert_eq!(open([1.0001, 2.0], true).unwrap().1, 0, "rounding varies");
        assert!(matches!(open([1.0, -2.0], true), Err(Error::OtherAnswers { .. })));
        assert_eq!(open([1.0, -2.0], false).unwrap().1, 1);
        // The record of the probe is damaged: the weights of the other features are unknown.
        let path =
            Cache::open(folder.path(), &Embedding::cache_digest(&*encoder(None), None), 2).unwrap().path().to_owned();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[33] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(open([1.0, -2.0], true).unwrap().1, 1);
        assert_eq!(open([1.0, -2.0], true).unwrap().1, 0);
    }

    #[test]
    fn an_image_in_memory_has_the_features_of_its_file() {
        let (width, height) = (12, 7);
        let pixels: Vec<u8> = (0..3 * width * height).map(|at| (at * 7 % 256) as u8).collect();
        let mut png = std::io::Cursor::new(Vec::new());
        let (w, h) = (width as u32, height as u32);
        ::image::write_buffer_with_format(&mut png, &pixels, w, h, ::image::ColorType::Rgb8, ::image::ImageFormat::Png)
            .unwrap();
        let image = image::from_pixels("a", (width, height), pixels, &Limits::default()).unwrap();
        let given = [Data::Image(png.into_inner()), Data::Pixels(image.clone()), Data::Pixels(image)];
        let inputs = given.into_iter().map(|data| Ok(Input::new("a".to_owned(), data)));
        let inputs = Inputs::of(inputs);
        assert_eq!(inputs.count_hint(), Some(3));
        let encoder = Arc::new(crate::ImageBasic);
        let mut embedding = Embedding::new(inputs, encoder, None, EmbeddingOptions::default()).unwrap();
        let batch = embedding.take().unwrap();
        let features = embedding.encode(batch).unwrap().features;
        let row = embedding.row();
        assert_eq!((&features[..row], &features[..row]), (&features[row..2 * row], &features[2 * row..]));
        assert!(embedding.take().unwrap().is_empty());
    }

    #[test]
    fn features_that_are_not_numbers_and_layers_that_make_no_sense_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.csv"), "text\na\n").unwrap();
        for number in [f32::NAN, f32::INFINITY, 3e38] {
            let damaged = embedding(folder.path(), &encoder(Some(number)), true, EmbeddingOptions::default()).unwrap();
            assert!(matches!(drain(damaged), Err(Error::Features { .. })));
        }
        let good = embedding(folder.path(), &encoder(None), true, EmbeddingOptions::default()).unwrap();
        assert_eq!(drain(good).unwrap().1, 1, "nothing of this stays in the cache");
        for layers in [vec![], vec![0, 0], vec![1]] {
            let options = EmbeddingOptions { layers: Some(layers), ..EmbeddingOptions::default() };
            assert!(embedding(folder.path(), &encoder(None), false, options).is_err());
        }
    }
}
