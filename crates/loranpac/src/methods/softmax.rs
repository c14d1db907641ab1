//! The joint linear classifier: cross-entropy and stochastic gradient descent on all samples. An upper reference, not a
//! continual method: it keeps every sample, and trains from scratch for each classifier.
//!
//! Trained as in the paper: momentum 0.9, 20 epochs, batches of 48, weight decay 5e-4, the learning rate annealed along
//! a cosine from epoch to epoch, for the best of the rates 0.001, 0.005, 0.01, 0.02, 0.03. The paper takes the rate
//! with the best test accuracy; here a tenth of the training samples decides, and the classifier is then trained on all
//! of them.

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

use super::lifted::{Lifted, indices};
use super::shuffle::permutation;
use crate::classifier::{CHUNK, Classifier};
use crate::error::Error;
use crate::features::Features;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::FeatureMap;
use crate::linalg::par;
use crate::memory::{product, sum};
use crate::method::{Input, Method, MethodOptions, Promise, Settings};

/// The learning rates to choose from.
const RATES: [f32; 5] = [0.001, 0.005, 0.01, 0.02, 0.03];
const MOMENTUM: f32 = 0.9;
const DECAY: f32 = 5e-4;
/// Rows of W that one thread updates at a time.
const ROWS: usize = 512;

/// The learner.
pub struct Softmax {
    lifted: Lifted,
    rate: Option<f32>,
    epochs: usize,
    batch: usize,
    seed: u64,
    table: LabelTable,
    x: Vec<f32>,
    y: Vec<usize>,
    classifier: Option<(Classifier, f32)>,
}

struct Trained {
    /// W', E x c.
    weights: Mat<f32>,
    bias: Vec<f32>,
    rate: f32,
}

impl Softmax {
    /// Creates a model with this learning rate, or with the best of five on held-out samples.
    pub fn new(lift: Arc<dyn FeatureMap>, rate: Option<f32>, epochs: usize, batch: usize, seed: u64) -> Self {
        let table = LabelTable::default();
        Softmax { lifted: Lifted::new(lift), rate, epochs, batch, seed, table, x: vec![], y: vec![], classifier: None }
    }

    /// Chooses the rate if none is fixed, then trains on all samples.
    fn fit(&mut self) -> Result<Trained, Error> {
        let dim = self.lifted.lift.dim();
        let mut h = Mat::<f32>::zeros(self.lifted.width(), self.y.len());
        for (part, x) in Features::new(&self.x, dim)?.chunks(CHUNK).enumerate() {
            self.lifted.lift.lift(x.as_matrix(), h.as_mut().subcols_mut(part * CHUNK, x.len()));
        }
        let order = permutation(self.y.len(), self.seed, 0);
        let rate = match self.rate {
            Some(rate) => rate,
            None => {
                let (held, fit) = order.split_at(order.len() / 10);
                let quality = |rate: &f32| {
                    let trained = self.train(h.as_ref(), fit, *rate);
                    let hits = held.iter().filter(|&&sample| trained.winner(h.as_ref(), sample) == self.y[sample]);
                    if trained.weights.is_all_finite() { hits.count() as f64 } else { -1.0 }
                };
                let qualities: Vec<f64> = RATES.iter().map(quality).collect();
                // The first on ties: with nothing held out, the smallest rate.
                let best = (0..RATES.len()).fold(0, |best, i| if qualities[i] > qualities[best] { i } else { best });
                RATES[best]
            }
        };
        Ok(self.train(h.as_ref(), &order, rate))
    }

    /// Trains by stochastic gradient descent from zero on some of the samples.
    fn train(&self, h: MatRef<'_, f32>, samples: &[usize], rate: f32) -> Trained {
        let (width, classes) = (h.nrows(), self.table.len());
        let mut weights = Mat::<f32>::zeros(width, classes);
        let mut velocity = Mat::<f32>::zeros(width, classes);
        let (mut bias, mut bias_velocity) = (vec![0.0f32; classes], vec![0.0f32; classes]);
        let mut features = Mat::<f32>::zeros(width, self.batch.min(samples.len()));
        for epoch in 0..self.epochs {
            let annealed = 0.5 * (1.0 + (std::f64::consts::PI * epoch as f64 / self.epochs as f64).cos());
            let rate = rate * annealed as f32;
            let order = permutation(samples.len(), self.seed, 1 + epoch as u64);
            for batch in order.chunks(self.batch) {
                let mut features = features.as_mut().subcols_mut(0, batch.len());
                for (j, &at) in batch.iter().enumerate() {
                    features.rb_mut().col_mut(j).copy_from(h.col(samples[at]));
                }
                let mut error = Mat::<f32>::zeros(batch.len(), classes);
                matmul(&mut error, Accum::Replace, features.rb().transpose(), &weights, 1.0, par());
                for (i, &at) in batch.iter().enumerate() {
                    softmax_error(&mut error, i, &bias, self.y[samples[at]], batch.len());
                }
                for (class, velocity) in bias_velocity.iter_mut().enumerate() {
                    let gradient: f32 = error.col(class).iter().sum();
                    *velocity = MOMENTUM * *velocity + gradient + DECAY * bias[class];
                    bias[class] -= rate * *velocity;
                }
                // Gradient and update together, one panel of rows at a time, while they are in cache.
                let panels = weights.as_mut().par_row_chunks_mut(ROWS).zip(velocity.as_mut().par_row_chunks_mut(ROWS));
                panels.zip(features.rb().par_row_chunks(ROWS)).for_each(|((mut weights, mut velocity), features)| {
                    let mut gradient = Mat::<f32>::zeros(weights.nrows(), classes);
                    matmul(&mut gradient, Accum::Replace, features, &error, 1.0, Par::Seq);
                    for class in 0..classes {
                        let pairs =
                            weights.rb_mut().col_mut(class).iter_mut().zip(velocity.rb_mut().col_mut(class).iter_mut());
                        for ((w, v), g) in pairs.zip(gradient.col(class).iter()) {
                            *v = MOMENTUM * *v + g + DECAY * *w;
                            *w -= rate * *v;
                        }
                    }
                });
            }
        }
        Trained { weights, bias, rate }
    }
}

impl Trained {
    fn winner(&self, h: MatRef<'_, f32>, sample: usize) -> usize {
        let scores: Vec<f32> = (0..self.bias.len())
            .map(|class| h.col(sample).transpose() * self.weights.col(class) + self.bias[class])
            .collect();
        (0..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best })
    }
}

/// Computes `(softmax(scores) - one-hot) / samples` from the products in row `i`, in place.
fn softmax_error(rows: &mut Mat<f32>, i: usize, bias: &[f32], class: usize, samples: usize) {
    let classes = bias.len();
    let score = |rows: &Mat<f32>, j: usize| rows[(i, j)] + bias[j];
    let largest = (0..classes).map(|j| score(rows, j)).fold(f32::NEG_INFINITY, f32::max);
    let total: f32 = (0..classes).map(|j| (score(rows, j) - largest).exp()).sum();
    for j in 0..classes {
        let probability = (score(rows, j) - largest).exp() / total;
        rows[(i, j)] = (probability - if j == class { 1.0 } else { 0.0 }) / samples as f32;
    }
}

impl Learner for Softmax {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.lifted.lift.dim())?;
        self.classifier = None;
        (0..x.len()).for_each(|row| self.x.extend_from_slice(x.row(row)));
        let classes = indices(&mut self.table, labels);
        self.y.extend(classes);
        Ok(())
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if self.y.is_empty() {
            return Err(Error::NothingLearned);
        }
        if let Some((classifier, _)) = &self.classifier {
            return Ok(classifier.clone());
        }
        let Trained { weights, bias, rate } = self.fit()?;
        let classifier = self.lifted.linear(&self.table, weights, bias);
        Ok(self.classifier.insert((classifier, rate)).0.clone())
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        Summary { samples: self.y.len(), classes: self.table.len(), ..Summary::default() }
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!({
            "rate": self.rate,
            "chosen_rate": self.classifier.as_ref().map(|(_, rate)| *rate),
            "epochs": self.epochs,
            "batch": self.batch,
            "seed": self.seed,
        })
    }

    fn state_bytes(&self) -> usize {
        let classifier = self.classifier.as_ref().map_or(0, |(classifier, _)| classifier.bytes());
        let samples = self.x.capacity() * size_of::<f32>() + self.y.capacity() * size_of::<usize>();
        samples + classifier + self.lifted.bytes()
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let (width, dim) = (self.lifted.width(), self.lifted.lift.dim());
        sum(&[
            product(&[4, width, stream.samples]),
            product(&[8, dim, stream.samples]),
            product(&[4, 4, width, stream.classes]),
            product(&[4, width, self.batch]),
        ])
    }
}

const SETTINGS: &[(&str, &str)] = &[
    ("rate", "learning rate, instead of the best of five on held-out samples"),
    ("epochs", "passes over the samples (20)"),
    ("batch", "samples per step (48)"),
];

const STOCHASTIC: &[(Promise, &str)] =
    &[(Promise::SampleOrder, "stochastic gradient descent visits the samples in an order drawn over their places")];

fn build(options: &MethodOptions, settings: &Settings<'_>) -> Result<Box<dyn Learner>, Error> {
    let rate: Option<f32> = settings.optional("rate")?;
    if let Some(rate) = rate.filter(|rate| !(*rate > 0.0 && rate.is_finite())) {
        return Err(Error::setting("rate", rate, "it must be above 0"));
    }
    let (epochs, batch) = (settings.count("epochs", 20)?, settings.count("batch", 48)?);
    Ok(Box::new(Softmax::new(options.map()?, rate, epochs, batch, options.seed)))
}

/// The registry entry of the joint classifier on plain features.
pub(crate) const LC_X: Method = Method {
    name: "lc-x",
    summary: "joint linear classifier on all plain features: a reference, not continual",
    input: Input::Plain,
    continual: false,
    exemplar_free: false,
    truncates: false,
    cuts: false,
    settings: SETTINGS,
    exempt: STOCHASTIC,
    infinite: false,
    config: None,
    build,
};

/// The registry entry of the joint classifier on lifted features.
pub(crate) const LC_H: Method = Method {
    name: "lc-h",
    summary: "joint linear classifier on all lifted features: a reference, not continual",
    input: Input::Lifted,
    ..LC_X
};
