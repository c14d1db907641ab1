//! Training, epoch after epoch.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::adapter::{Adapter, Outcome, text};
use super::checkpoint::{self, Epoch, Expected, Position, State};
use super::means;
use super::samples::Samples;
use super::settings::Settings;
use super::step::TunedNetwork;
use crate::encoder::Encoder;
use crate::error::Error;
use crate::hex::hex;
use crate::transformer::{Network, Random, Transformer};

/// How often the rate is halved before training is given up.
const MOST_HALVINGS: u32 = 3;
/// Samples per class whose mean stands for it.
const MEANS: usize = 32;
/// Samples that are encoded together to measure accuracy.
const MEASURED: usize = 64;

/// Streams of random numbers, one for each purpose.
const START: u64 = 0;
const SPLIT: u64 = 1;
const ORDER: u64 = 1 << 60;
const CROPS: u64 = 2 << 60;
/// The dropout's streams are numbered by step and block.
const DROPOUT: u64 = 0x6d6f_6475_6c65_7321;

/// A step that has been made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The epoch, counted from 1.
    pub epoch: usize,
    /// Steps of the epoch so far.
    pub step: usize,
    /// Steps of an epoch.
    pub steps: usize,
    /// The loss of the step.
    pub loss: f64,
}

/// Trains modules in an encoder.
pub struct Trainer {
    transformer: Transformer,
    samples: Samples,
    settings: Settings,
    model: TunedNetwork,
    state: State,
    /// Places of samples that are trained on, of those that are held out, and of those whose means stand for classes.
    trained: Vec<usize>,
    held_out: Vec<usize>,
    means: Vec<usize>,
    frozen: Option<f64>,
    /// Blocks whose traces are kept in a step.
    kept: usize,
}

impl Trainer {
    /// Prepares training, and measures the encoder as it is. `memory` is how many bytes a step may use for what it does not have to compute
    /// again; it changes the time of a step, and nothing else.
    ///
    /// # Errors
    /// If a setting cannot be used, there are fewer than two classes, or a sample cannot be read.
    pub fn new(
        transformer: Transformer,
        samples: Samples,
        settings: Settings,
        memory: usize,
    ) -> Result<Trainer, Error> {
        let network = transformer.network();
        settings.check(network.stack().shape().d)?;
        if samples.labels().len() < 2 {
            return Err(Error::TooFewClasses { classes: samples.labels().len(), samples: samples.len() });
        }
        let mut random = Random::new(settings.seed, START);
        let model = TunedNetwork::new(
            network,
            settings.module,
            (settings.head, settings.scale),
            samples.labels().len(),
            &mut random,
        );
        let (trained, held_out) = split(&samples, &settings);
        let means = first_of_each(&samples, &trained);
        let values = model.modules.parameters.values.clone();
        let numbers = values.len() * settings.optimiser.memory();
        let state = State { best: values.clone(), values, memory: vec![0.0; numbers], progress: Position::default() };
        let mut trainer =
            Trainer { transformer, samples, settings, model, state, trained, held_out, means, frozen: None, kept: 0 };
        let (kept, _) = trainer.model.network.bytes_per_row();
        trainer.kept = memory / (kept * trainer.rows()).max(1);
        trainer.frozen = trainer.accuracy(&trainer.model.network)?;
        Ok(trainer)
    }

    /// Continues from the checkpoint beside `out`, if it is one of the same encoder, samples and settings. Returns the epochs that it had.
    pub fn resume(&mut self, out: &Path) -> usize {
        self.resume_as(out, true)
    }

    /// The same; without `sealed`, from the checkpoint of anything.
    pub(super) fn resume_as(&mut self, out: &Path, sealed: bool) -> usize {
        let task = self.task();
        let expected = Expected {
            task: sealed.then_some(&task),
            sizes: [self.state.values.len(), self.state.memory.len()],
            epochs: [self.settings.epochs, self.steps()],
            halvings: MOST_HALVINGS,
            measured: !self.held_out.is_empty(),
        };
        let found = checkpoint::place(out).and_then(|path| checkpoint::read(&path, &expected));
        if let Some(state) = found {
            self.model.modules.parameters.values.clone_from(&state.values);
            self.state = state;
        }
        self.state.progress.epochs.len()
    }

    /// Writes a checkpoint beside `out`.
    ///
    /// # Errors
    /// If the system reports one.
    pub fn save(&self, out: &Path) -> Result<(), Error> {
        match checkpoint::place(out) {
            Some(path) => checkpoint::write(&path, &self.state, &self.task()),
            None => Ok(()),
        }
    }

    /// Removes the checkpoint beside `out`.
    ///
    /// # Errors
    /// If the system reports one.
    pub fn forget(out: &Path) -> Result<(), Error> {
        checkpoint::place(out).map_or(Ok(()), |path| checkpoint::remove(&path))
    }

    /// Whether a file is where the checkpoint beside `out` would be.
    pub fn has_checkpoint(out: &Path) -> bool {
        checkpoint::place(out).is_some_and(|path| path.exists())
    }

    /// The samples.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// Number of samples that are trained on, and of those that are held out.
    pub fn sizes(&self) -> (usize, usize) {
        (self.trained.len(), self.held_out.len())
    }

    /// The epochs so far.
    pub fn epochs(&self) -> &[Epoch] {
        &self.state.progress.epochs
    }

    /// How many epochs there are at most.
    pub fn most_epochs(&self) -> usize {
        self.settings.epochs
    }

    /// How often the rate was halved because the loss was not finite.
    pub fn halved(&self) -> u32 {
        self.state.progress.halved
    }

    /// Steps of an epoch.
    pub fn steps(&self) -> usize {
        self.trained.len().div_ceil(self.settings.batch)
    }

    /// Trained numbers of the module.
    pub fn parameters(&self) -> usize {
        self.model.own
    }

    /// About how many bytes training uses besides the encoder's weights.
    pub fn bytes(&self) -> usize {
        self.step_bytes() + self.samples.bytes()
    }

    /// The same without the samples, which are in memory already.
    pub fn step_bytes(&self) -> usize {
        let (kept, again) = self.model.network.bytes_per_row();
        let blocks = self.model.network.stack().blocks.len();
        // One block's trace and about as much scratch exist in any case.
        let traces = self.kept.min(blocks).max(1) + 1;
        let step = self.rows() * (kept * traces + again * blocks);
        step + 8 * (self.state.values.len() + self.state.memory.len())
    }

    /// Computes the gradients of a first batch, and forgets them: what a step costs.
    ///
    /// # Errors
    /// If a sample cannot be read.
    pub fn rehearse(&mut self) -> Result<(), Error> {
        let places: Vec<usize> = self.trained.iter().copied().take(self.settings.batch).collect();
        self.gradients(&places, 0, 0).map(|_| ())
    }

    /// Whether training has ended: all epochs are done, or accuracy has not risen for long enough.
    pub fn is_done(&self) -> bool {
        let (done, patience) = (self.epochs().len(), self.settings.patience);
        let waiting = patience > 0 && !self.held_out.is_empty() && done - self.best() >= patience;
        done >= self.settings.epochs || waiting
    }

    /// Trains for an epoch, and calls `each` after each step. A loss that is not finite takes training back to the last epoch, at half the rate.
    ///
    /// # Errors
    /// If the loss is not finite at an eighth of the rate either, or a sample cannot be read.
    pub fn epoch(&mut self, mut each: impl FnMut(Progress)) -> Result<Epoch, Error> {
        loop {
            if let Some(loss) = self.attempt(&mut each)? {
                let adapted = self.model.network.adapted(&self.model.modules);
                let epoch = Epoch { loss, accuracy: self.accuracy(&adapted)? };
                self.state.progress.epochs.push(epoch);
                self.state.values.clone_from(&self.model.modules.parameters.values);
                if self.best() == self.epochs().len() {
                    self.state.best.clone_from(&self.state.values);
                }
                return Ok(epoch);
            }
            let (epoch, halved) = (self.epochs().len() + 1, self.halved());
            if halved == MOST_HALVINGS {
                return Err(Error::Diverged { epoch, rate: self.rate() });
            }
            self.state.progress.halved += 1;
        }
    }

    /// The adapter of the best epoch, which is the last one if no samples were held out.
    pub fn finish(mut self) -> Adapter {
        self.model.modules.parameters.values.clone_from(&self.state.best);
        let best = self.best();
        let outcome = Outcome {
            epochs: self.epochs().len(),
            best,
            classes: self.samples.labels().len(),
            trained: self.trained.len(),
            held_out: self.held_out.len(),
            frozen: self.frozen,
            adapted: best.checked_sub(1).and_then(|best| self.epochs()[best].accuracy),
        };
        let TunedNetwork { modules, own, .. } = &self.model;
        Adapter::new(&self.transformer, self.settings.clone(), outcome, &modules.parameters, *own)
    }

    /// One epoch from the last state. None if a loss or a number was not finite; the state is then as it was.
    fn attempt(&mut self, each: &mut impl FnMut(Progress)) -> Result<Option<f64>, Error> {
        let epoch = self.epochs().len();
        let (rate, steps) = (self.rate(), self.steps());
        let mut order = self.trained.clone();
        Random::new(self.settings.seed, ORDER + epoch as u64).shuffle(&mut order);
        self.model.modules.parameters.values.clone_from(&self.state.values);
        let mut memory = self.state.memory.clone();
        let mut total = 0.0;
        let mut number = self.state.progress.steps;
        for (step, places) in order.chunks(self.settings.batch).enumerate() {
            let (loss, gradients) = self.gradients(places, epoch as u64, number)?;
            number += 1;
            let values = &mut self.model.modules.parameters.values;
            self.settings.optimiser.step(values, &gradients, &mut memory, rate, number);
            if !loss.is_finite() || values.iter().any(|x| !x.is_finite()) {
                return Ok(None);
            }
            total += loss * places.len() as f64;
            each(Progress { epoch: epoch + 1, step: step + 1, steps, loss });
        }
        // The last step is followed by no other whose loss would show what it did.
        let adapted = self.model.network.adapted(&self.model.modules);
        let features = self.samples.with(&self.means[..1], None, |given| adapted.features(given))?;
        if features.iter().any(|x| !x.is_finite()) {
            return Ok(None);
        }
        self.state.memory = memory;
        self.state.progress.steps = number;
        Ok(Some(total / order.len() as f64))
    }

    fn gradients(&mut self, places: &[usize], epoch: u64, step: u64) -> Result<(f64, Vec<f32>), Error> {
        let Settings { seed, augment, .. } = self.settings;
        let targets: Vec<usize> = places.iter().map(|place| self.samples.targets[*place]).collect();
        let crops = |place: usize| Random::new(seed, CROPS + (epoch << 32) + place as u64);
        let (model, kept) = (&mut self.model, self.kept);
        self.samples.with(places, augment.then_some(&crops), |given| {
            model.gradients(given, &targets, Some((seed ^ DROPOUT, step)), kept)
        })
    }

    /// The rate of the next epoch.
    fn rate(&self) -> f64 {
        self.settings.rate_of(self.epochs().len()) / f64::from(1u32 << self.halved())
    }

    /// The first epoch with the highest accuracy of held-out samples, counted from 1. Without such samples, the last. 0 before the first.
    fn best(&self) -> usize {
        let epochs = self.epochs();
        let mut best: Option<(usize, f64)> = None;
        for (i, epoch) in epochs.iter().enumerate() {
            match epoch.accuracy {
                Some(accuracy) if best.is_none_or(|best| accuracy > best.1) => best = Some((i + 1, accuracy)),
                _ => {}
            }
        }
        best.map_or(epochs.len(), |best| best.0)
    }

    /// Accuracy of held-out samples by the nearest class mean.
    fn accuracy(&self, network: &Network) -> Result<Option<f64>, Error> {
        if self.held_out.is_empty() {
            return Ok(None);
        }
        let features = |places: &[usize]| -> Result<Vec<f32>, Error> {
            let mut features = Vec::with_capacity(places.len() * network.dim());
            for places in places.chunks(MEASURED) {
                features.extend(self.samples.with(places, None, |given| network.features(given))?);
            }
            Ok(features)
        };
        let targets = |places: &[usize]| -> Vec<usize> { places.iter().map(|at| self.samples.targets[*at]).collect() };
        let [means, queries] = [features(&self.means)?, features(&self.held_out)?];
        let classes = self.samples.labels().len();
        let (means, queries) = ((&means[..], &targets(&self.means)[..]), (&queries[..], &targets(&self.held_out)[..]));
        Ok(means::accuracy(network.dim(), means, queries, classes))
    }

    /// Rows of a batch at most.
    fn rows(&self) -> usize {
        let tokens = self.model.network.tokens(self.samples.longest());
        self.settings.batch.min(self.trained.len()) * (tokens + self.model.modules.room())
    }

    /// What identifies the encoder, the samples and the settings.
    pub fn task(&self) -> String {
        let hash = Sha256::new().chain_update(self.transformer.digest()).chain_update(self.samples.digest());
        hex(&hash.chain_update(text(&self.settings)).finalize().into())
    }
}

/// The places of samples to train on, and of those that are held out.
fn split(samples: &Samples, settings: &Settings) -> (Vec<usize>, Vec<usize>) {
    let mut random = Random::new(settings.seed, SPLIT);
    let mut held_out = Vec::new();
    for class in 0..samples.labels().len() {
        let mut places: Vec<usize> = (0..samples.len()).filter(|at| samples.targets[*at] == class).collect();
        random.shuffle(&mut places);
        let count = places.len().checked_div(settings.held_out).unwrap_or(0);
        held_out.extend_from_slice(&places[..count]);
    }
    held_out.sort_unstable();
    let trained = (0..samples.len()).filter(|at| held_out.binary_search(at).is_err()).collect();
    (trained, held_out)
}

/// The first samples of each class among those that are trained on.
fn first_of_each(samples: &Samples, trained: &[usize]) -> Vec<usize> {
    let mut counts = vec![0; samples.labels().len()];
    let mut take = |at: &usize| {
        let count = &mut counts[samples.targets[*at]];
        *count += 1;
        *count <= MEANS
    };
    trained.iter().copied().filter(|at| take(at)).collect()
}
