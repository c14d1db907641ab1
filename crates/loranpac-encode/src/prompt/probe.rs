//! Training on one fixed batch, for comparisons with other programs.

use super::prompted::{Gradients, Memory, PromptedNetwork};
use super::settings::PromptSettings;
use crate::adapt::ProbeInput;
use crate::error::Error;
use crate::transformer::{Given, Random, Transformer};

/// Prompts of a second task of two, and a linear classifier of the classes of both, that are trained on the same batch again and again.
pub struct PromptProbe {
    transformer: Transformer,
    model: PromptedNetwork,
    memory: Memory,
    classes: usize,
}

/// The task that is trained, counted from 0.
const TASK: usize = 1;
/// How many tasks there are.
const TASKS: usize = 2;

impl PromptProbe {
    /// New prompts, and a classifier of `classes` classes, of which those that occur in batches belong to the task.
    ///
    /// # Errors
    /// If a setting cannot be used.
    pub fn new(transformer: Transformer, settings: &PromptSettings, classes: usize) -> Result<PromptProbe, Error> {
        settings.check(TASKS)?;
        let mut random = Random::new(1, 0);
        let mut model = PromptedNetwork::new(transformer.network(), settings, TASKS, &mut random);
        for task in 0..=TASK {
            model.pool.begin(&mut model.weights.pool.values, task, &mut random);
        }
        model.grow(classes, &mut random);
        let memory = model.memory();
        Ok(PromptProbe { transformer, model, memory, classes })
    }

    /// Name and shape of each tensor, in the order of their numbers.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let weights = &self.model.weights;
        let tensors = weights.pool.tensors().iter().chain(weights.head.tensors());
        tensors.map(|tensor| (tensor.name.clone(), tensor.shape.clone())).collect()
    }

    /// All trained numbers.
    pub fn values(&self) -> Vec<f32> {
        [&self.model.weights.pool.values[..], &self.model.weights.head.values].concat()
    }

    /// The loss of a batch before a step of Adam with this rate, and its gradients. The traces of at most `most` blocks are kept.
    ///
    /// # Errors
    /// If a text cannot be divided into tokens, or the inputs are of another kind than those of the encoder.
    pub fn step(
        &mut self,
        input: ProbeInput<'_>,
        targets: &[usize],
        rate: f64,
        most: usize,
    ) -> Result<(f64, Vec<f32>), Error> {
        let (loss, gradients) = match (input, &self.transformer) {
            (ProbeInput::Planes(planes), Transformer::Image(_)) => self.pass(Given::Planes(planes), targets, most),
            (ProbeInput::Texts(texts), Transformer::Text(encoder)) => {
                let sequences = encoder.sequences(texts)?;
                let texts: Vec<_> = sequences.iter().collect();
                self.pass(Given::Texts(&texts), targets, most)
            }
            _ => return Err(Error::NoAdapter { encoder: "an encoder of other inputs".to_owned() }),
        };
        self.model.step(&gradients, &mut self.memory, rate);
        Ok((loss, [gradients.pool, gradients.head].concat()))
    }

    fn pass(&mut self, given: Given<'_>, targets: &[usize], most: usize) -> (f64, Gradients) {
        let queries = self.model.network.features(given);
        let mut allowed = vec![false; self.classes];
        targets.iter().for_each(|class| allowed[*class] = true);
        self.model.gradients(given, &queries, (targets, &allowed), TASK, most)
    }
}
