//! Training on one fixed batch, for comparisons with other programs; and files with any digests, for fuzzers.

use std::path::Path;

use super::adapter::Adapter;
use super::head::HeadKind;
use super::optimise::Optimiser;
use super::step::TunedNetwork;
use super::trainer::Trainer;
use crate::error::Error;
use crate::transformer::{Given, ModuleKind, Random, Transformer};

/// Reads an adapter, whatever digests it has.
///
/// # Errors
/// As [`Adapter::read`].
pub fn read_unsealed(path: &Path, encoder: &Transformer) -> Result<Adapter, Error> {
    Adapter::read_as(path, encoder, false)
}

/// Continues from the checkpoint beside `out`, whatever its task and digest. Returns the epochs that it had.
pub fn resume_unsealed(trainer: &mut Trainer, out: &Path) -> usize {
    trainer.resume_as(out, false)
}

/// Modules of an encoder, and a cosine head, that are trained on the same batch again and again.
pub struct Probe {
    transformer: Transformer,
    model: TunedNetwork,
    memory: Vec<f32>,
    steps: u64,
}

/// The batch: planes of images, or texts.
#[derive(Debug, Clone, Copy)]
pub enum ProbeInput<'a> {
    /// The red, green and blue planes of images.
    Planes(&'a [f32]),
    /// Texts.
    Texts(&'a [&'a str]),
}

impl Probe {
    /// New modules. Uniform noise up to `noise` is added to each number, so that none of them is zero.
    pub fn new(transformer: Transformer, kind: ModuleKind, classes: usize, noise: f32) -> Probe {
        let mut random = Random::new(1, 0);
        let mut model = TunedNetwork::new(transformer.network(), kind, (HeadKind::Cosine, 1.0), classes, &mut random);
        let values = &mut model.modules.parameters.values;
        values.iter_mut().for_each(|x| *x += noise * (2.0 * random.uniform() - 1.0) as f32);
        let memory = vec![0.0; values.len()];
        Probe { transformer, model, memory, steps: 0 }
    }

    /// Name and shape of each tensor, in the order of their numbers.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let tensors = self.model.modules.parameters.tensors().iter();
        tensors.map(|tensor| (tensor.name.clone(), tensor.shape.clone())).collect()
    }

    /// All trained numbers.
    pub fn values(&self) -> &[f32] {
        &self.model.modules.parameters.values
    }

    /// The loss of a batch and its gradients, without dropout. The traces of at most `most` blocks are kept.
    ///
    /// # Errors
    /// If a text cannot be divided into tokens.
    pub fn gradients(
        &mut self,
        input: ProbeInput<'_>,
        targets: &[usize],
        most: usize,
    ) -> Result<(f64, Vec<f32>), Error> {
        self.pass(input, targets, None, most)
    }

    /// A step as in training, with dropout. Returns the loss.
    ///
    /// # Errors
    /// If a text cannot be divided into tokens.
    pub fn train(&mut self, input: ProbeInput<'_>, targets: &[usize], rate: f64, most: usize) -> Result<f64, Error> {
        let (loss, gradients) = self.pass(input, targets, Some((1, self.steps)), most)?;
        self.step(&gradients, rate);
        Ok(loss)
    }

    fn pass(
        &mut self,
        input: ProbeInput<'_>,
        targets: &[usize],
        dropout: Option<(u64, u64)>,
        most: usize,
    ) -> Result<(f64, Vec<f32>), Error> {
        match (input, &self.transformer) {
            (ProbeInput::Planes(planes), _) => Ok(self.model.gradients(Given::Planes(planes), targets, dropout, most)),
            (ProbeInput::Texts(texts), Transformer::Text(encoder)) => {
                let sequences = encoder.sequences(texts)?;
                let texts: Vec<_> = sequences.iter().collect();
                Ok(self.model.gradients(Given::Texts(&texts), targets, dropout, most))
            }
            (ProbeInput::Texts(_), Transformer::Image(_)) => {
                Err(Error::NoAdapter { encoder: "an encoder of images, for texts".to_owned() })
            }
        }
    }

    /// A step of SGD with momentum 0.9 and weight decay 0.0005.
    pub fn step(&mut self, gradients: &[f32], rate: f64) {
        self.steps += 1;
        let values = &mut self.model.modules.parameters.values;
        let sgd = Optimiser::SGD;
        sgd.step(values, gradients, &mut self.memory, rate, self.steps);
    }
}
