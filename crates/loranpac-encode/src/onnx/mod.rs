//! Image encoders in ONNX files, run by `rten`: anything that PyTorch, TensorFlow or another program exported.
//!
//! A model has one input of images, `(n, 3, height, width)` or `(n, height, width, 3)`. Its first output has the features:
//! `(n, d)`, or maps `(n, d, h, w)`, which are averaged.
//!
//! A file is a program. What it claims is checked before it is parsed, and a panic of `rten` is an error; but the time and
//! the memory that its operators take are not bounded.

mod claims;

use std::path::{Path, PathBuf};

use loranpac_data::fence::{fence_thread, fenced};
use rten::{Dimension, Model, NodeId, ValueOrView};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};
use sha2::{Digest, Sha256};

use crate::encoder::{Batch, Encoder, Image, check_layers};
use crate::error::Error;
use crate::image;
use crate::modality::Modality;
use crate::preprocess::Preprocess;
use crate::problem::OnnxProblem;
use crate::regular;

/// The largest file: the format allows no more.
const LARGEST: u64 = 2 << 30;
/// The most images per run that a model may have fixed.
const LARGEST_BATCH: usize = 1024;
/// Images per run if the model leaves it open, and the most numbers of their pixels.
const BATCH: usize = 16;
const NUMBERS: usize = 1 << 27;

/// An image encoder in an ONNX file.
pub struct Onnx {
    path: PathBuf,
    name: String,
    model: Model,
    input: NodeId,
    output: NodeId,
    /// Whether channels come last in the input.
    channels_last: bool,
    /// Images per run, if the model has it fixed.
    fixed: Option<usize>,
    preprocess: Preprocess,
    dim: usize,
    digest: [u8; 32],
}

impl Onnx {
    /// Opens a model. Its preprocessing is that of the configuration beside it, else the preset `imagenet` at the size of
    /// its input; `changes` changes parts of it.
    ///
    /// # Errors
    /// If the file is damaged, has operators that are not supported, or is not a model of images.
    pub fn open(path: &Path, changes: Option<&str>) -> Result<Onnx, Error> {
        let refuse = |problem| Error::Onnx { path: path.to_owned(), problem };
        let bytes = regular::read(path, LARGEST).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let mut digest = Sha256::new_with_prefix(b"onnx\n");
        digest.update(&bytes);
        claims::check(&bytes).map_err(|reason| refuse(OnnxProblem::Load(reason)))?;
        let model = guarded(|| {
            let model = Model::load(bytes).map_err(|e| e.to_string())?;
            let shape = model.input_shape(0).unwrap_or_default();
            Ok((model, shape))
        });
        let (model, shape) = model.map_err(|reason| refuse(OnnxProblem::Load(reason)))?;
        let (&[input], Some(&output)) = (model.input_ids(), model.output_ids().first()) else {
            return Err(refuse(OnnxProblem::Inputs(model.input_ids().len())));
        };
        let Some((channels_last, height, width)) = layout(&shape) else {
            return Err(refuse(OnnxProblem::InputShape(shown(&shape))));
        };
        let folder = path.parent().unwrap_or(Path::new("."));
        let preprocess = match Preprocess::from_folder(folder)? {
            Some(preprocess) => preprocess,
            None => usual(height, width)?,
        };
        let preprocess = changes.map_or(Ok(preprocess.clone()), |changes| preprocess.with(changes))?;
        let size = preprocess.size();
        if height.is_some_and(|height| height != size.0) || width.is_some_and(|width| width != size.1) {
            return Err(refuse(OnnxProblem::Size { model: shown(&shape), found: size }));
        }
        digest.update(preprocess.to_string());
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let fixed = match shape.first() {
            Some(Dimension::Fixed(n)) if *n == 0 || *n > LARGEST_BATCH || 3 * size.0 * size.1 * n > NUMBERS => {
                return Err(refuse(OnnxProblem::InputShape(shown(&shape))));
            }
            Some(Dimension::Fixed(n)) => Some(*n),
            _ => None,
        };
        let digest = image::add_version(digest, image::VERSION).finalize().into();
        let path = path.to_owned();
        let mut onnx = Onnx { path, name, model, input, output, channels_last, fixed, preprocess, dim: 0, digest };
        // The number of features is known only from an output.
        let black = Image { width: 1, height: 1, pixels: vec![0; 3] };
        onnx.dim = onnx.run(std::slice::from_ref(&black))?.len();
        match onnx.dim {
            0 => Err(onnx.refuse(OnnxProblem::OutputShape("without numbers".to_owned()))),
            _ => Ok(onnx),
        }
    }

    /// Features of images, at most as many as the model takes at once.
    fn run(&self, images: &[Image]) -> Result<Vec<f32>, Error> {
        let (height, width) = self.preprocess.size();
        let size = 3 * height * width;
        let count = self.fixed.unwrap_or(images.len());
        let mut planes = vec![0.0; count * size];
        for (image, planes) in images.iter().zip(planes.chunks_exact_mut(size)) {
            self.preprocess.apply(image, planes);
        }
        let mut input = NdTensor::from_data([count, 3, height, width], planes);
        if self.channels_last {
            input = input.permuted([0, 2, 3, 1]).to_tensor();
        }
        let output: Result<Tensor<f32>, String> = guarded(|| {
            let run = self.model.run(vec![(self.input, ValueOrView::from(input))], &[self.output], None);
            let output = run.map_err(|e| e.to_string())?.pop().ok_or("no output")?;
            output.try_into().map_err(|_| "its output is not of floats".to_owned())
        });
        let output = output.map_err(|reason| self.refuse(OnnxProblem::Run(reason)))?;
        let shape = output.shape().to_vec();
        let (Some(&rows), true) = (shape.first(), matches!(shape.len(), 2 | 4)) else {
            return Err(self.refuse(OnnxProblem::OutputShape(format!("of shape {shape:?}"))));
        };
        if rows != count {
            return Err(self.refuse(OnnxProblem::OutputShape(format!("of shape {shape:?} for {count} images"))));
        }
        let values = output.to_vec();
        let places: usize = shape[2..].iter().product();
        let mean = |map: &[f32]| map.iter().sum::<f32>() / places as f32;
        let mut features: Vec<f32> = values.chunks_exact(places.max(1)).map(mean).collect();
        features.truncate(features.len() / count.max(1) * images.len());
        match features.iter().all(|value| value.is_finite()) {
            true => Ok(features),
            false => Err(self.refuse(OnnxProblem::OutputShape("with numbers that are not finite".to_owned()))),
        }
    }

    fn refuse(&self, problem: OnnxProblem) -> Error {
        Error::Onnx { path: self.path.clone(), problem }
    }
}

/// Calls `rten` on its own threads. It panics on some models; that is an error.
fn guarded<T: Send>(call: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    let pool = rten::thread_pool();
    pool.run(|| rayon::broadcast(|_| fence_thread()));
    fenced(|| pool.run(call)).unwrap_or_else(|_| Err("its operators do not fit together".to_owned()))
}

/// Whether channels come last, height and width, of an input with these dimensions. None if it is no batch of images.
fn layout(shape: &[Dimension]) -> Option<(bool, Option<usize>, Option<usize>)> {
    let fixed = |dimension: &Dimension| match dimension {
        Dimension::Fixed(size) => Some(*size),
        Dimension::Symbolic(_) => None,
    };
    let [_, a, b, c] = shape else { return None };
    match (fixed(a), fixed(c)) {
        (Some(3), _) => Some((false, fixed(b), fixed(c))),
        (_, Some(3)) => Some((true, fixed(a), fixed(b))),
        (None, _) => Some((false, fixed(b), fixed(c))),
        _ => None,
    }
}

/// The preset `imagenet`, at the size of a model's input.
fn usual(height: Option<usize>, width: Option<usize>) -> Result<Preprocess, Error> {
    let preset: Preprocess = "imagenet".parse()?;
    let (height, width) = (height.unwrap_or(preset.size().0), width.unwrap_or(preset.size().1));
    // The same proportion of resize to crop as for 224 pixels.
    preset.with(&format!("resize={},crop={height}x{width}", height.min(width).saturating_mul(256) / 224))
}

fn shown(shape: &[Dimension]) -> String {
    let one = |dimension: &Dimension| match dimension {
        Dimension::Fixed(size) => size.to_string(),
        Dimension::Symbolic(name) => name.clone(),
    };
    format!("({})", shape.iter().map(one).collect::<Vec<_>>().join(", "))
}

impl Encoder for Onnx {
    fn name(&self) -> &str {
        &self.name
    }

    fn modality(&self) -> Modality {
        Modality::Image
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn digest(&self) -> [u8; 32] {
        self.digest
    }

    fn batch(&self) -> usize {
        let (height, width) = self.preprocess.size();
        self.fixed.unwrap_or((NUMBERS / (3 * height * width)).clamp(1, BATCH))
    }

    fn encode(&self, batch: Batch<'_>, layers: &[usize]) -> Result<Vec<f32>, Error> {
        let images = batch.images(&self.name)?;
        check_layers(self, layers)?;
        let mut features = Vec::with_capacity(images.len() * self.dim);
        for images in images.chunks(self.batch()) {
            features.extend(self.run(images)?);
        }
        Ok(features)
    }
}
