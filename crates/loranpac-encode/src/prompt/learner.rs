//! Learning task after task.

use std::ops::ControlFlow;
use std::path::Path;

use loranpac::Label;

use super::checkpoint::{self, Position, State};
use super::prompted::{Memory, PromptWeights, PromptedNetwork};
use super::settings::PromptSettings;
use crate::adapt::{Optimiser, Samples};
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
pub struct Queried<'a> {
    /// All samples.
    pub samples: &'a Samples,
    /// Which of them.
    pub places: &'a [usize],
    /// The features of these by the encoder as it is, a row for each ([`PromptLearner::queries`]).
    pub queries: &'a [f32],
}

/// An epoch that has been trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainedEpoch {
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
    pub(super) model: PromptedNetwork,
    labels: Vec<Label>,
    /// Tasks and samples so far.
    learned: usize,
    seen: usize,
    /// The task that is being learned.
    midway: Option<Midway>,
    memory: usize,
}

/// How far a task is learned, beside the weights.
#[derive(Debug, Clone, Default)]
struct Midway {
    epochs: usize,
    halved: u32,
    memory: Memory,
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
        let model =
            PromptedNetwork::new(transformer.network(), &settings, tasks, &mut Random::new(settings.seed, START));
        let (labels, learned, seen, midway) = (Vec::new(), 0, 0, None);
        Ok(PromptLearner { transformer, settings, tasks, model, labels, learned, seen, midway, memory })
    }

    /// What identifies a stream of tasks: the encoder, the settings, and some samples, with whatever else decides the stream.
    pub fn identity(&self, samples: &[&Samples], more: &str) -> String {
        checkpoint::identity(&self.transformer, (&self.settings, self.tasks), samples, more)
    }

    /// Writes everything that learning needs to continue, with a note of the caller's. In [`PromptLearner::learn`], `each` can do so after every
    /// epoch.
    ///
    /// # Errors
    /// If the system reports one.
    pub fn save(&self, file: &Path, identity: &str, note: &str) -> Result<(), Error> {
        let (PromptWeights { pool, head }, none) = (&self.model.weights, Midway::default());
        let midway = self.midway.as_ref().unwrap_or(&none);
        let position = Position {
            labels: self.labels.clone(),
            learned: self.learned,
            seen: self.seen,
            epochs: midway.epochs,
            halved: midway.halved,
            steps: midway.memory.steps,
            note: note.to_owned(),
        };
        let state = [&pool.values, &head.values, &midway.memory.pool, &midway.memory.head];
        checkpoint::write(file, state.map(Vec::as_slice), identity, &position)
    }

    /// Continues from a file of [`PromptLearner::save`], if it is one of the same identity. `read` gets its note and the number of learned
    /// tasks. None if there is no such file, it is damaged or another's, or `read` has none: the learner is then as it was. The next task to learn
    /// is that which was being learned.
    pub fn resume<T>(&mut self, file: &Path, identity: &str, read: impl FnOnce(&str, usize) -> Option<T>) -> Option<T> {
        let State { position, vectors: [pool, head, pool_memory, head_memory] } = checkpoint::read(file, identity)?;
        let Position { labels, learned, seen, epochs, halved, steps, note } = position;
        let (classes, dim) = (labels.len(), self.model.network.dim());
        let remembered = if epochs > 0 { Optimiser::ADAM.memory() } else { 0 };
        let is_possible = learned + usize::from(epochs > 0) <= self.tasks
            && (epochs <= self.settings.epochs && halved <= MOST_HALVINGS)
            && (learned > 0 || epochs > 0) == (classes > 0)
            && [pool.len(), head.len()] == [self.model.weights.pool.values.len(), classes * (dim + 1)]
            && [pool_memory.len(), head_memory.len()] == [pool.len() * remembered, head.len() * remembered];
        if !is_possible {
            return None;
        }
        let note = read(&note, learned)?;
        let mut weights = self.model.weights.clone();
        (weights.pool.values, weights.head.values) = (pool, head);
        self.model.restore(weights, classes);
        let memory = Memory { pool: pool_memory, head: head_memory, steps };
        self.midway = (epochs > 0).then_some(Midway { epochs, halved, memory });
        (self.labels, self.learned, self.seen) = (labels, learned, seen);
        Some(note)
    }

    /// Number of tasks learned so far.
    pub fn learned(&self) -> usize {
        self.learned
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

    /// Learns a task, or the rest of the one that was being learned when the learner was saved, and calls `each` after each epoch. A loss that is not finite takes training back to the last epoch, at half the rate.
    /// If `each` breaks before the last epoch, or there is an error, the learner is as it was before.
    ///
    /// # Errors
    /// If there are more tasks than the learner has room for, there is no sample, queries are not finite or of another number, the loss is not
    /// finite at an eighth of the rate either, or a sample cannot be read.
    pub fn learn(
        &mut self,
        queried: Queried<'_>,
        each: &mut dyn FnMut(&PromptLearner, TrainedEpoch) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        self.check(queried)?;
        if self.learned == self.tasks {
            let reason = format!("the learner has room for {}, and one more was given", self.tasks);
            return Err(Error::Adapt { name: "tasks", reason });
        }
        let (labels, weights, midway) = (self.labels.len(), self.model.weights.clone(), self.midway.clone());
        let result = self.train(queried, each);
        match result {
            Ok(ControlFlow::Continue(())) => {
                self.learned += 1;
                self.seen += queried.places.len();
                self.midway = None;
            }
            Ok(ControlFlow::Break(())) | Err(_) => {
                self.labels.truncate(labels);
                self.model.restore(weights, labels);
                self.midway = midway;
            }
        }
        result
    }

    /// The logits of samples: a row for each, with a number for each class so far.
    ///
    /// # Errors
    /// If nothing has been learned, there is no sample, queries are not finite or of another number, or a sample cannot be read.
    pub fn logits(&self, queried: Queried<'_>) -> Result<Vec<f32>, Error> {
        self.check(queried)?;
        let Some(task) = self.learned.checked_sub(1) else {
            return Err(Error::Adapt { name: "tasks", reason: "nothing has been learned yet".to_owned() });
        };
        let size = if self.settings.batchwise { self.settings.batch } else { SCORED };
        let mut inserter = Inserter::default();
        let mut logits = Vec::with_capacity(queried.places.len() * self.labels.len());
        for (places, queries) in
            queried.places.chunks(size).zip(queried.queries.chunks(size * self.model.network.dim()))
        {
            let (model, inserter) = (&self.model, &mut inserter);
            logits.extend(queried.samples.with(places, None, |given| model.logits(inserter, given, queries, task))?);
        }
        Ok(logits)
    }

    fn check(&self, queried: Queried<'_>) -> Result<(), Error> {
        let (expected, found) = (queried.places.len() * self.model.network.dim(), queried.queries.len());
        if queried.places.is_empty() || expected != found || queried.queries.iter().any(|x| !x.is_finite()) {
            let reason = format!(
                "{} samples need {expected} finite numbers of queries, and there are {found}",
                queried.places.len()
            );
            return Err(Error::Adapt { name: "queries", reason });
        }
        Ok(())
    }

    fn train(
        &mut self,
        queried: Queried<'_>,
        each: &mut dyn FnMut(&PromptLearner, TrainedEpoch) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        let (task, seed) = (self.learned, self.seed());
        let targets = self.targets(queried);
        let mut allowed = vec![false; self.labels.len()];
        targets.iter().for_each(|class| allowed[*class] = true);
        let mut midway = match self.midway.take() {
            Some(midway) => midway,
            None => {
                let PromptedNetwork { pool, weights, .. } = &mut self.model;
                pool.begin(&mut weights.pool.values, task, &mut Random::new(seed, START));
                self.model.grow(self.labels.len(), &mut Random::new(seed, HEAD));
                Midway { memory: self.model.memory(), ..Midway::default() }
            }
        };
        while midway.epochs < self.settings.epochs {
            let before = (self.model.weights.clone(), midway.memory.clone());
            let loss = loop {
                let rate = self.settings.rate_of(midway.epochs) / f64::from(1u32 << midway.halved);
                if let Some(loss) =
                    self.epoch(queried, (&targets, &allowed), midway.epochs, rate, &mut midway.memory)?
                {
                    break loss;
                }
                if midway.halved == MOST_HALVINGS {
                    return Err(Error::Diverged { epoch: midway.epochs + 1, rate });
                }
                midway.halved += 1;
                let (weights, earlier): &(PromptWeights, Memory) = &before;
                self.model.weights.clone_from(weights);
                midway.memory.clone_from(earlier);
            };
            midway.epochs += 1;
            let done = TrainedEpoch { epoch: midway.epochs, loss, halved: midway.halved };
            self.midway = Some(midway);
            let flow = each(self, done);
            midway = self.midway.take().unwrap_or_default();
            if flow.is_break() && midway.epochs < self.settings.epochs {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// One epoch. None if a loss or a number is not finite.
    fn epoch(
        &mut self,
        queried: Queried<'_>,
        (targets, allowed): (&[usize], &[bool]),
        epoch: usize,
        rate: f64,
        memory: &mut Memory,
    ) -> Result<Option<f64>, Error> {
        let (dim, seed, task, kept) = (self.model.network.dim(), self.seed(), self.learned, self.kept(queried.samples));
        let mut order: Vec<usize> = (0..queried.places.len()).collect();
        Random::new(seed, ORDER + epoch as u64).shuffle(&mut order);
        let crops = |place: usize| Random::new(seed, CROPS + ((epoch as u64) << 32) + place as u64);
        let mut total = 0.0;
        for batch in order.chunks(self.settings.batch) {
            let places: Vec<usize> = batch.iter().map(|at| queried.places[*at]).collect();
            let classes: Vec<usize> = batch.iter().map(|at| targets[*at]).collect();
            let queries: Vec<f32> = batch.iter().flat_map(|at| &queried.queries[at * dim..][..dim]).copied().collect();
            let (model, labels) = (&mut self.model, (&classes[..], allowed));
            let crops: Option<&(dyn Fn(usize) -> Random + Sync)> = self.settings.augment.then_some(&crops);
            let (loss, gradients) =
                queried.samples.with(&places, crops, |given| model.gradients(given, &queries, labels, task, kept))?;
            self.model.step(&gradients, memory, rate);
            if !loss.is_finite() || !self.model.is_finite() {
                return Ok(None);
            }
            total += loss * batch.len() as f64;
        }
        Ok(Some(total / order.len() as f64))
    }

    /// The class of each sample. New classes are added to the labels.
    fn targets(&mut self, queried: Queried<'_>) -> Vec<usize> {
        let labels = &mut self.labels;
        let mut class = |place: &usize| {
            let label = queried.samples.label(*place);
            labels.iter().position(|known| known == label).unwrap_or_else(|| {
                labels.push(label.clone());
                labels.len() - 1
            })
        };
        queried.places.iter().map(&mut class).collect()
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
