//! Orthogonal gradient descent for the linear model on lifted features, and its relatives.
//!
//! The gradient of a linear model lies in the span of its samples. OGD (Farajtabar et al., 2020) keeps an orthonormal
//! basis Q of all earlier samples and trains on a task with gradients from which that span is projected out, so that
//! earlier outputs never change:
//!
//! ```text
//! W <- W + eta (Y - W H) Hp',    Hp = H - Q Q' H = Qn Rn,    eta = 1 / largest eigenvalue of Hp Hp'
//! ```
//!
//! n such steps have a closed form: W gains `(Y - W H) Rn' g(Rn Rn') Qn'` with `g(mu) = (1 - (1 - eta mu)^n) / mu`, a
//! function of a p x p matrix instead of n passes over E. PCA-OGD (Doan et al., 2021) keeps only the leading principal
//! directions of each task. OR-Fit (Min et al., 2022) makes one pass over the samples, each with the step that fits it
//! exactly, and truncates its basis to r_max by incremental PCA. Cost: `8 E r m` flops per task.

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef};

use super::lifted::{Lifted, grow_columns, indices};
use crate::basis::{Columns, Split};
use crate::classifier::{CHUNK, Classifier, bytes_of};
use crate::error::Error;
use crate::features::Features;
use crate::gram::{Eigen, Gram};
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::FeatureMap;
use crate::linalg::{cast, column_norms, par, product};
use crate::memory::{self, sum};
use crate::method::{Input, Method, Promise};
use crate::statistics::DEFAULT_DROP;
use crate::truncation::Truncation;

/// The variants of the family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Variant {
    /// All directions are protected; this many gradient steps per task.
    Ogd(usize),
    /// The leading directions of each task are protected; this many gradient steps per task.
    Pca(usize, Truncation),
    /// One pass with exact steps; at most this many directions.
    OrFit(usize),
}

/// The learner.
pub struct Ogd {
    lifted: Lifted,
    table: LabelTable,
    samples: usize,
    state: State,
}

/// The state that a task changes.
struct State {
    variant: Variant,
    basis: Columns<f32>,
    /// An approximation of `Q' H H' Q`, for OR-Fit's incremental PCA.
    gram: Gram,
    /// W', E x c.
    weights: Mat<f32>,
}

impl Ogd {
    /// Creates a model that has learned nothing yet.
    pub fn new(lift: Arc<dyn FeatureMap>, variant: Variant) -> Result<Self, Error> {
        if let Variant::Pca(_, truncation) = variant {
            truncation.validate()?;
        }
        let basis = Columns::new(lift.width());
        let state = State { variant, basis, gram: Gram::default(), weights: Mat::new() };
        Ok(Ogd { lifted: Lifted::new(lift), table: LabelTable::default(), samples: 0, state })
    }

    /// Returns W' (E x c).
    pub fn weights(&self) -> MatRef<'_, f32> {
        self.state.weights.as_ref()
    }
}

impl State {
    /// Learns lifted samples (E x m, destroyed). An error changes nothing, or leaves OR-Fit's basis untruncated.
    fn absorb(&mut self, mut h: MatMut<'_, f32>, classes: &[usize], all_classes: usize) -> Result<(), Error> {
        let norms = column_norms(h.rb());
        let miss = self.miss(h.rb(), classes, all_classes);
        let split = self.basis.split(h.rb_mut(), &norms, DEFAULT_DROP * f32::EPSILON as f64);
        let steps = match self.variant {
            Variant::Ogd(steps) | Variant::Pca(steps, _) => gradient_steps(&split.new, &miss, steps)?,
            Variant::OrFit(_) => exact_steps(&split.new, &miss, &norms),
        };
        let protected = match self.variant {
            Variant::Pca(_, truncation) => Some(leading(&split, truncation, self.basis.width())?),
            _ => None,
        };
        let qn = h.rb().subcols(0, split.new.nrows());
        let steps: Mat<f32> = cast(steps.transpose());
        grow_columns(&mut self.weights, self.basis.width(), all_classes);
        matmul(&mut self.weights, Accum::Add, qn, &steps, 1.0, par());
        match protected {
            Some(turn) => self.basis.append(product(qn, cast::<f64, f32>(turn.as_ref()).as_ref()).as_ref()),
            None => self.basis.append(qn),
        }
        if let Variant::OrFit(most) = self.variant {
            self.gram.grow(split.known.as_ref(), split.new.as_ref());
            if self.basis.rank() > most {
                let Eigen { values, vectors } = self.gram.eigen()?;
                self.gram.set_diagonal(&values[..most]);
                self.basis.rotate(cast(vectors.as_ref().subcols(0, most)).as_ref());
            }
        }
        Ok(())
    }

    /// Computes the residual `Y - W H`, c x m; a new class has no weights yet.
    fn miss(&self, h: MatRef<'_, f32>, classes: &[usize], all_classes: usize) -> Mat<f64> {
        let known = self.weights.ncols();
        let outputs = if known > 0 { product(h.transpose(), self.weights.as_ref()) } else { Mat::new() };
        Mat::from_fn(all_classes, h.ncols(), |class, sample| {
            let target = if classes[sample] == class { 1.0 } else { 0.0 };
            if class < known { target - outputs[(sample, class)] as f64 } else { target }
        })
    }
}

/// Computes n gradient steps at once: `R Rn' g(Rn Rn')`, c x p.
fn gradient_steps(rn: &Mat<f64>, miss: &Mat<f64>, steps: usize) -> Result<Mat<f64>, Error> {
    let p = rn.nrows();
    let mut gram = Gram::zeros(p);
    gram.add(rn.as_ref());
    let mut b = miss * rn.transpose();
    gram.apply_function(&mut b, |mu, _| {
        let largest = mu.first().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
        // (1 - (1 - x)^n) / mu with x = mu / largest, without cancellation; at x = 0 it is n / largest.
        let g = |mu: f64| {
            let x = (mu / largest).clamp(0.0, 1.0);
            let decayed = -(steps as f64 * (-x).ln_1p()).exp_m1();
            if x > 0.0 { decayed / (x * largest) } else { steps as f64 / largest }
        };
        mu.iter().map(|&mu| g(mu)).collect()
    })?;
    Ok(b)
}

/// Computes one pass, sample after sample: each step is along the new component of its sample, with the length that
/// fits it exactly. In the coordinates of Qn this is Gram-Schmidt on the columns of Rn.
fn exact_steps(rn: &Mat<f64>, miss: &Mat<f64>, norms: &[f64]) -> Mat<f64> {
    let p = rn.nrows();
    let mut seen = Mat::<f64>::zeros(p, p);
    let mut rank = 0;
    let mut b = Mat::<f64>::zeros(miss.nrows(), p);
    for (j, norm) in norms.iter().enumerate() {
        let column = rn.col(j).to_owned();
        let mut v = column.clone();
        for _ in 0..2 {
            let known = seen.as_ref().subcols(0, rank);
            v = &v - known * (known.transpose() * &v);
        }
        let length = v.norm_l2();
        if rank == p || length <= DEFAULT_DROP * f32::EPSILON as f64 * norm {
            continue; // Without a new component, the sample cannot be fitted without changing earlier outputs.
        }
        v.iter_mut().for_each(|v| *v /= length);
        let now = miss.col(j) - &b * &column;
        let step = v.transpose() * &column;
        b += now * v.transpose() * faer::Scale(1.0 / step);
        seen.col_mut(rank).copy_from(&v);
        rank += 1;
    }
    b
}

/// Returns the new directions among a task's leading principal ones: an orthonormal Z with `Qn Z` their span outside Q.
fn leading(split: &Split, truncation: Truncation, width: usize) -> Result<Mat<f64>, Error> {
    let m = split.new.ncols();
    let mut gram = Gram::zeros(m);
    gram.add(split.known.transpose());
    gram.add(split.new.transpose());
    let Eigen { values, vectors } = gram.eigen()?;
    let k = truncation.kept(&values, width, m, m);
    let directions = &split.new * vectors.as_ref().subcols(0, k);
    // Directions that are already protected vanish here, to rounding.
    let svd = directions.thin_svd().map_err(|_| Error::Eigen { rank: m })?;
    let floor = DEFAULT_DROP * f32::EPSILON as f64 * values.first().copied().unwrap_or(0.0).max(0.0).sqrt();
    let rank = svd.S().column_vector().iter().take_while(|&&s| s > floor).count();
    Ok(svd.U().subcols(0, rank).to_owned())
}

impl Learner for Ogd {
    /// Learns a task. [`Error::Eigen`] from OR-Fit leaves the task learned and the basis untruncated; from the others,
    /// nothing changes.
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.lifted.lift.dim())?;
        let mut table = self.table.clone();
        let classes = indices(&mut table, labels);
        // The gradient steps need the whole task; a single pass may be divided.
        let batch = if matches!(self.state.variant, Variant::OrFit(_)) { CHUNK } else { x.len() };
        let mut outcome = Ok(());
        for (part, classes) in x.chunks(batch).zip(classes.chunks(batch)) {
            outcome = outcome.and(self.state.absorb(self.lifted.lift(part), classes, table.len()));
        }
        self.lifted.wipe(x.len().min(CHUNK));
        if outcome.is_ok() || matches!(self.state.variant, Variant::OrFit(_)) {
            self.table = table;
            self.samples += labels.len();
        }
        outcome
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if self.samples == 0 {
            return Err(Error::NothingLearned);
        }
        Ok(self.lifted.linear(&self.table, self.state.weights.clone(), Vec::new()))
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        let (samples, classes) = (self.samples, self.table.len());
        Summary { samples, classes, basis_rank: Some(self.state.basis.rank()), ..Summary::default() }
    }

    fn settings(&self) -> serde_json::Value {
        match self.state.variant {
            Variant::Ogd(steps) => serde_json::json!({ "steps": steps }),
            Variant::Pca(steps, truncation) => serde_json::json!({ "steps": steps, "truncation": truncation }),
            Variant::OrFit(most) => serde_json::json!({ "max_rank": most }),
        }
    }

    fn state_bytes(&self) -> usize {
        self.state.basis.bytes() + self.state.gram.bytes() + bytes_of(&self.state.weights) + self.lifted.bytes()
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let width = self.lifted.width();
        let most = stream.samples.min(width);
        let (rank, batch, squares) = match self.state.variant {
            Variant::OrFit(cap) => (most.min(cap.saturating_add(CHUNK)), CHUNK.min(stream.largest_task), 5),
            _ => (most, stream.largest_task, 0),
        };
        sum(&[
            Columns::<f32>::bytes_for(width, rank),
            memory::product(&[4, width, stream.classes]),
            memory::product(&[squares, 8, rank, rank]),
            memory::product(&[3, 4, width, batch]),
            memory::product(&[4, 8, rank, batch]),
            memory::product(&[5, 8, batch, batch]),
        ])
    }
}

const STEPS: (&str, &str) = ("steps", "gradient steps per task (1000)");
const DEFAULT_STEPS: usize = 1000;

/// The registry entry of orthogonal gradient descent.
pub(crate) const OGD: Method = Method {
    name: "ogd",
    summary: "orthogonal gradient descent: steps that leave earlier outputs alone",
    input: Input::Lifted,
    continual: true,
    exemplar_free: true,
    truncates: false,
    cuts: false,
    settings: &[STEPS],
    exempt: &[(
        Promise::Halves,
        "gradient steps stop short of the solution, and half a task stops elsewhere than the whole",
    )],
    infinite: false,
    config: None,
    build: |options, settings| {
        let steps = settings.count("steps", DEFAULT_STEPS)?;
        Ok(Box::new(Ogd::new(options.map()?, Variant::Ogd(steps))?))
    },
};

/// The registry entry of PCA-OGD.
pub(crate) const PCA_OGD: Method = Method {
    name: "pca-ogd",
    summary: "orthogonal gradient descent that protects only the leading directions of each task",
    truncates: true,
    build: |options, settings| {
        let steps = settings.count("steps", DEFAULT_STEPS)?;
        let truncation = options.truncation.unwrap_or_default();
        Ok(Box::new(Ogd::new(options.map()?, Variant::Pca(steps, truncation))?))
    },
    ..OGD
};

/// The registry entry of OR-Fit.
pub(crate) const OR_FIT: Method = Method {
    name: "or-fit",
    summary: "one pass of orthogonal steps, each of which fits its sample exactly",
    settings: &[],
    exempt: &[
        (Promise::SampleOrder, "it visits the samples one by one, and divides by what is new in each"),
        (
            Promise::Halves,
            "it divides by what is new in a sample: rounding, once samples outnumber the lifted features",
        ),
    ],
    build: |options, _| Ok(Box::new(Ogd::new(options.map()?, Variant::OrFit(options.max_rank.max(1)))?)),
    ..OGD
};
