//! The classifier: an immutable value that threads share and that is cheap to clone.

mod kernel;
mod lifted;
mod linear;
mod rule;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use faer::{Mat, MatRef};

pub(crate) use kernel::{KernelDirections, KernelScorer, extend_kernel, whiten};
pub use lifted::LiftedSamples;
pub(crate) use linear::unit_columns;
use linear::{coordinates, cosines, linear_scores};
pub(crate) use rule::Rule;

use crate::basis::Basis;
use crate::error::Error;
use crate::features::IntoFeatures;
use crate::filter::{Facts, Novelty};
use crate::label::{Label, LabelTable};
use crate::lift::FeatureSpace;
use crate::prior::Prior;
use crate::scores::Scores;

/// Samples that are lifted at a time.
pub const CHUNK: usize = 384;

/// The temperature of probabilities without calibration: least-squares scores lie between 0 and 1, and differ by
/// tenths.
pub const UNCALIBRATED: f64 = 0.1;

/// A snapshot of what [`crate::Learner::classifier`] formed. Further learning does not affect it.
#[derive(Clone)]
pub struct Classifier {
    space: FeatureSpace,
    labels: Arc<LabelTable>,
    scorer: Arc<Scorer>,
    /// The directions that the classifier uses, for methods with a basis.
    directions: Option<Arc<Directions>>,
    facts: Option<Facts>,
    temperature: Option<f64>,
    /// What the scores of each class are multiplied by, if not by 1.
    factors: Option<Arc<[f32]>>,
}

/// How scores are computed.
pub(crate) enum Scorer {
    /// `H' W + b`.
    Linear {
        /// W, transposed: E x c.
        weights: Mat<f32>,
        /// b, or empty.
        bias: Vec<f32>,
    },
    /// Cosine similarity to the columns of a d x c matrix, which have length 1.
    Cosine(Mat<f32>),
    /// Sums of cosine similarities in subspaces.
    Subspaces {
        /// A column for each class: in each subspace, a vector whose length is the weight of the similarity.
        weights: Mat<f32>,
        /// Features of a subspace.
        size: usize,
    },
    /// `A k(Z, x)`.
    Kernel(KernelScorer),
    /// The rule of one method.
    Rule(Box<dyn Rule>),
}

/// The data that measures which share of a sample lies outside the directions that the classifier uses.
pub(crate) enum Directions {
    /// Coordinates in a basis.
    Basis(Basis<f32>, Novelty),
    /// Kernel values with the kept samples.
    Kernel(KernelDirections),
}

impl Classifier {
    pub(crate) fn new(space: FeatureSpace, labels: &LabelTable, scorer: Scorer) -> Self {
        let (labels, scorer) = (Arc::new(labels.clone()), Arc::new(scorer));
        Classifier { space, labels, scorer, directions: None, facts: None, temperature: None, factors: None }
    }

    /// Creates a linear classifier on the features of `space`. `fill` writes the E weights of each label, by its place
    /// in `labels`.
    ///
    /// Fails if two labels are equal, if the space has infinite width, or if `fill` fails.
    pub fn linear<E: From<Error>>(
        space: FeatureSpace,
        labels: &[Label],
        mut fill: impl FnMut(usize, &mut [f32]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let table = LabelTable::from_labels(labels)?;
        let infinite = || Error::setting("width", "infinite", "a linear classifier has a finite width");
        let width = space.width().finite().ok_or_else(infinite)?;
        let mut weights = Mat::zeros(width, labels.len());
        for class in 0..labels.len() {
            fill(class, weights.col_as_slice_mut(class))?;
        }
        Ok(Classifier::new(space, &table, Scorer::Linear { weights, bias: Vec::new() }))
    }

    pub(crate) fn with_facts(self, facts: Facts) -> Self {
        Classifier { facts: Some(facts), ..self }
    }

    pub(crate) fn with_directions(self, directions: Directions) -> Self {
        Classifier { directions: Some(Arc::new(directions)), ..self }
    }

    pub(crate) fn with_labels(self, labels: &LabelTable) -> Self {
        Classifier { labels: Arc::new(labels.clone()), ..self }
    }

    /// Sets the temperature, which was fitted on held-out samples.
    pub fn with_temperature(self, temperature: Option<f64>) -> Self {
        Classifier { temperature, ..self }
    }

    /// Multiplies scores by the factors of a prior ([`Prior::factors`]), instead of those of an earlier one. `counts` are the
    /// samples of each class, in the order of the labels. A classifier that is not a least-squares solution (one with a bias,
    /// or by cosine similarity) does not change: it has a rule of its own for the sizes of classes.
    pub fn with_prior(self, prior: &Prior, counts: &[f64]) -> Result<Self, Error> {
        if counts.len() != self.labels.len() {
            return Err(Error::LabelCount { samples: counts.len(), labels: self.labels.len() });
        }
        let factors = if self.is_least_squares() { prior.factors(self.labels(), counts)? } else { None };
        Ok(Classifier { factors: factors.map(Arc::from), ..self })
    }

    /// Returns whether a prior changes its scores.
    pub fn is_least_squares(&self) -> bool {
        match &*self.scorer {
            Scorer::Linear { bias, .. } => bias.is_empty(),
            Scorer::Kernel(_) => true,
            Scorer::Cosine(_) | Scorer::Subspaces { .. } | Scorer::Rule(_) => false,
        }
    }

    /// Returns what the scores of each class are multiplied by; None if it is 1 for all of them.
    pub fn factors(&self) -> Option<&[f32]> {
        self.factors.as_deref()
    }

    /// Returns the number of features per sample, d.
    pub fn dim(&self) -> usize {
        self.space.dim()
    }

    /// Returns the feature space.
    pub fn space(&self) -> &FeatureSpace {
        &self.space
    }

    /// Returns the labels, in the order of the columns of [`Classifier::scores`].
    pub fn labels(&self) -> &[Label] {
        self.labels.labels()
    }

    /// Returns the column of a label.
    pub fn column(&self, label: &Label) -> Option<usize> {
        self.labels.get(label)
    }

    /// Returns the facts that forming the classifier established, for the LoRanPAC family.
    pub fn facts(&self) -> Option<&Facts> {
        self.facts.as_ref()
    }

    /// Returns the temperature of probabilities, if one was fitted.
    pub fn temperature(&self) -> Option<f64> {
        self.temperature
    }

    /// Returns the weights, for linear classifiers without a bias: those that predict, with the factors of the prior.
    pub fn weights(&self) -> Option<Weights<'_>> {
        match &*self.scorer {
            Scorer::Linear { weights, bias } if bias.is_empty() => {
                Some(Weights { weights, factors: self.factors.as_deref() })
            }
            _ => None,
        }
    }

    /// Returns A, transposed (n x c) and without the factors of a prior, and a bound on the change of `H H'` by evicted samples, at infinite width.
    pub fn coefficients(&self) -> Option<(MatRef<'_, f64>, f64)> {
        self.kernel().map(|kernel| (kernel.weights.as_ref(), kernel.lost))
    }

    pub(crate) fn kernel(&self) -> Option<&KernelScorer> {
        match &*self.scorer {
            Scorer::Kernel(kernel) => Some(kernel),
            _ => None,
        }
    }

    /// Returns the bytes of the weights.
    pub fn bytes(&self) -> usize {
        match &*self.scorer {
            Scorer::Linear { weights, bias } => bytes_of(weights) + size_of_val(&bias[..]),
            Scorer::Cosine(means) => bytes_of(means),
            Scorer::Subspaces { weights, .. } => bytes_of(weights),
            Scorer::Kernel(kernel) => kernel.samples.bytes() + bytes_of(&kernel.weights),
            Scorer::Rule(rule) => rule.bytes(),
        }
    }

    /// Returns one score per sample and label; the highest wins. The scores of a sample do not depend on the rest of
    /// its batch, to the last bit.
    pub fn scores<'x>(&self, x: impl IntoFeatures<'x>) -> Result<Scores, Error> {
        let x = x.into_features(self.dim())?;
        x.validate(self.dim())?;
        let classes = self.labels.len();
        let mut values = Vec::with_capacity(x.len() * classes);
        match (&*self.scorer, &self.space) {
            (Scorer::Linear { weights, bias }, FeatureSpace::Explicit(map)) => {
                linear_scores(&**map, x, weights, bias, &mut values);
            }
            (Scorer::Cosine(means), _) => cosines(means, x.dim(), x, &mut values),
            (Scorer::Subspaces { weights, size }, _) => cosines(weights, *size, x, &mut values),
            (Scorer::Kernel(kernel), _) => kernel.scores(x, &mut values),
            (Scorer::Rule(rule), FeatureSpace::Explicit(map)) => rule::scores(&**rule, &**map, x, &mut values),
            // Both need explicit spaces.
            (Scorer::Linear { .. } | Scorer::Rule(_), FeatureSpace::Kernel(_)) => return Err(Error::NothingLearned),
        }
        Ok(self.weighted(values))
    }

    /// Multiplies least-squares scores by the factors of the prior.
    fn weighted(&self, mut values: Vec<f32>) -> Scores {
        if let Some(factors) = &self.factors {
            for row in values.chunks_exact_mut(factors.len()) {
                row.iter_mut().zip(&factors[..]).for_each(|(score, factor)| *score *= factor);
            }
        }
        Scores::new(values, self.labels.len())
    }

    /// Returns the winning label of each sample.
    pub fn predict<'x>(&self, x: impl IntoFeatures<'x>) -> Result<Vec<Label>, Error> {
        Ok(self.scores(x)?.argmax().into_iter().map(|column| self.labels()[column].clone()).collect())
    }

    /// Returns the k best labels of each sample with their scores, best first.
    pub fn top<'x>(&self, x: impl IntoFeatures<'x>, k: usize) -> Result<Vec<Vec<(Label, f32)>>, Error> {
        let named = |(column, score): (usize, f32)| (self.labels()[column].clone(), score);
        Ok(self.scores(x)?.top_k(k).into_iter().map(|row| row.into_iter().map(named).collect()).collect())
    }

    /// Returns a probability per sample and label: softmax of the scores over the temperature, or over
    /// [`UNCALIBRATED`].
    pub fn probabilities<'x>(&self, x: impl IntoFeatures<'x>) -> Result<Vec<Vec<f64>>, Error> {
        let temperature = self.temperature.unwrap_or(UNCALIBRATED);
        Ok(self.scores(x)?.rows().map(|row| softmax(row, temperature)).collect())
    }

    /// Returns the share of each sample's energy outside the directions that the classifier uses, from 0 (familiar) to
    /// 1 (new). Returns None for methods that keep no such directions.
    pub fn novelty<'x>(&self, x: impl IntoFeatures<'x>) -> Result<Option<Vec<f64>>, Error> {
        let x = x.into_features(self.dim())?;
        x.validate(self.dim())?;
        let Some(directions) = &self.directions else { return Ok(None) };
        match (&**directions, &self.space, self.kernel()) {
            (Directions::Basis(basis, novelty), FeatureSpace::Explicit(map), _) => {
                let (projected, energies) = coordinates(basis, &**map, x);
                novelty.outside(projected, &energies).map(Some)
            }
            (Directions::Kernel(directions), _, Some(kernel)) => directions.outside(kernel, x).map(Some),
            _ => Ok(None),
        }
    }
}

impl fmt::Debug for Classifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Classifier({}, {} labels)", self.space, self.labels.len())
    }
}

/// The weights of a linear classifier.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    weights: &'a Mat<f32>,
    factors: Option<&'a [f32]>,
}

impl<'a> Weights<'a> {
    /// Returns E.
    pub fn width(&self) -> usize {
        self.weights.nrows()
    }

    /// Returns the number of labels.
    pub fn classes(&self) -> usize {
        self.weights.ncols()
    }

    /// Returns the E weights of a label, by its column; copied if a prior changes them.
    pub fn of(&self, class: usize) -> Cow<'a, [f32]> {
        let column = self.weights.col_as_slice(class);
        match self.factors {
            None => Cow::Borrowed(column),
            Some(factors) => column.iter().map(|weight| weight * factors[class]).collect(),
        }
    }

    /// Returns the weights of each label.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = Cow<'a, [f32]>> + use<'a> {
        let weights = *self;
        (0..weights.classes()).map(move |class| weights.of(class))
    }
}

/// Returns the probabilities of one sample's labels: softmax(scores / temperature).
pub fn softmax(scores: &[f32], temperature: f64) -> Vec<f64> {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max) as f64;
    let mut values: Vec<f64> = scores.iter().map(|score| ((*score as f64 - highest) / temperature).exp()).collect();
    let sum: f64 = values.iter().sum();
    values.iter_mut().for_each(|value| *value /= sum);
    values
}

/// Returns the bytes of a matrix.
pub(crate) fn bytes_of<T>(matrix: &Mat<T>) -> usize {
    matrix.as_ref().col_stride().unsigned_abs() * matrix.ncols() * size_of::<T>()
}
