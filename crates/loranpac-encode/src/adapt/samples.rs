//! Labelled images and texts in memory, as training reads them again and again.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loranpac::Label;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::augment::Crop;
use crate::encoder::Image;
use crate::error::Error;
use crate::image::{self, Limits};
use crate::input::{Data, Input, Inputs};
use crate::tokenize::Sequence;
use crate::transformer::{Given, ImageEncoder, Random, Transformer};

/// Texts that are divided into tokens, or images that are checked, at a time.
const CHUNK: usize = 256;
/// Samples that are encoded together.
const BATCH: usize = 64;

/// Which samples are kept.
#[derive(Debug, Clone, Default)]
pub struct SampleOptions {
    /// The first classes, in order of appearance; none: all.
    pub classes: Option<usize>,
    /// Whether images that cannot be decoded are skipped.
    pub skip_bad: bool,
    /// Limits on images.
    pub limits: Limits,
}

/// Labelled images or texts. Images are kept as files, and decoded whenever they are used.
pub struct Samples {
    store: Arc<Store>,
    /// Where each sample is in the store.
    at: Vec<usize>,
    limits: Limits,
    pub(super) targets: Vec<usize>,
    labels: Vec<Label>,
    digest: [u8; 32],
    skipped: Vec<Error>,
    stop: Arc<AtomicBool>,
}

#[expect(clippy::large_enum_variant, reason = "only a few exist")]
enum Content {
    Images(ImageEncoder, Vec<(String, Data)>),
    Texts(Vec<Sequence>),
}

/// Inputs of the first classes that can be used.
#[derive(Default)]
struct Found {
    kept: Vec<Input>,
    labels: Vec<Label>,
    /// The class of each label as it is written: if one label is a text, all are, and 1 and "1" are one class.
    classes: HashMap<String, usize>,
    targets: Vec<usize>,
    /// Whether any label of all inputs is a text.
    any_text: bool,
    skipped: Vec<Error>,
}

/// What samples share with parts of them.
struct Store {
    content: Content,
    /// SHA-256 of each input.
    digests: Vec<[u8; 32]>,
}

impl Samples {
    /// Reads inputs for an encoder.
    ///
    /// # Errors
    /// If an input has no label or cannot be used.
    pub fn read(inputs: Inputs, transformer: &Transformer, options: SampleOptions) -> Result<Samples, Error> {
        let Found { kept, mut labels, targets, any_text, skipped, .. } = find(inputs, &options)?;
        if any_text {
            labels.iter_mut().for_each(|label| *label = Label::Text(label.to_string()));
        }
        let digests: Vec<[u8; 32]> = kept.par_iter().map(|input| input.data.digest()).collect();
        let content = match transformer {
            Transformer::Image(encoder) => {
                Content::Images(encoder.clone(), kept.into_iter().map(|input| (input.shown(), input.data)).collect())
            }
            Transformer::Text(encoder) => {
                let texts: Vec<&str> = kept.iter().filter_map(text).collect();
                let mut sequences = Vec::with_capacity(texts.len());
                for texts in texts.chunks(CHUNK) {
                    sequences.extend(encoder.sequences(texts)?);
                }
                Content::Texts(sequences)
            }
        };
        let at: Vec<usize> = (0..targets.len()).collect();
        let digest = identify(&labels, &targets, at.iter().map(|at| &digests[*at]));
        let store = Arc::new(Store { content, digests });
        let (limits, stop) = (options.limits, Arc::default());
        Ok(Samples { store, at, limits, targets, labels, digest, skipped, stop })
    }

    /// The same samples, whose use ends with [`Error::Stopped`] as soon as `stop` is true.
    pub fn until(self, stop: Arc<AtomicBool>) -> Samples {
        Samples { stop, ..self }
    }

    /// Some of the samples, in this order, with the classes that they have.
    pub fn part(&self, places: &[usize]) -> Samples {
        let (mut labels, mut targets): (Vec<Label>, Vec<usize>) = Default::default();
        for place in places {
            let label = &self.labels[self.targets[*place]];
            let class = labels.iter().position(|known| known == label).unwrap_or(labels.len());
            if class == labels.len() {
                labels.push(label.clone());
            }
            targets.push(class);
        }
        let at: Vec<usize> = places.iter().map(|place| self.at[*place]).collect();
        let digest = identify(&labels, &targets, at.iter().map(|at| &self.store.digests[*at]));
        let (store, limits, skipped, stop) = (self.store.clone(), self.limits, Vec::new(), self.stop.clone());
        Samples { store, at, limits, targets, labels, digest, skipped, stop }
    }

    /// The label of a sample.
    pub fn label(&self, place: usize) -> &Label {
        &self.labels[self.targets[place]]
    }

    /// Features of some samples. `each` is called with the number of samples of each batch that is done.
    ///
    /// # Errors
    /// If an image cannot be decoded any more.
    pub fn features(
        &self,
        transformer: &Transformer,
        places: &[usize],
        mut each: impl FnMut(usize),
    ) -> Result<Vec<f32>, Error> {
        let network = transformer.network();
        let mut features = Vec::with_capacity(places.len() * network.dim());
        for places in places.chunks(BATCH) {
            features.extend(self.with(places, None, |given| network.features(given))?);
            each(places.len());
        }
        Ok(features)
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The classes, in order of appearance.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// The class of each sample, as a place among the labels.
    pub fn targets(&self) -> &[usize] {
        &self.targets
    }

    /// Why inputs were skipped.
    pub fn skipped(&self) -> &[Error] {
        &self.skipped
    }

    /// SHA-256 of the samples, their order and their classes.
    pub(crate) fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Bytes of the samples themselves.
    pub(super) fn bytes(&self) -> usize {
        match &self.store.content {
            Content::Texts(texts) => texts.iter().map(|text| 8 * text.tokens.len()).sum(),
            Content::Images(_, images) => images
                .iter()
                .map(|(_, data)| match data {
                    Data::Image(bytes) => bytes.len(),
                    Data::Pixels(image) => image.pixels.len(),
                    Data::Text(_) => 0,
                })
                .sum(),
        }
    }

    /// Tokens of the longest text; none for images, whose tokens follow from the encoder.
    pub(crate) fn longest(&self) -> Option<usize> {
        match &self.store.content {
            Content::Texts(texts) => Some(self.at.iter().map(|at| texts[*at].tokens.len()).max().unwrap_or(0)),
            Content::Images(..) => None,
        }
    }

    /// Calls a function with some samples as a network takes them. With `crops`, images are cropped at random, each by its own sequence of random
    /// numbers, whatever the threads.
    ///
    /// # Errors
    /// If an image cannot be decoded any more, or the use of the samples was stopped.
    pub(crate) fn with<T>(
        &self,
        places: &[usize],
        crops: Option<&(dyn Fn(usize) -> Random + Sync)>,
        run: impl FnOnce(Given<'_>) -> T,
    ) -> Result<T, Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        match &self.store.content {
            Content::Texts(texts) => {
                let texts: Vec<&Sequence> = places.iter().map(|place| &texts[self.at[*place]]).collect();
                Ok(run(Given::Texts(&texts)))
            }
            Content::Images(encoder, images) => {
                let preprocess = encoder.preprocess();
                let (height, width) = preprocess.size();
                let size = 3 * height * width;
                let mut planes = vec![0.0; places.len() * size];
                planes.par_chunks_mut(size).zip(places).try_for_each(|(planes, place)| {
                    let (name, data) = &images[self.at[*place]];
                    let image = decode(name, data, &self.limits)?;
                    match crops {
                        None => preprocess.apply(&image, planes),
                        Some(random) => {
                            let crop = Crop::draw(image.height, image.width, &mut random(*place));
                            preprocess.apply_whole(&part(&image, crop), planes);
                        }
                    }
                    Ok::<(), Error>(())
                })?;
                Ok(run(Given::Planes(&planes)))
            }
        }
    }
}

/// SHA-256 of samples in their order, given the digest of each, and of their classes.
fn identify<'a>(labels: &[Label], targets: &[usize], digests: impl Iterator<Item = &'a [u8; 32]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut known = 0;
    for (class, digest) in targets.iter().zip(digests) {
        if *class == known {
            hash.update(format!("class {:?}\n", labels[*class]));
            known += 1;
        }
        hash.update((*class as u64).to_le_bytes());
        hash.update(digest);
    }
    hash.finalize().into()
}

/// Reads inputs, of which only those of the first classes are kept. Images that cannot be decoded are errors unless they
/// are skipped.
fn find(inputs: Inputs, options: &SampleOptions) -> Result<Found, Error> {
    let mut found = Found::default();
    let mut chunk = Vec::with_capacity(CHUNK);
    for input in inputs {
        match input {
            Ok(input) => {
                let Some(label) = &input.tags.label else { return Err(Error::NoLabels) };
                found.any_text |= matches!(label, Label::Text(_));
                if found.class(label, options).is_some() {
                    chunk.push(input);
                }
            }
            Err(error) if options.skip_bad && error.concerns_one_input() => found.skipped.push(error),
            Err(error) => return Err(error),
        }
        if chunk.len() == CHUNK {
            found.take(std::mem::take(&mut chunk), options)?;
        }
    }
    found.take(chunk, options)?;
    Ok(found)
}

impl Found {
    /// The class of a label, which may be the next one; none if there are enough classes without it.
    fn class(&self, label: &Label, options: &SampleOptions) -> Option<usize> {
        let class = self.classes.get(&label.to_string()).copied().unwrap_or(self.labels.len());
        options.classes.is_none_or(|most| class < most).then_some(class)
    }

    /// Keeps the inputs that can be used.
    fn take(&mut self, chunk: Vec<Input>, options: &SampleOptions) -> Result<(), Error> {
        let check = |input: &Input| match &input.data {
            Data::Image(bytes) => image::decode(&input.shown(), bytes, &options.limits).map(|_| ()),
            Data::Pixels(_) | Data::Text(_) => Ok(()),
        };
        let checks: Vec<Result<(), Error>> = chunk.par_iter().map(check).collect();
        for (mut input, check) in chunk.into_iter().zip(checks) {
            let Some(label) = input.tags.label.take() else { return Err(Error::NoLabels) };
            let Some(class) = self.class(&label, options) else { continue };
            match check {
                Ok(()) => {}
                Err(error) if options.skip_bad && error.concerns_one_input() => {
                    self.skipped.push(error);
                    continue;
                }
                Err(error) => return Err(error),
            }
            if class == self.labels.len() {
                self.classes.insert(label.to_string(), class);
                self.labels.push(label);
            }
            self.targets.push(class);
            self.kept.push(input);
        }
        Ok(())
    }
}

fn decode(name: &str, data: &Data, limits: &Limits) -> Result<Image, Error> {
    match data {
        Data::Image(bytes) => image::decode(name, bytes, limits),
        Data::Pixels(image) => Ok(image.clone()),
        Data::Text(_) => Err(Error::Input { name: name.to_owned(), reason: "it is a text, not an image".to_owned() }),
    }
}

fn text(input: &Input) -> Option<&str> {
    match &input.data {
        Data::Text(text) => Some(text),
        Data::Image(_) | Data::Pixels(_) => None,
    }
}

/// A part of an image.
fn part(image: &Image, crop: Crop) -> Image {
    let mut pixels = Vec::with_capacity(3 * crop.height * crop.width);
    for row in crop.top..crop.top + crop.height {
        let row = &image.pixels[3 * (row * image.width + crop.left)..][..3 * crop.width];
        match crop.mirrored {
            false => pixels.extend_from_slice(row),
            true => row.as_chunks::<3>().0.iter().rev().for_each(|pixel| pixels.extend_from_slice(pixel)),
        }
    }
    Image { width: crop.width, height: crop.height, pixels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_image_is_cut_and_mirrored() {
        let image = Image { width: 3, height: 2, pixels: (0..18).collect() };
        let crop = Crop { top: 1, left: 1, height: 1, width: 2, mirrored: false };
        assert_eq!(part(&image, crop).pixels, [12, 13, 14, 15, 16, 17]);
        assert_eq!(part(&image, Crop { mirrored: true, ..crop }).pixels, [15, 16, 17, 12, 13, 14]);
    }
}
