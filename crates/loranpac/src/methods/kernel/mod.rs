//! LoRanPAC of infinite width: samples are kept, and the arc-cosine kernel gives their inner products.
//!
//! With Z the kept samples (d x n) and `K = k(Z, Z)`, the classifier is `scores(x) = A k(Z, x)`, where A filters the
//! spectrum of K as the explicit form filters that of S ([`crate::filter`]). Learning appends samples.
//!
//! Beyond a cap, samples are evicted. An evicted sample leaves its projection on the span of the others, `phi(x) ~ Phi b`:
//!
//! ```text
//! H H' ~ Phi M Phi',  M = I + sum over evicted of b b'        Y H' ~ B Phi',  B = Y_Z + sum over evicted of y b'
//! ```
//!
//! (subset of regressors). With `M = G G'` this is the same problem again, with `G'KG` for K and `B G^-T` for Y.
//!
//! The kernel is homogeneous: a sample of weight w is one that is `sqrt(w)` times as long, with a column of Y that is `sqrt(w)` times
//! as long. Everything computed here refers to such samples.

mod choose;
mod edit;
mod evict;
mod state;

use std::sync::{Arc, OnceLock};

use faer::{Mat, MatRef, Side as Triangle};

pub use state::{Evicted, KeptWeights, KernelState};

use super::lifted::indices;
use crate::certificate::Certificate;
use crate::classifier::{Classifier, Directions, KernelDirections, KernelScorer, Scorer, bytes_of, extend_kernel};
use crate::config::Config;
use crate::delta::{Delta, Receiver};
use crate::dual::{self, MOST_DOUBLE};
use crate::error::Error;
use crate::features::Features;
use crate::filter::{Facts, Filter, Limits, Problem, Ridge, Side, Solution};
use crate::gram::Gram;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_weighted_task};
use crate::lift::{ArcCosine, FeatureSpace, Polar};
use crate::memory::{human_bytes, product, sum};
use crate::plan::with_slack;
use crate::width::Width;

/// A kernel matrix of more bytes than this is recomputed for each classifier instead of kept: 16,384 samples.
const LARGEST_KEPT: usize = 2 << 30;

/// LoRanPAC of infinite width.
pub struct KernelModel {
    space: ArcCosine,
    config: Config,
    table: LabelTable,
    state: KernelState,
    /// K of the first kept samples; shared with classifiers until it changes.
    kernel: Arc<Gram>,
    classifier: Option<Classifier>,
}

impl KernelModel {
    /// Creates a model that has learned nothing yet.
    pub fn new(space: ArcCosine, config: Config) -> Result<Self, Error> {
        let config = config.validate_for(Width::Infinite)?;
        let (table, state, kernel) = (LabelTable::default(), KernelState::default(), Arc::default());
        Ok(KernelModel { space, config, table, state, kernel, classifier: None })
    }

    /// Creates a model from its parts; returns None if they do not fit together.
    pub fn from_parts(
        space: ArcCosine,
        config: Config,
        table: LabelTable,
        state: KernelState,
    ) -> Result<Option<Self>, Error> {
        let model = KernelModel::new(space, config)?;
        let fits = state.fits(space.dim(), table.len());
        Ok(fits.then_some(KernelModel { table, state, ..model }))
    }

    /// Returns the state of the model.
    pub fn state(&self) -> &KernelState {
        &self.state
    }

    /// Returns the number of kept samples, n.
    pub fn len(&self) -> usize {
        self.state.len()
    }

    /// Returns whether no sample is kept.
    pub fn is_empty(&self) -> bool {
        self.state.is_empty()
    }

    /// Restores a classifier that was formed from the same samples (A transposed, n x c); returns false if the size
    /// differs.
    pub fn set_classifier(&mut self, weights: Mat<f64>, facts: Facts, lost: f64) -> bool {
        let fits = (weights.nrows(), weights.ncols()) == (self.len(), self.table.len());
        if fits {
            let formed = Formed { weights, facts, lost };
            self.classifier = Some(self.classifier_of(self.polar(), formed, None));
        }
        fits
    }

    /// Learns a task, and reports the changes. Samples are appended, and nothing is computed except for evictions.
    pub fn learn_with(&mut self, x: Features<'_>, labels: &[Label], changed: Receiver<'_>) -> Result<(), Error> {
        check_weighted_task(x, labels, self.space.dim())?;
        if let Some(present) = x.present() {
            return self.learn_with(present.features(), &present.of(labels), changed);
        }
        self.config.accepts(x)?;
        self.classifier = None;
        let chunk = x.len().div_ceil(x.len().div_ceil(self.config.chunk));
        for (part, labels) in x.chunks(chunk).zip(labels.chunks(chunk)) {
            if let Some(evicted) = &mut self.state.evicted {
                evicted.settle();
            }
            let classes = indices(&mut self.table, labels);
            if part.weights().is_some() || self.state.weighted.is_some() {
                let weighted = self.state.weighted_mut();
                weighted.masses.classes.resize(self.table.len(), 0.0);
                for (i, class) in classes.iter().enumerate() {
                    let weight = part.weights().map_or(1.0, |weights| weights[i]);
                    weighted.kept.push(weight);
                    weighted.masses.add(*class, weight);
                }
            }
            self.state.counts.resize(self.table.len(), 0);
            classes.iter().for_each(|class| self.state.counts[*class] += 1);
            let rows = self.rounded(part);
            self.state.samples.extend(rows);
            changed(Delta::of_classes(classes.iter().copied(), self.table.len()));
            self.state.classes.extend(classes);
            if self.evict() {
                changed(Delta::everything(self.table.len()));
            }
        }
        Ok(())
    }

    /// Returns the kept samples, multiplied by the roots of their weights.
    fn polar(&self) -> Polar {
        let polar = Polar::new(MatRef::from_column_major_slice(&self.state.samples, self.space.dim(), self.len()));
        match self.state.weights() {
            Some(weights) => polar.scaled(&weights.iter().map(|weight| weight.sqrt()).collect::<Vec<_>>()),
            None => polar,
        }
    }

    /// Recomputes K of all kept samples. The state must not depend, even in the last bit, on when blocks of K were
    /// computed: a model that was read from a file has none.
    fn renew_kernel(&mut self) {
        let mut kernel = Gram::default();
        extend_kernel(&mut kernel, &self.polar());
        self.kernel = Arc::new(kernel);
    }

    /// Returns K of all kept samples; missing blocks are computed.
    fn kernel(&mut self, polar: &Polar) -> &mut Gram {
        let kernel = Arc::make_mut(&mut self.kernel);
        extend_kernel(kernel, polar);
        kernel
    }

    fn limits(&self) -> Limits {
        // Beyond a cap there are more samples than rows, and the truncated share refers to the rows.
        let Config { max_rank, .. } = self.config;
        let (samples, mass) = (self.state.learned(), self.state.masses().all);
        Limits { width: self.len(), samples, mass, max_rank, keep_null: false, on_grid: false }
    }

    /// Forms the classifier from many samples without K; None if it needs K in double precision.
    fn formed_from(&mut self, polar: &Polar) -> Result<Option<Formed>, Error> {
        let Filter::Soft(ridge) = self.config.filter else { return Ok(None) };
        if self.state.evicted.is_some() || !dual::packs(self.config.filter, self.len()) {
            return Ok(None);
        }
        let solution = dual::solve(polar, &self.state.classes, self.table.len(), ridge, self.state.weights())?;
        let single = matches!(ridge, Ridge::GeometricMean | Ridge::Fixed(_));
        if solution.is_none() && single && self.len() > MOST_DOUBLE {
            return Err(Error::Memory(format!(
                "{} samples depend on each other too much for a classifier in single precision, and double precision takes \
                 {}: keep {MOST_DOUBLE} or fewer with `max-rank`, or set a larger `ridge`",
                self.len(),
                human_bytes(product(&[8, self.len(), self.len()])),
            )));
        }
        let Some(Solution { coefficients, facts }) = solution else { return Ok(None) };
        self.kernel = Arc::default();
        Ok(Some(Formed { weights: coefficients.transpose().to_owned(), facts, lost: 0.0 }))
    }

    /// Forms the classifier by filtering the spectrum of K, which must be complete.
    fn formed(&mut self) -> Result<Formed, Error> {
        let masses = self.state.masses();
        let labelled = masses.classes.iter().sum::<f64>() / masses.all;
        let (filter, limits) = (self.config.filter, self.limits());
        let Some(evicted) = &self.state.evicted else {
            let labels = self.state.labels(self.table.len());
            let side = Side::Dual { classes: Some(&self.state.classes), weights: self.state.weights() };
            let gram = Arc::make_mut(&mut self.kernel);
            let solution = Problem { gram, targets: &labels, side, limits, labelled }.solve(filter)?;
            let weights = solution.coefficients.transpose().to_owned();
            return Ok(Formed { weights, facts: solution.facts, lost: 0.0 });
        };
        let (mut kernel, labels, g) = self.whitened()?;
        let energy = kernel.trace();
        let side = Side::Dual { classes: None, weights: None };
        let problem = Problem { gram: &mut kernel, targets: &labels, side, limits, labelled };
        let solution = problem.solve(filter)?;
        let (x, mut facts) = (solution.coefficients, solution.facts);
        // The loss changes the scores of all samples by a matrix of at most this norm: `W (H - Phi (...))`, with |W|^2
        // the largest eigenvalue of `X K X'`.
        let squared = &x * (kernel.to_matrix() * x.transpose());
        let squared =
            squared.self_adjoint_eigenvalues(Triangle::Lower).map_err(|_| Error::Eigen { rank: x.nrows() })?;
        let length = squared.last().copied().unwrap_or(0.0).max(0.0).sqrt();
        let change = evicted.error * length / masses.all.sqrt();
        let middle = facts.train_mse.sqrt();
        facts.train_mse = (middle - change).max(0.0).powi(2);
        facts.train_mse_upper = (middle + change).powi(2);
        let error = evicted.error + evicted.latest;
        let lost = error * (2.0 * energy.max(0.0).sqrt() + error);
        Ok(Formed { weights: &g * x.transpose(), facts, lost })
    }

    /// Returns the classifier of the formed coefficients. `kernel` is K, if it stays in memory.
    fn classifier_of(&self, samples: Polar, formed: Formed, kernel: Option<Arc<Gram>>) -> Classifier {
        let Formed { weights, facts, lost } = formed;
        let directions = KernelDirections {
            kernel,
            mass: self.state.evicted.is_some().then(|| self.mass()),
            filter: (self.config.filter, facts.ridge, self.limits()),
            measure: OnceLock::new(),
        };
        let scorer = Scorer::Kernel(KernelScorer { samples, weights, lost });
        Classifier::new(FeatureSpace::Kernel(self.space), &self.table, scorer)
            .with_facts(facts)
            .with_directions(Directions::Kernel(directions))
    }

    /// Returns samples as they are stored: in single precision, or rounded to half.
    fn rounded(&self, x: Features<'_>) -> Vec<f32> {
        let all = (0..x.len()).flat_map(|row| x.row(row)).copied();
        // Adding zero makes -0 and 0 equal.
        match self.config.half {
            true => all.map(|v| half::f16::from_f32(v).to_f32() + 0.0).collect(),
            false => all.map(|v| v + 0.0).collect(),
        }
    }
}

/// A', its facts, and a bound on the change of `H H'`.
struct Formed {
    weights: Mat<f64>,
    facts: Facts,
    lost: f64,
}

impl Learner for KernelModel {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        self.learn_with(x, labels, &mut drop)
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if let Some(classifier) = &self.classifier {
            return Ok(classifier.clone());
        }
        if self.is_empty() {
            return Err(Error::NothingLearned);
        }
        let polar = self.polar();
        let formed = match self.formed_from(&polar)? {
            Some(formed) => formed,
            None => {
                self.kernel(&polar);
                self.formed()?
            }
        };
        if self.kernel.bytes() > LARGEST_KEPT {
            self.kernel = Arc::default();
        }
        let kernel = (self.kernel.rank() == self.len()).then(|| self.kernel.clone());
        let classifier = self.classifier_of(polar, formed, kernel);
        Ok(self.classifier.insert(classifier).clone())
    }

    fn spectrum(&mut self) -> Result<Option<Vec<f64>>, Error> {
        if self.kernel.rank() < self.len() {
            let polar = self.polar();
            self.kernel(&polar);
        }
        // A copy is decomposed if a classifier shares K.
        match (&self.state.evicted, Arc::get_mut(&mut self.kernel)) {
            (None, Some(kernel)) => kernel.eigenvalues().map(Some),
            (None, None) => (*self.kernel).clone().eigenvalues().map(Some),
            (Some(_), _) => self.whitened()?.0.eigenvalues().map(Some),
        }
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        Summary {
            samples: self.state.learned(),
            classes: self.table.len(),
            basis_rank: Some(self.len()),
            ..Summary::of(self.classifier.as_ref(), |facts| Certificate::from_ledger(&self.ledger(), facts))
        }
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!(self.config)
    }

    fn state_bytes(&self) -> usize {
        let evicted = self.state.evicted.as_ref();
        let evicted = evicted.map_or(0, |evicted| bytes_of(&evicted.mass) + bytes_of(&evicted.sums));
        let classifier = self.classifier.as_ref().map_or(0, Classifier::bytes);
        size_of_val(self.state.samples.as_slice()) + self.kernel.bytes() + evicted + classifier
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let Config { max_rank, chunk, .. } = self.config;
        let most = with_slack(max_rank, chunk).saturating_add(chunk);
        let n = stream.samples.min(most);
        let columns =
            sum(&[product(&[12, self.space.dim()]), product(&[5, 8, stream.classes]), product(&[2, 8, chunk])]);
        let square = product(&[8, n, n]);
        let capped = self.state.evicted.is_some() || stream.samples > with_slack(max_rank, chunk);
        let packed = dual::bytes(n, stream.classes);
        let matrix = match self.config.filter {
            // Beyond the cap: K, M - I, G or a factor of K, and a product.
            _ if capped => square.saturating_mul(6),
            Filter::Soft(Ridge::GeometricMean | Ridge::Fixed(_)) if n > MOST_DOUBLE => packed,
            filter if dual::packs(filter, n) => square.max(packed),
            _ => square,
        };
        sum(&[matrix, product(&[n, columns])])
    }
}
