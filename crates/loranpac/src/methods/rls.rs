//! Recursive least squares: the inverse of `H H' + lambda I`, updated by the Sherman-Morrison-Woodbury formula.
//!
//! ```text
//! G = P H (I + H' P H)^-1,   W <- W + (Y - W H) G',   P <- P - G (P H)'        P = (H H' + lambda I)^-1, E x E
//! ```
//!
//! Cost: `4 E^2 m` flops per task, and the classifier is always up to date. In exact arithmetic this is ridge
//! regression. In floating point the errors of P accumulate without correction; the paper finds that it cannot keep its
//! accuracy. The drift is measured and reported: for a fixed random z, `(H H' + lambda I) z` is summed exactly
//! alongside, and `|P (H H' + lambda I) z - z| / |z|` is 0 for a true inverse.
//!
//! The same recursion on random features is ACIL (Zhuang et al., NeurIPS 2022), and GACL (2024) for tasks that mix known
//! and new classes, which needs no change here. Their lambda is 0.1 (`--set ridge=0.1`).

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::prelude::{Reborrow, Solve};
use faer::{Accum, Mat, MatRef};

use super::holdout;
use super::lifted::{Lifted, grow_columns, indices};
use super::shuffle::permutation;
use crate::classifier::{CHUNK, Classifier, bytes_of};
use crate::error::Error;
use crate::features::Features;
use crate::label::{Label, LabelTable};
use crate::learner::{Learner, StreamSizes, Summary, check_task};
use crate::lift::FeatureMap;
use crate::linalg::{cast, par};
use crate::memory::{product, sum};
use crate::method::{Input, Method, Promise};
use crate::scalar::Scalar;

/// Recursive least squares with P and W in `T`.
pub struct Rls<T> {
    lifted: Lifted,
    fixed: Option<f64>,
    seed: u64,
    table: LabelTable,
    samples: usize,
    ridge: f64,
    state: State<T>,
    /// W' in f32, for scoring.
    classifier: Option<Classifier>,
    drift: f64,
}

/// The state of the recursion; empty until something is learned.
struct State<T> {
    /// P, E x E.
    inverse: Mat<T>,
    /// W', E x c.
    weights: Mat<T>,
    /// z, and (H H' + lambda I) z.
    probe: Vec<f64>,
    image: Vec<f64>,
}

impl<T: Scalar> Rls<T> {
    /// Creates a model with this lambda, or with one chosen on the first task by hold-out (it cannot change
    /// afterwards).
    pub fn new(lift: Arc<dyn FeatureMap>, ridge: Option<f64>, seed: u64) -> Result<Self, Error> {
        if ridge.is_some_and(|ridge| !(ridge > 0.0 && ridge.is_finite())) {
            return Err(Error::setting("ridge", ridge.unwrap_or(0.0), "P starts as I / ridge, so it must be above 0"));
        }
        Ok(Rls {
            lifted: Lifted::new(lift),
            fixed: ridge,
            seed,
            table: LabelTable::default(),
            samples: 0,
            ridge: ridge.unwrap_or(0.0),
            state: State { inverse: Mat::new(), weights: Mat::new(), probe: Vec::new(), image: Vec::new() },
            classifier: None,
            drift: 0.0,
        })
    }

    /// Returns the current W' (E x c).
    pub fn weights(&self) -> MatRef<'_, T> {
        self.state.weights.as_ref()
    }
}

impl<T: Scalar> State<T> {
    /// Creates the initial state: `P = I / lambda`, and z from a seed.
    fn start(width: usize, ridge: f64, seed: u64) -> Self {
        let sign = |v: &usize| if v.is_multiple_of(2) { 1.0 } else { -1.0 };
        let mut inverse = Mat::zeros(width, width);
        (0..width).for_each(|i| inverse[(i, i)] = T::from_f64(1.0 / ridge));
        let probe: Vec<f64> = permutation(width, seed, u64::MAX).iter().map(sign).collect();
        State { inverse, weights: Mat::new(), image: probe.iter().map(|z| ridge * z).collect(), probe }
    }

    /// Runs one step of the recursion with lifted samples `h` (E x m).
    fn update(&mut self, h: MatRef<'_, f32>, classes: &[usize]) {
        let one = T::from_f64(1.0);
        let h: Mat<T> = cast(h);
        let (width, m) = (h.nrows(), h.ncols());
        let mut ph = Mat::<T>::zeros(width, m);
        matmul(&mut ph, Accum::Replace, &self.inverse, &h, one, par());
        let mut inner = Mat::<T>::identity(m, m);
        matmul(&mut inner, Accum::Add, h.transpose(), &ph, one, par());
        // LU, not Cholesky: once P has drifted this matrix need not be definite, and the recursion continues.
        let gain_transposed = inner.partial_piv_lu().solve_transpose(ph.transpose());

        let mut miss = Mat::<T>::zeros(m, self.weights.ncols());
        classes.iter().enumerate().for_each(|(sample, &class)| miss[(sample, class)] = one);
        matmul(&mut miss, Accum::Add, h.transpose(), &self.weights, T::from_f64(-1.0), par());
        matmul(&mut self.weights, Accum::Add, gain_transposed.transpose(), &miss, one, par());
        matmul(&mut self.inverse, Accum::Add, gain_transposed.transpose(), ph.transpose(), T::from_f64(-1.0), par());

        for column in h.col_iter() {
            let dot: f64 = column.iter().zip(&self.probe).map(|(h, z)| h.to_f64() * z).sum();
            self.image.iter_mut().zip(column.iter()).for_each(|(image, h)| *image += dot * h.to_f64());
        }
    }

    /// Computes `|P (H H' + lambda I) z - z| / |z|`.
    fn drift(&self) -> f64 {
        let image = Mat::<T>::from_fn(self.image.len(), 1, |i, _| T::from_f64(self.image[i]));
        let mut back = Mat::<T>::zeros(self.image.len(), 1);
        matmul(&mut back, Accum::Replace, &self.inverse, &image, T::from_f64(1.0), par());
        let off: f64 = self.probe.iter().enumerate().map(|(i, z)| (back[(i, 0)].to_f64() - z).powi(2)).sum();
        (off / self.probe.len() as f64).sqrt()
    }
}

impl<T: Scalar> Learner for Rls<T> {
    fn learn(&mut self, x: Features<'_>, labels: &[Label]) -> Result<(), Error> {
        check_task(x, labels, self.lifted.lift.dim())?;
        if self.samples == 0 {
            let ridge = match self.fixed {
                Some(ridge) => ridge,
                None => {
                    let classes = indices(&mut LabelTable::default(), labels);
                    let chosen = holdout::choose(self.lifted.lift(x).rb(), &classes, self.seed, 0, None);
                    self.lifted.wipe(0);
                    chosen
                }
            };
            self.ridge = ridge;
            self.state = State::start(self.lifted.width(), ridge, self.seed);
        }
        self.classifier = None;
        let classes = indices(&mut self.table, labels);
        grow_columns(&mut self.state.weights, self.lifted.width(), self.table.len());
        for (part, classes) in x.chunks(CHUNK).zip(classes.chunks(CHUNK)) {
            self.state.update(self.lifted.lift(part).rb(), classes);
        }
        self.samples += labels.len();
        self.lifted.wipe(x.len().min(CHUNK));
        self.drift = self.state.drift();
        Ok(())
    }

    fn classifier(&mut self) -> Result<Classifier, Error> {
        if self.samples == 0 {
            return Err(Error::NothingLearned);
        }
        let linear = || self.lifted.linear(&self.table, cast(self.state.weights.as_ref()), Vec::new());
        Ok(self.classifier.get_or_insert_with(linear).clone())
    }

    fn classes(&self) -> &LabelTable {
        &self.table
    }

    fn summary(&self) -> Summary {
        let learned = self.samples > 0;
        Summary {
            samples: self.samples,
            classes: self.table.len(),
            ridge: learned.then_some(self.ridge),
            drift: learned.then_some(self.drift),
            ..Summary::default()
        }
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "ridge": self.fixed, "precision": 8 * size_of::<T>(), "seed": self.seed })
    }

    fn state_bytes(&self) -> usize {
        let classifier = self.classifier.as_ref().map_or(0, Classifier::bytes);
        let State { inverse, weights, probe, image } = &self.state;
        let probe = (probe.capacity() + image.capacity()) * size_of::<f64>();
        bytes_of(inverse) + bytes_of(weights) + classifier + probe + self.lifted.bytes()
    }

    fn peak_bytes(&self, stream: &StreamSizes) -> usize {
        let (width, chunk) = (self.lifted.width(), CHUNK.min(stream.largest_task));
        let choice = if self.fixed.is_some() { 0 } else { holdout::peak_bytes(width, stream) };
        sum(&[
            product(&[size_of::<T>(), width, width]),
            product(&[size_of::<T>() + 4, width, stream.classes]),
            product(&[8 + 4 * size_of::<T>(), width, chunk]).max(choice),
        ])
    }
}

/// The registry entry.
pub(crate) const RLS: Method = Method {
    name: "rls",
    summary: "recursive least squares (Sherman-Morrison-Woodbury), as ACIL and GACL; it drifts: see drift in the results",
    input: Input::Lifted,
    continual: true,
    exemplar_free: true,
    truncates: false,
    cuts: false,
    settings: &[
        ("ridge", "lambda, instead of a choice by hold-out on the first task"),
        ("precision", "bits of the inverse: 32 (default) or 64"),
    ],
    exempt: &[
        (Promise::SampleOrder, "lambda is chosen on a random fifth of the first task, and rounding errors accumulate"),
        (Promise::Halves, "lambda is chosen on the first task alone, and rounding errors accumulate"),
        (
            Promise::Stability,
            "errors of the inverse accumulate and nothing corrects them: this is what the paper finds",
        ),
    ],
    infinite: false,
    config: None,
    build: |options, settings| {
        let (lift, ridge) = (options.map()?, settings.ridge()?);
        Ok(match settings.number("precision", 32)? {
            32 => Box::new(Rls::<f32>::new(lift, ridge, options.seed)?),
            64 => Box::new(Rls::<f64>::new(lift, ridge, options.seed)?),
            other => return Err(Error::setting("precision", other, "it is 32 or 64 bits")),
        })
    },
};
