//! Learning task after task.

use std::ops::ControlFlow;

use loranpac::Label;

use super::model::{Memory, Model, Weights};
use super::settings::PromptSettings;
use crate::adapt::Samples;
use crate::error::Error;
use crate::transformer::{Inserter, Random, Transformer};

/// How often the rate is halved before training is given up.
const MOST_HALVINGS: u32 = 3;
/// Samples that are scored together.
const SCORED: usize = 64;

/// Streams of random numbers, one for each purpose.
const START: u64 = 0;
const HEAD: u64 = 1 << 60;
const ORDER: u64 = 2 << 60;
const CROPS: u64 = 3 << 60;

/// Some samples with their queries.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// All samples.
    pub samples: &'a Samples,
    /// Which of them.
    pub places: &'a [usize],
    /// The features of these by the encoder as it is, a row for each ([`PromptLearner::queries`]).
    pub queries: &'a [f32],
}

/// An epoch that has been trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trained {
    /// The epoch of the task, counted from 1.
    pub epoch: usize,
    /// The mean loss of its samples.
    pub loss: f64,
    /// How often the rate has been halved in this task because a loss was not finite.
    pub halved: u32,
}

/// A continual learner that trains prompts for a frozen transformer.
pub struct PromptLearner {
    transformer: Transformer,
    pub(super) settings: PromptSettings,
    /// Tasks that there is room for.
    tasks: usize,
    pub(super) model: Model,
    labels: Vec<Label>,
    /// Tasks and samples so far.
    learned: usize,
    seen: usize,
    memory: usize,
}

impl PromptLearner {
    /// A learner for a number of tasks. `memory` is how many bytes a step may use for what it does not have to compute again; it changes the
    /// time of a step, and nothing else.
    ///
    /// # Errors
    /// If a setting cannot be used.
    pub fn new(
        transformer: Transformer,
        settings: PromptSettings,
        tasks: usize,
        memory: usize,
    ) -> Result<PromptLearner, Error> {
        settings.check(tasks)?;
        let model = Model::new(transformer.network(), &settings, tasks, &mut Random::new(settings.seed, START));
        let (labels, learned, seen) = (Vec::new(), 0, 0);
        Ok(PromptLearner { transformer, settings, tasks, model, labels, learned, seen, memory })
    }

    /// The settings.
    pub fn settings(&self) -> &PromptSettings {
        &self.settings
    }

    /// The classes so far, in order of appearance.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Number of samples learned so far.
    pub fn seen(&self) -> usize {
        self.seen
    }

    /// Number of trained numbers.
    pub fn parameters(&self) -> usize {
        self.model.weights.pool.values.len() + self.model.weights.head.values.len()
    }

    /// Features of some samples by the encoder as it is.
    ///
    /// # Errors
    /// If an image cannot be decoded any more.
    pub fn queries(&self, samples: &Samples, places: &[usize]) -> Result<Vec<f32>, Error> {
        samples.features(&self.transformer, places, |_| {})
    }

    /// About how many bytes learning some samples uses besides the encoder's weights and the samples.
    pub fn bytes(&self, samples: &Samples) -> usize {
        let (kept, again) = self.model.network.bytes_per_row();
        let (blocks, rows) = (self.model.network.stack().blocks.len(), self.rows(samples));
        // One block's trace and about as much scratch exist in any case.
        let traces = self.kept(samples).min(blocks).max(1) + 1;
        rows * (kept * traces + again * blocks) + 5 * size_of::<f32>() * self.parameters()
    }

    /// Learns a task, and calls `each` after each epoch. A loss that is not finite takes training back to the last epoch, at half the rate.
    /// If `each` breaks before the last epoch, or there is an error, the learner is as it was before.
    ///
    /// # Errors
    /// If there are more tasks than the learner has room for, there is no sample, queries are not finite or of another number, the loss is not
    /// finite at an eighth of the rate either, or a sample cannot be read.
    pub fn learn(
        &mut self,
        part: Part<'_>,
        each: &mut dyn FnMut(Trained) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        self.check(part)?;
        if self.learned == self.tasks {
            let reason = format!("the learner has room for {}, and one more was given", self.tasks);
            return Err(Error::Adapt { name: "tasks", reason });
        }
        let (labels, weights) = (self.labels.len(), self.model.weights.clone());
        let result = self.train(part, each);
        match result {
            Ok(ControlFlow::Continue(())) => {
                self.learned += 1;
                self.seen += part.places.len();
            }
            Ok(ControlFlow::Break(())) | Err(_) => {
                self.labels.truncate(labels);
                self.model.restore(weights, labels);
            }
        }
        result
    }

    /// The logits of samples: a row for each, with a number for each class so far.
    ///
    /// # Errors
    /// If nothing has been learned, there is no sample, queries are not finite or of another number, or a sample cannot be read.
    pub fn logits(&self, part: Part<'_>) -> Result<Vec<f32>, Error> {
        self.check(part)?;
        let Some(task) = self.learned.checked_sub(1) else {
            return Err(Error::Adapt { name: "tasks", reason: "nothing has been learned yet".to_owned() });
        };
        let size = if self.settings.batchwise { self.settings.batch } else { SCORED };
        let mut inserter = Inserter::default();
        let mut logits = Vec::with_capacity(part.places.len() * self.labels.len());
        for (places, queries) in part.places.chunks(size).zip(part.queries.chunks(size * self.model.network.dim())) {
            let (model, inserter) = (&self.model, &mut inserter);
            logits.extend(part.samples.with(places, None, |given| model.logits(inserter, given, queries, task))?);
        }
        Ok(logits)
    }

    fn check(&self, part: Part<'_>) -> Result<(), Error> {
        let (expected, found) = (part.places.len() * self.model.network.dim(), part.queries.len());
        if part.places.is_empty() || expected != found || part.queries.iter().any(|x| !x.is_finite()) {
            let reason = format!(
                "{} samples need {expected} finite numbers of queries, and there are {found}",
                part.places.len()
            );
            return Err(Error::Adapt { name: "queries", reason });
        }
        Ok(())
    }

    fn train(
        &mut self,
        part: Part<'_>,
        each: &mut dyn FnMut(Trained) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        let (task, seed) = (self.learned, self.seed());
        let targets = self.targets(part);
        let mut allowed = vec![false; self.labels.len()];
        targets.iter().for_each(|class| allowed[*class] = true);
        let Model { pool, weights, .. } = &mut self.model;
        pool.begin(&mut weights.pool.values, task, &mut Random::new(seed, START));
        self.model.grow(self.labels.len(), &mut Random::new(seed, HEAD));
        let mut memory = self.model.memory();
        let mut halved = 0;
        for epoch in 0..self.settings.epochs {
            let before = (self.model.weights.clone(), memory.clone());
            let loss = loop {
                let rate = self.settings.rate_of(epoch) / f64::from(1u32 << halved);
                if let Some(loss) = self.epoch(part, (&targets, &allowed), epoch, rate, &mut memory)? {
                    break loss;
                }
                if halved == MOST_HALVINGS {
                    return Err(Error::Diverged { epoch: epoch + 1, rate });
                }
                halved += 1;
                let (weights, earlier): &(Weights, Memory) = &before;
                self.model.weights.clone_from(weights);
                memory.clone_from(earlier);
            };
            let last = epoch + 1 == self.settings.epochs;
            if each(Trained { epoch: epoch + 1, loss, halved }).is_break() && !last {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// One epoch. None if a loss or a number is not finite.
    fn epoch(
        &mut self,
        part: Part<'_>,
        (targets, allowed): (&[usize], &[bool]),
        epoch: usize,
        rate: f64,
        memory: &mut Memory,
    ) -> Result<Option<f64>, Error> {
        let (dim, seed, task, kept) = (self.model.network.dim(), self.seed(), self.learned, self.kept(part.samples));
        let mut order: Vec<usize> = (0..part.places.len()).collect();
        Random::new(seed, ORDER + epoch as u64).shuffle(&mut order);
        let crops = |place: usize| Random::new(seed, CROPS + ((epoch as u64) << 32) + place as u64);
        let mut total = 0.0;
        for batch in order.chunks(self.settings.batch) {
            let places: Vec<usize> = batch.iter().map(|at| part.places[*at]).collect();
            let classes: Vec<usize> = batch.iter().map(|at| targets[*at]).collect();
            let queries: Vec<f32> = batch.iter().flat_map(|at| &part.queries[at * dim..][..dim]).copied().collect();
            let (model, labels) = (&mut self.model, (&classes[..], allowed));
            let crops: Option<&(dyn Fn(usize) -> Random + Sync)> = self.settings.augment.then_some(&crops);
            let (loss, gradients) =
                part.samples.with(&places, crops, |given| model.gradients(given, &queries, labels, task, kept))?;
            self.model.step(&gradients, memory, rate);
            if !loss.is_finite() || !self.model.is_finite() {
                return Ok(None);
            }
            total += loss * batch.len() as f64;
        }
        Ok(Some(total / order.len() as f64))
    }

    /// The class of each sample. New classes are added to the labels.
    fn targets(&mut self, part: Part<'_>) -> Vec<usize> {
        let labels = &mut self.labels;
        let mut class = |place: &usize| {
            let label = part.samples.label(*place);
            labels.iter().position(|known| known == label).unwrap_or_else(|| {
                labels.push(label.clone());
                labels.len() - 1
            })
        };
        part.places.iter().map(&mut class).collect()
    }

    /// The seed of the next task.
    fn seed(&self) -> u64 {
        self.settings.seed ^ (self.learned as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Blocks whose traces are kept in a step.
    fn kept(&self, samples: &Samples) -> usize {
        let (bytes, _) = self.model.network.bytes_per_row();
        self.memory / (bytes * self.rows(samples)).max(1)
    }

    /// Rows of a batch at most.
    fn rows(&self, samples: &Samples) -> usize {
        let tokens = self.model.network.tokens(samples.longest()) + self.model.pool.room();
        self.settings.batch.min(samples.len()) * tokens
    }
}
