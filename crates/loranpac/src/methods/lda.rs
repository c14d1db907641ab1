//! Streaming linear discriminant analysis (Hayes and Kanan, 2020): class means and one covariance for all classes.
//!
//! ```text
//! Sigma = sum over classes and samples of (h - mu_y)(h - mu_y)' / M
//! A     = (1 - s) Sigma + s (tr Sigma / E) I        s: shrinkage
//! score of class k:  mu_k' A^-1 h - mu_k' A^-1 mu_k / 2        all classes equally likely
//! ```
//!
//! The scatter `M Sigma` is updated exactly by chunks (Chan et al.), so that neither order nor division matters. On
//! plain features this is SLDA, on random Fourier features RanDumb (Prabhu et al., 2024), and `klda` a mean of several. Cost: `E^2 m` flops per task
//! and `E^3 / 3` for the classifier.

use std::sync::Arc;

use faer::prelude::Reborrow;
use faer::{Mat, MatRef};

use super::lifted::{Lifted, compact, grow_columns, indices};
use crate::classifier::{CHUNK, Classifier, bytes_of};
use crate::error::Error;
use crate::features::Features;
use crate::gram::Gram;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::FeatureMap;
use crate::linalg::cast;
use crate::memory::{product, sum};
use crate::method::{Input, Method, MethodOptions, Settings};

/// The shrinkage of the covariance towards a multiple of the identity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shrinkage {
    /// This share, in [0, 1).
    Fixed(f64),
    /// The oracle approximating shrinkage of Chen et al. (2010), from the covariance itself.
    Oracle,
}

/// The learner.
pub struct Lda {
    lifted: Lifted,
    shrinkage: Shrinkage,
    table: LabelTable,
    moments: Moments,
    classifier: Option<Classifier>,
}

/// Class means and the scatter about them.
pub(super) struct Moments {
    /// M Sigma.
    pub scatter: Gram,
    /// Class means, E x c.
    pub means: Mat<f64>,
    counts: Vec<usize>,
}

impl Lda {
    /// Creates a model on lifted features.
    pub fn new(lift: Arc<dyn FeatureMap>, shrinkage: Shrinkage) -> Result<Self, Error> {
        let (table, moments) = (LabelTable::default(), Moments::new());
        Ok(Lda { lifted: Lifted::new(lift), shrinkage: shrinkage.checked()?, table, moments, classifier: None })
    }

    /// Returns the share of the identity in the covariance.
    pub fn shrinkage(&self) -> f64 {
        self.moments.shrinkage(self.shrinkage)
    }

    /// Returns `A^-1 mu_k` in the rows (c x E), and the constants.
    pub fn weights(&mut self) -> Result<(Mat<f64>, Vec<f64>), Error> {
        self.moments.weights(self.shrinkage)
    }
}

impl Shrinkage {
    /// Reads the setting; the oracle is the default.
    pub(super) fn read(settings: &Settings<'_>) -> Result<Self, Error> {
        match settings.get("shrinkage") {
            None | Some("oracle") => Ok(Shrinkage::Oracle),
            Some(_) => Shrinkage::Fixed(settings.number("shrinkage", 0.0)?).checked(),
        }
    }

    fn checked(self) -> Result<Self, Error> {
        match self {
            Shrinkage::Fixed(s) if !(0.0..1.0).contains(&s) => {
                Err(Error::setting("shrinkage", s, "it must be in [0, 1), or `oracle`"))
            }
            checked => Ok(checked),
        }
    }

    /// Returns it for records.
    pub(super) fn value(self) -> serde_json::Value {
        match self {
            Shrinkage::Fixed(s) => s.into(),
            Shrinkage::Oracle => "oracle".into(),
        }
    }

    /// Returns how many squares of f64 a solution takes: without shrinkage the covariance may be singular, and LU needs
    /// three more.
    pub(super) fn squares(self) -> usize {
        if self == Shrinkage::Fixed(0.0) { 4 } else { 1 }
    }
}

impl Moments {
    /// Creates the moments of no samples.
    pub fn new() -> Self {
        Moments { scatter: Gram::default(), means: Mat::new(), counts: Vec::new() }
    }

    /// Returns the number of samples.
    pub fn samples(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Makes room for classes.
    pub fn grow(&mut self, width: usize, classes: usize) {
        if self.scatter.rank() == 0 {
            self.scatter = Gram::zeros(width);
        }
        grow_columns(&mut self.means, width, classes);
        self.counts.resize(classes, 0);
    }

    /// Returns the bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.scatter.bytes() + bytes_of(&self.means) + self.counts.capacity() * size_of::<usize>()
    }

    /// Returns the share of the identity in the covariance.
    fn shrinkage(&self, shrinkage: Shrinkage) -> f64 {
        match shrinkage {
            Shrinkage::Fixed(s) => s,
            Shrinkage::Oracle => {
                let (n, p) = (self.samples() as f64, self.scatter.rank() as f64);
                let mean = self.scatter.trace() / p;
                let (alpha, mu2) = (self.scatter.squared_norm() / (p * p), mean * mean);
                let denominator = (n + 1.0) * (alpha - mu2 / p);
                // Below 1, so that A keeps the scale of Sigma.
                if denominator > 0.0 { ((alpha + mu2) / denominator).min(0.999) } else { 0.999 }
            }
        }
    }

    /// Returns `A^-1 mu_k` in the rows (c x E), and the constants.
    pub fn weights(&mut self, shrinkage: Shrinkage) -> Result<(Mat<f64>, Vec<f64>), Error> {
        let samples = self.samples() as f64;
        if samples == 0.0 {
            return Err(Error::NothingLearned);
        }
        let s = self.shrinkage(shrinkage);
        let mut w = self.means.transpose().to_owned();
        // A^-1 = M / (1 - s) (M Sigma + ridge I)^-1
        let spread = self.scatter.trace() / self.scatter.rank() as f64;
        let ridge = s * spread / (1.0 - s);
        if spread > 0.0 {
            self.scatter.solve_regardless(&mut w, ridge)?;
            w.as_mut().col_iter_mut().for_each(|column| column.iter_mut().for_each(|v| *v *= samples / (1.0 - s)));
        } // One sample per class, or identical samples: nearest means.
        let bias = (0..w.nrows()).map(|class| -0.5 * (w.row(class) * self.means.col(class))).collect();
        Ok((w, bias))
    }

    /// Updates means and scatter with a batch, exactly: adds the batch's scatter about its class means, and for each
    /// class a term for the distance between the old mean and the batch's.
    pub fn absorb(&mut self, h: MatRef<'_, f32>, classes: &[usize]) {
        let width = h.nrows();
        let (present, place) = compact(classes);
        let mut counts = vec![0usize; present.len()];
        let mut means = Mat::<f64>::zeros(width, present.len());
        let mut columns = Mat::<f64>::zeros(width, classes.len() + present.len());
        for (sample, &place) in place.iter().enumerate() {
            counts[place] += 1;
            let sums = means.col_mut(place);
            sums.iter_mut().zip(h.col(sample).iter()).for_each(|(sum, v)| *sum += *v as f64);
        }
        for (place, &count) in counts.iter().enumerate() {
            means.col_mut(place).iter_mut().for_each(|v| *v /= count as f64);
        }
        for (sample, &place) in place.iter().enumerate() {
            let target = columns.col_mut(sample);
            let pairs = h.col(sample).iter().zip(means.col(place).iter());
            target.iter_mut().zip(pairs).for_each(|(t, (h, mean))| *t = *h as f64 - mean);
        }
        for (place, &class) in present.iter().enumerate() {
            let (old, new) = (self.counts[class] as f64, counts[place] as f64);
            let weight = (old * new / (old + new)).sqrt();
            let target = columns.col_mut(classes.len() + place);
            let pairs = self.means.col_mut(class).iter_mut().zip(means.col(place).iter());
            target.iter_mut().zip(pairs).for_each(|(t, (mean, batch))| {
                *t = weight * (batch - *mean);
                *mean += (batch - *mean) * new / (old + new);
            });
            self.counts[class] += counts[place];
        }
        self.scatter.add(columns.as_ref());
    }
}

impl Learner for Lda {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.lifted.lift.dim())?;
        self.classifier = None;
        let classes = indices(&mut self.table, labels);
        self.moments.grow(self.lifted.width(), self.table.len());
        for (part, classes) in x.chunks(CHUNK).zip(classes.chunks(CHUNK)) {
            self.moments.absorb(self.lifted.lift(part).rb(), classes);
        }
        self.lifted.wipe(x.len().min(CHUNK));
        Ok(())
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if let Some(classifier) = &self.classifier {
            return Ok(classifier.clone());
        }
        let (w, bias) = self.weights()?;
        let bias = bias.iter().map(|&b| b as f32).collect();
        let classifier = self.lifted.linear(&self.table, cast(w.transpose()), bias);
        Ok(self.classifier.insert(classifier).clone())
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        Summary { samples: self.moments.samples(), classes: self.table.len(), ..Summary::default() }
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "shrinkage": self.shrinkage.value() })
    }

    fn state_bytes(&self) -> usize {
        self.moments.bytes() + self.classifier.as_ref().map_or(0, Classifier::bytes) + self.lifted.bytes()
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let (width, chunk) = (self.lifted.width(), CHUNK.min(stream.largest_task));
        sum(&[
            product(&[self.shrinkage.squares(), 8, width, width]),
            product(&[8 + 8 + 4, width, stream.classes]),
            product(&[4 + 4 + 8 + 16, width, chunk]),
        ])
    }
}

/// The name and meaning of the shrinkage.
pub(super) const SHRINKAGE: (&str, &str) =
    ("shrinkage", "share of the identity in the covariance, or `oracle` (default): from the covariance itself");

fn build(options: &MethodOptions, settings: &Settings<'_>) -> Result<Box<dyn Learner>, Error> {
    Ok(Box::new(Lda::new(options.map()?, Shrinkage::read(settings)?)?))
}

/// The registry entry of streaming LDA.
pub(crate) const SLDA: Method = Method {
    name: "slda",
    summary: "streaming linear discriminant analysis with shrinkage, on plain features",
    input: Input::Plain,
    continual: true,
    exemplar_free: true,
    truncates: false,
    cuts: false,
    settings: &[SHRINKAGE],
    exempt: &[],
    infinite: false,
    config: None,
    build,
};

/// The registry entry of RanDumb.
pub(crate) const RANDUMB: Method = Method {
    name: "randumb",
    summary: "random Fourier features and streaming linear discriminant analysis",
    input: Input::LiftedBy("fourier"),
    ..SLDA
};
